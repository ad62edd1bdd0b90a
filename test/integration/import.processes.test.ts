import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Reconciled, readTranscript, reconcile, SourceTable } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import {
  branchedTranscript,
  branchedSession as session,
  shownIn,
  subagentOfBranched as subagent,
} from '../support/branched-transcript.ts';
import { startTape } from '../support/cli.ts';
import { importFiles } from '../support/import-files.ts';
import { tapeProgram } from '../support/programs.ts';
import { type Random, seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';
import { calls, jsonl, model, person, returns } from '../support/transcript.ts';

/** Imports growing pieces of a transcript in processes, and compares the home with one that imported the whole once. */
async function importsAsOne(
  random: Random,
  act: (importing: () => ReturnType<typeof startTape>, grow: () => boolean, home: TempHome) => Promise<void>,
) {
  using dir = tempDir();
  using home = tempHome();
  const lines = branchedTranscript(sized(150_000, 250_000, 3_000_000));
  const file = dir.file(`${session}.jsonl`);
  mkdirSync(dir.file(`${session}/subagents`), { recursive: true });
  writeFileSync(dir.file(`${session}/subagents/agent-x.jsonl`), subagent);
  let count = 0;
  const grow = () => {
    count = Math.min(lines.length, count + 1 + random.below(Math.ceil(lines.length / 4)));
    const text = lines.slice(0, count).join('\n');
    writeFileSync(file, count === lines.length ? `${text}\n` : text, { flag: 'w' });
    return count < lines.length;
  };
  const importing = () => startTape(['import', dir.path, '--yes', '--json'], { home: home.path });
  await act(importing, grow, home);
  for (let more = true; more; ) more = grow();
  expect((await importing().done).code).toBe(0);
  expect(JSON.parse((await importing().done).stdout)).toMatchObject({ entries: 0, left_out: [] });
  using once = openStore();
  await importFiles(once, [dir.path]);
  using store = home.open();
  expect(shownIn(store)).toEqual(shownIn(once));
  expect(store.imports.unfinished()).toEqual([]);
  expect([...store.verify()]).toEqual([]);
}

test('several imports of one growing file at once end as one import of the whole', {
  timeout: 300_000,
}, async () => {
  await importsAsOne(seeded(23), async (importing, grow) => {
    for (let more = true; more; ) {
      more = grow();
      const ended = await Promise.all([importing().done, importing().done, importing().done]);
      expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(
        ended.map(() => [0, expect.any(String)]),
      );
    }
  });
});

test.each([1, 2, 3, 4, 5, 6])(
  'an import that another one overtakes when it has looked for the session (%s) makes no second one',
  async (nth) => {
    using dir = tempDir();
    using home = tempHome();
    writeFileSync(dir.file(`${session}.jsonl`), `${branchedTranscript(20_000).join('\n')}\n`);
    using store = home.open();
    let looks = 0;
    const overtaking = wrapStore(store, ({ method, args: [ref], act }) => {
      const found = act();
      // Another process writes it as soon as this one has not found it.
      if (method !== 'sessions.find' || ref !== session || found !== undefined) return found;
      looks += 1;
      if (looks !== nth) return found;
      spawnSync(process.execPath, [tapeProgram, 'import', dir.path, '--yes'], {
        env: { HOME: dir.path, TAPE_HOME: home.path, TAPE_TRUST_HOME: '1' },
      });
      return found;
    }) as SqliteTapeStore;
    const { names } = await importFiles(overtaking, [dir.path]);
    expect(looks).toBeGreaterThanOrEqual(nth);
    expect(names.filter((name) => name.endsWith('-2'))).toEqual([]);
    expect(
      store.sessions
        .list({ all: true })
        .map((one) => one.session)
        .toSorted(),
    ).toEqual(names.toSorted());
  },
);

test.each([
  ['imports.stage', 0],
  ['imports.append', 0],
  ['imports.publish', 0],
  ['lineage.fork', 0],
  ['entries.append', 20],
] as const)(
  'an import that another one overtakes at %s counts the entries that it wrote itself, behind %s lines',
  async (method, count) => {
    using dir = tempDir();
    using home = tempHome();
    using alone = openStore();
    using store = home.open();
    const lines = branchedTranscript(150_000);
    const write = (some: readonly string[]) =>
      writeFileSync(dir.file(`${session}.jsonl`), some.map((line) => `${line}\n`).join(''));
    write(lines.slice(0, count));
    for (const one of [alone, store]) await importFiles(one, [dir.path]);
    write(lines);
    let theirs: number | undefined;
    const overtaking = wrapStore(store, ({ method: called, act }) => {
      if (called !== method || theirs !== undefined) return act();
      const { stdout } = spawnSync(process.execPath, [tapeProgram, 'import', dir.path, '--yes', '--json'], {
        env: { HOME: dir.path, TAPE_HOME: home.path, TAPE_TRUST_HOME: '1' },
      });
      theirs = Number(JSON.parse(String(stdout)).entries);
      return act();
    }) as SqliteTapeStore;
    const addedTo = async (one: SqliteTapeStore) =>
      (await importFiles(one, [dir.path])).done
        .flatMap(({ brought }) => brought?.sessions ?? [])
        .reduce((sum, { added }) => sum + added, 0);
    const ours = await addedTo(overtaking);
    expect(theirs).toBeGreaterThan(0);
    expect(ours + Number(theirs)).toBe(await addedTo(alone));
  },
);

test('two imports that begin a session at once write it together, and each counts what it wrote of it', async () => {
  const lines = branchedTranscript(150_000).join('\n');
  using home = tempHome();
  using store = home.open();
  using other = home.open();
  using alone = openStore();
  const plan = () => readTranscript('file.jsonl', { chunks: [Buffer.from(`${lines}\n`)] });
  const sum = (done: readonly Reconciled[]) => done.reduce((all, { added }) => all + added, 0);
  let theirs: number | undefined;
  const ours = wrapStore(store, ({ method, act: append }) => {
    if (method !== 'imports.append' || theirs !== undefined) return append();
    // The other one has written all of it when this one has begun, and publishes it behind the first piece of this one.
    let appended: unknown;
    const first = wrapStore(other, ({ method: called, act }) => {
      if (called === 'imports.publish') appended = append();
      return act();
    }) as SqliteTapeStore;
    theirs = 0;
    theirs = sum(reconcile(first, plan()));
    return appended;
  }) as SqliteTapeStore;
  const own = sum(reconcile(ours, plan()));
  expect(theirs).toBeGreaterThan(0);
  expect(own + Number(theirs)).toBe(sum(reconcile(alone, plan())));
  expect(shownIn(store)).toEqual(shownIn(alone));
});

/** The visible sessions that have nothing of their own. */
function bareIn(home: TempHome): readonly string[] {
  using store = home.open();
  return store.sessions
    .list({ all: true })
    .filter(({ id }) => [...store.entries.read(id, { own: true, limit: 2 })].length < 2)
    .map(({ session: name }) => name);
}

test('imports that are killed at any moment leave no bare session, and end as one import of the whole', {
  timeout: 300_000,
}, async () => {
  const random = seeded(42);
  await importsAsOne(random, async (importing, grow, home) => {
    for (let more = true, i = 0; more || i < 8; i += 1) {
      more = grow();
      const { child, done } = importing();
      await sleep(100 + random.below(sized(400, 700, 1_500)));
      child.kill('SIGKILL');
      await done.catch(() => {});
      expect(bareIn(home)).toEqual([]);
    }
  });
});

test.each(['entries.append', 'lineage.fork', 'lineage.merge'])(
  'a source that is forgotten while an import reads it, before the first %s, leaves nothing of it here',
  async (method) => {
    using dir = tempDir();
    using home = tempHome();
    const file = dir.file(`${session}.jsonl`);
    mkdirSync(dir.file(`${session}/subagents`), { recursive: true });
    const called = model({ uuid: 'a1', parent: 'u1' }, [calls('t1', 'Task')], { sessionId: session });
    writeFileSync(file, jsonl([person({ uuid: 'u1' }, 'aardvark', { sessionId: session }), called]));
    using store = home.open();
    const table = SourceTable.open(home.file('sources.jsonl'));
    await importFiles(store, [dir.path], { table });
    const reported = { sessionId: session, toolUseResult: { agentId: 'x', status: 'completed' } };
    const grown = [
      person({ uuid: 'u2', parent: 'a1' }, [returns('t1', 'aardvark')], reported),
      person({ uuid: 'u3', parent: 'u2' }, 'aardvark', { sessionId: session }),
      person({ uuid: 'u4', parent: 'u1' }, 'another aardvark', { sessionId: session }),
    ];
    appendFileSync(file, jsonl(grown));
    writeFileSync(dir.file(`${session}/subagents/agent-x.jsonl`), subagent.replaceAll('seen', 'aardvark'));
    let isForgotten = false;
    const forgetting = wrapStore(store, ({ method: called, act }) => {
      if (called !== method || isForgotten) return act();
      isForgotten = true;
      const words = [tapeProgram, 'import', '--forget', session];
      const env = { HOME: dir.path, TAPE_HOME: home.path, TAPE_TRUST_HOME: '1' };
      expect(spawnSync(process.execPath, words, { env }).status).toBe(0);
      return act();
    }) as SqliteTapeStore;
    await importFiles(forgetting, [dir.path], { table });
    expect(isForgotten).toBe(true);
    const left = store.sessions
      .list({ all: true })
      .flatMap(({ id }) => [...store.entries.read(id, { own: true })]);
    expect(left.filter(({ payload }) => JSON.stringify(payload).includes('aardvark'))).toEqual([]);
    expect([...store.verify()]).toEqual([]);
  },
);
