import { writeFileSync } from 'node:fs';
import { openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { crashPoints, onCrashPoint } from '@tapedeck/tape/crash-point';
import { afterEach, expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { startProcess } from '../support/process.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

afterEach(() => onCrashPoint(undefined));

const points = [
  ...crashPoints.filter((point) => point.startsWith('bundle/')),
  ...(['lineage/row', 'commit/before', 'commit/after'] as const),
];
const timeout = sized(300_000, 600_000, 3_600_000);

/** A home with a family, and with a child whose content a bundle of it brings later. */
function family(): { readonly first: string; readonly all: string } {
  using store = openStore(':memory:', { secrets: [] });
  fillForForgeries(store);
  const first = bundleOf(store, 'grand');
  store.entries.append('main', [user('More.')]);
  store.lineage.fork('main', { name: 'late' });
  return { first, all: bundleOf(store, 'main', { scope: 'tree' }) };
}

function stateOf(store: SqliteTapeStore): unknown {
  const sessions = store.sessions.list({ all: true }).map(({ id, head, headHash }) => [id, head, headHash]);
  return [sessions, [...store.lineage.read()].length, [...store.verify()].map(({ code }) => code)];
}

/** Imports a file, and dies at a point as a kill does. */
const importer = `
  import { openTapeStore } from '@tapedeck/tape';
  import { onCrashPoint } from '@tapedeck/tape/crash-point';
  const [db, file, point] = process.argv.slice(1);
  using store = openTapeStore(db, { secrets: [] });
  onCrashPoint((at) => { if (at === point) process.kill(process.pid, 'SIGKILL'); });
  const { entries } = await store.bundles.adopt(file);
  console.log('imported ' + entries);
`;

test('an error at any place of an import leaves nothing of it', async () => {
  const { first, all } = family();
  for (const point of points) {
    using store = openTapeStore(':memory:', { secrets: [] });
    await adopt(store, first);
    const before = stateOf(store);
    let passed = false;
    onCrashPoint((at) => {
      if (at !== point) return;
      passed = true;
      throw new Error('stopped');
    });
    await expect(adopt(store, all), point).rejects.toThrow('stopped');
    onCrashPoint(undefined);
    expect(passed, point).toBe(true);
    if (point === 'commit/after') continue;
    expect(stateOf(store), point).toEqual(before);
    await adopt(store, all);
    expect([...store.verify()], point).toEqual([]);
  }
});

test('a kill at any place of an import leaves all of it or nothing', { timeout }, async () => {
  const { first, all } = family();
  using dir = tempDir();
  writeFileSync(dir.file('all.tape'), all);
  for (const point of sized(['bundle/entry', 'commit/after'], points, points)) {
    const db = dir.file(`${point.replace('/', '-')}.db`);
    let before: unknown;
    {
      using store = openTapeStore(db, { secrets: [] });
      await adopt(store, first);
      before = stateOf(store);
    }
    await using process = startProcess(importer, db, dir.file('all.tape'), point);
    await process.done().catch(() => undefined);
    expect(process.printed(), point).not.toContain('imported');
    using store = openTapeStore(db, { secrets: [] });
    if (point === 'commit/after') expect([...store.verify()]).toEqual([]);
    else expect(stateOf(store), point).toEqual(before);
    await adopt(store, all);
    expect([...store.verify()], point).toEqual([]);
  }
});

test('imports of one bundle by several processes at once add it once', { timeout }, async () => {
  const { all } = family();
  using dir = tempDir();
  writeFileSync(dir.file('all.tape'), all);
  const db = dir.file('tape.db');
  openTapeStore(db).close();
  const processes = Array.from({ length: sized(2, 4, 8) }, () =>
    startProcess(importer, db, dir.file('all.tape'), 'none'),
  );
  try {
    await Promise.all(processes.map((one) => one.done()));
    const added = processes.map((one) => Number(/imported (\d+)/.exec(one.printed())?.[1]));
    using store = openTapeStore(db, { secrets: [] });
    expect(added.filter((one) => one > 0)).toEqual([store.count().entries]);
    expect([...store.verify()]).toEqual([]);
  } finally {
    for (const one of processes) await one[Symbol.asyncDispose]();
  }
});
