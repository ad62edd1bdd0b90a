import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openTapeStore } from '@tapedeck/tape';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { diskFault, obstacles, smallDisk, tapeUnder } from '../support/obstacle.ts';
import { startProcess } from '../support/process.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const isRoot = process.getuid?.() === 0;
const fault = (() => {
  using dir = tempDir();
  return diskFault(dir.path);
})();
if (fault !== undefined) console.warn(`skipped: read-only media; ${fault}`);

/** Every verb that only reads, with a part of what it prints. */
const all: readonly (readonly [line: string, says: string])[] = [
  ['log main', 'in the log only'],
  ['show main', '"head":3'],
  ['view main', 'in the log only'],
  ['search only', 'in the log only'],
  ['sessions', '"session":"child"'],
  ['status', '[]'],
  ['graph', 'child'],
  ['lineage main', 'child'],
  ['children main', 'child'],
  ['trace main@2', 'child'],
  ['diff main child', '"main"'],
  ['usage', 'main'],
  ['verify', '"ok":true'],
  ['audit', '"ok":true'],
  ['doctor', 'sessions'],
  ['check', 'read-from-copy'],
];
/** Each place meets some of them on a push, and in full half of them: every one two places. */
const reads = (place: number) =>
  sized(
    all.filter((_, n) => n % 6 === place || n === all.length - 1),
    all.filter((_, n) => n % 2 === place % 2 || n === all.length - 1),
    all,
  );

/** Verbs that must not take a home without permission for an empty one. */
const every = ['sessions', 'status', 'graph', 'log main', 'check', 'search x'];

/** A program that appends, and is killed before SQLite writes its log into the database. */
const killed = `
  import { openTapeStore, user } from '@tapedeck/tape';
  const store = openTapeStore(process.argv[1]);
  store.sessions.open('main');
  store.entries.append('main', [user('first')]);
  store.lineage.fork('main', { name: 'child', inherit: 'all' });
  store.entries.append('main', [user('in the log only')]);
  console.log('written');
  setInterval(() => {}, 1000);
`;

/** A home whose newest entry is in the log alone. */
async function homeWithLog(dir: string): Promise<string> {
  const home = join(dir, 'home');
  mkdirSync(home, { mode: 0o700 });
  await using writer = startProcess(killed, join(home, 'tape.db'));
  await writer.prints('written');
  await writer.kill();
  expect(statSync(join(home, 'tape.db-wal')).size).toBeGreaterThan(0);
  return home;
}

/** The names, modes and bytes of all files of a home. */
function contents(home: string): unknown {
  return readdirSync(home).map((name) => {
    const path = join(home, name);
    const { mode, mtimeMs } = statSync(path);
    return [name, mode, mtimeMs, readFileSync(path).toString('base64')];
  });
}

/** The directory for temporary files of every reader here: other tests kill theirs, whose copies stay. */
const tmp = tempDir();
beforeAll(() => {
  vi.stubEnv('TMPDIR', tmp.path);
});
afterAll(() => {
  vi.unstubAllEnvs();
  tmp[Symbol.dispose]();
});
const copies = () => readdirSync(tmp.path).filter((name) => name.startsWith('tapedeck-read-'));

/** Plays every reading verb on a home that cannot be written, then two that write. */
async function readEverything(
  place: number,
  home: string,
  obstacle: Parameters<typeof tapeUnder>[0],
): Promise<void> {
  const before = contents(home);
  for (const [line, says] of reads(place)) {
    const { code, stdout, stderr } = await tapeUnder(obstacle, [...line.split(' '), '--json'], {
      home,
      stdin: '',
      tmp: tmp.path,
    });
    expect([line, code, stderr]).toEqual([line, 0, expect.not.stringContaining('Error')]);
    expect(stdout, line).toContain(says);
  }
  for (const line of ['new more', 'append main']) {
    const stdin = '{"role":"user","content":"x"}\n';
    const refused = await tapeUnder(obstacle, [...line.split(' '), '--json'], { home, stdin });
    expect(refused.code, line).toBe(1);
    expect(jsonError(refused)).toMatchObject({
      code: expect.stringMatching(/^TAPE_(?:CANNOT_OPEN|UNSAFE_PLACE)$/),
      hint: expect.stringContaining('verbs that only read work'),
    });
  }
  expect(contents(home)).toEqual(before);
  await expect.poll(copies).toEqual([]);
}

describe('every verb that only reads works, and leaves no file behind', () => {
  test.skipIf(fault !== undefined)('on a read-only disk (needs mounts)', async () => {
    using dir = tempDir();
    using disk = smallDisk(dir.path);
    const home = await homeWithLog(disk.path);
    obstacles.EROFS.put(disk.path);
    try {
      await readEverything(0, home, obstacles.EROFS);
    } finally {
      obstacles.EROFS.lift(disk.path);
    }
  });

  test('in a directory that this user cannot write', async () => {
    using dir = tempDir();
    const home = await homeWithLog(dir.path);
    obstacles.EACCES.put(dir.path);
    try {
      await readEverything(3, home, obstacles.EACCES);
    } finally {
      obstacles.EACCES.lift(dir.path);
    }
  });

  test.skipIf(!isRoot)('in a home of another user, also for root (needs root)', async () => {
    using dir = tempDir();
    const home = await homeWithLog(dir.path);
    for (const name of ['.', ...readdirSync(home)]) chownSync(join(home, name), 65_534, 65_534);
    await readEverything(1, home, { ...obstacles.EACCES, under: [] });
  });
});

test.skipIf(!isRoot)(
  'a home that this user may not enter or read is no empty home (needs root)',
  async () => {
    using dir = tempDir();
    const home = await homeWithLog(dir.path);
    const { under, put: _put, ...rest } = obstacles.EACCES;
    const obstacle = { ...rest, put: () => {}, under };
    for (const [path, mode] of [
      [join(home, 'tape.db'), 0],
      [home, 0],
    ] as const) {
      chmodSync(path, mode);
      for (const line of sized(['sessions', 'log main'], every, every)) {
        const refused = await tapeUnder(obstacle, [...line.split(' '), '--json'], { home, stdin: '' });
        expect([line, refused.code]).toEqual([line, 1]);
        expect(jsonError(refused)).toMatchObject({ code: 'TAPE_CANNOT_OPEN', message: /permission denied/ });
      }
    }
    chmodSync(home, 0o700);
  },
);

test('a copy is one state of the home, while another process writes it', async () => {
  using dir = tempDir();
  const home = join(dir.path, 'home');
  mkdirSync(home, { mode: 0o700 });
  const file = join(home, 'tape.db');
  using store = openTapeStore(file, { durability: 'fast' });
  store.sessions.open('main');
  const writing = startProcess(
    `import { openTapeStore, user } from '@tapedeck/tape';
     const store = openTapeStore(process.argv[1], { durability: 'fast' });
     const clock = new Int32Array(new SharedArrayBuffer(4));
     // Each copy is verified whole: on a slow machine one of a home without a limit takes ever longer.
     for (let n = 0; n < 5_000; n += 1) {
       store.entries.append('main', [user('x'.repeat(3000) + n)]);
       if (n === 0) console.log('began');
       // A few checkpoints in a second: what was written at full speed soon takes longer to copy than there is between two.
       if (n % 100 === 99) Atomics.wait(clock, 0, 0, 40);
     }`,
    file,
  );
  await using _ = writing;
  await writing.prints('began');
  const heads: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    using copy = openTapeStore(file, { readonly: true, probe: { uid: () => 4_242, ownerOf: () => 1 } });
    expect(copy.isCopy).toBe(true);
    expect([...copy.verify()]).toEqual([]);
    heads.push(copy.sessions.find('main')?.head ?? 0);
  }
  expect(heads).toEqual(heads.toSorted((a, b) => a - b));
  expect(new Set(heads).size).toBeGreaterThan(1);
  await expect.poll(copies).toEqual([]);
});
