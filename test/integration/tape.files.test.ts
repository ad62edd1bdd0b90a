import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { openTapeStore, TapeError, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { startProcess } from '../support/process.ts';
import { refusal } from '../support/store.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { treeOf } from '../support/tree.ts';

const root = process.getuid?.() === 0;
const otherUser = 65_534;

/** A home with a session, closed. */
function makeHome(dir: TempDir): string {
  const path = dir.file('home/tape.db');
  using store = openTapeStore(path);
  store.sessions.open('main');
  store.entries.append('main', [user('hello')]);
  return path;
}

const codes = /^TAPE_(?:CANNOT_OPEN|UNSAFE_PLACE)$/;

describe('is refused, and nothing is changed:', () => {
  test.each<[string, (home: string, dir: TempDir) => void]>([
    [
      'a home that is a link',
      (home, dir) => {
        renameSync(home, dir.file('else'));
        symlinkSync('else', home);
      },
    ],
    [
      'a home that is a link to nothing',
      (home) => {
        rmSync(home, { recursive: true });
        symlinkSync('nowhere', home);
      },
    ],
    [
      'a home that is a link to itself',
      (home) => {
        rmSync(home, { recursive: true });
        symlinkSync('home', home);
      },
    ],
    [
      'a home that is a file',
      (home) => {
        rmSync(home, { recursive: true });
        writeFileSync(home, 'mine');
      },
    ],
    [
      'a home that is a FIFO',
      (home) => {
        rmSync(home, { recursive: true });
        execFileSync('mkfifo', [home]);
      },
    ],
    ['a home with the sticky bit, for all to write', (home) => chmodSync(home, 0o1777)],
    [
      'a database that is a link',
      (home) => {
        renameSync(join(home, 'tape.db'), join(home, 'x'));
        symlinkSync('x', join(home, 'tape.db'));
      },
    ],
    [
      'a database that is a link to nothing',
      (home) => {
        rmSync(join(home, 'tape.db'));
        symlinkSync('nowhere', join(home, 'tape.db'));
      },
    ],
    ['a database with two names', (home) => linkSync(join(home, 'tape.db'), join(home, 'x'))],
    [
      'a database that is a directory',
      (home) => {
        rmSync(join(home, 'tape.db'));
        mkdirSync(join(home, 'tape.db'));
      },
    ],
    [
      'a directory of that name in an open home',
      (home) => {
        rmSync(join(home, 'tape.db'));
        mkdirSync(join(home, 'tape.db'));
        chmodSync(home, 0o755);
      },
    ],
    [
      'a database that is a FIFO',
      (home) => {
        rmSync(join(home, 'tape.db'));
        execFileSync('mkfifo', [join(home, 'tape.db')]);
      },
    ],
    [
      'a log that is a link',
      (home, dir) => {
        writeFileSync(dir.file('victim'), 'mine');
        symlinkSync('../victim', join(home, 'tape.db-wal'));
      },
    ],
    ['a log that is a link to nothing', (home) => symlinkSync('nowhere', join(home, 'tape.db-wal'))],
    [
      'a log with two names',
      (home) => {
        writeFileSync(join(home, 'x'), '');
        linkSync(join(home, 'x'), join(home, 'tape.db-wal'));
      },
    ],
    ['a log that is a directory', (home) => mkdirSync(join(home, 'tape.db-wal'))],
    [
      'a log that is a FIFO',
      (home) => {
        execFileSync('mkfifo', [join(home, 'tape.db-wal')]);
      },
    ],
    [
      'shared memory that is a link',
      (home, dir) => {
        writeFileSync(dir.file('victim'), 'mine');
        symlinkSync('../victim', join(home, 'tape.db-shm'));
      },
    ],
    ['shared memory that is a directory', (home) => mkdirSync(join(home, 'tape.db-shm'))],
  ])('%s', (_, spoil) => {
    using dir = tempDir();
    const path = makeHome(dir);
    spoil(dir.file('home'), dir);
    const before = treeOf(dir.path);
    expect(refusal(() => openTapeStore(path)).code).toMatch(codes);
    expect(treeOf(dir.path)).toEqual(before);
  });

  test.skipIf(!root).each(['home', 'home/tape.db', 'home/tape.db-wal', 'home/tape.db-shm'])(
    '%s of another user (needs root, to give it to one)',
    (name) => {
      using dir = tempDir();
      const path = makeHome(dir);
      if (name.includes('-')) writeFileSync(dir.file(name), '');
      chownSync(dir.file(name), otherUser, otherUser);
      const before = treeOf(dir.path);
      expect(refusal(() => openTapeStore(path)).code).toBe('TAPE_UNSAFE_PLACE');
      expect(treeOf(dir.path)).toEqual(before);
    },
  );

  test('a socket in the place of the database', async () => {
    using dir = tempDir();
    mkdirSync(dir.file('home'), { mode: 0o700 });
    const server = createServer().listen(dir.file('home/tape.db'));
    await new Promise((resolve) => server.once('listening', resolve));
    try {
      expect(refusal(() => openTapeStore(dir.file('home/tape.db'))).code).toBe('TAPE_CANNOT_OPEN');
    } finally {
      server.close();
    }
  });

  test('a home below a file', () => {
    using dir = tempDir();
    writeFileSync(dir.file('file'), 'mine');
    expect(refusal(() => openTapeStore(dir.file('file/home/tape.db'))).code).toBe('TAPE_CANNOT_OPEN');
    expect(readdirSync(dir.path)).toEqual(['file']);
  });
});

describe('is opened, and closed to other users:', () => {
  test.each([0o755, 0o777, 0o750, 0o701])('our home of mode %o', (mode) => {
    using dir = tempDir();
    const path = makeHome(dir);
    chmodSync(dir.file('home'), mode);
    const said: string[] = [];
    openTapeStore(path, { onWarning: (text) => said.push(text) }).close();
    expect(said).toHaveLength(1);
    expect(statSync(dir.file('home')).mode & 0o7777).toBe(0o700);
  });

  test.each([0o644, 0o666, 0o777])('a home that contains a database of mode %o', (mode) => {
    using dir = tempDir();
    const path = makeHome(dir);
    chmodSync(path, mode);
    chmodSync(dir.file('home'), 0o755);
    using store = openTapeStore(path, { onWarning: () => {} });
    store.entries.append('main', [user('more')]);
    expect(statSync(dir.file('home')).mode & 0o777).toBe(0o700);
  });
});

describe('a backup', () => {
  test.each([0o000, 0o022, 0o077, 0o277])(
    'has mode 600 at umask %o, wherever it is written',
    async (umask) => {
      using dir = tempDir();
      mkdirSync(dir.file('open'));
      chmodSync(dir.file('open'), 0o1777);
      using store = openTapeStore(makeHome(dir));
      const before = process.umask(umask);
      try {
        await store.backup(dir.file('open/copy.db'));
      } finally {
        process.umask(before);
      }
      expect(statSync(dir.file('open/copy.db')).mode & 0o7777).toBe(0o600);
      expect(readdirSync(dir.file('open'))).toEqual(['copy.db']);
    },
  );

  test.each<[string, (at: string, dir: TempDir) => void]>([
    ['a file', (at) => writeFileSync(at, 'mine')],
    [
      'a link to a file',
      (at, dir) => {
        writeFileSync(dir.file('victim'), 'mine');
        symlinkSync('victim', at);
      },
    ],
    ['a link to nothing', (at) => symlinkSync('nowhere', at)],
    ['a directory', (at) => mkdirSync(at)],
    [
      'a FIFO',
      (at) => {
        execFileSync('mkfifo', [at]);
      },
    ],
  ])('does not go through or over %s', async (_, make) => {
    using dir = tempDir();
    using store = openTapeStore(makeHome(dir));
    make(dir.file('copy.db'), dir);
    const before = treeOf(dir.path);
    await expect(store.backup(dir.file('copy.db'))).rejects.toMatchObject({ code: 'TAPE_EXISTS' });
    expect(treeOf(dir.path)).toEqual(before);
  });
});

/** Puts a link and the real file in turn under a name, until it is killed. */
const swapper = `import { linkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
  const [path, real, victim] = process.argv.slice(1);
  console.log('swapping');
  for (;;) {
    symlinkSync(victim, path + '.next'); renameSync(path + '.next', path);
    linkSync(real, path + '.next'); renameSync(path + '.next', path);
  }`;

test('a file that another program swaps for a link while it is opened: no other file is written', async () => {
  using dir = tempDir();
  const path = makeHome(dir);
  renameSync(path, dir.file('real.db'));
  const victim = 'my diary, page one. '.repeat(500);
  writeFileSync(dir.file('victim'), victim);
  await using swapping = startProcess(swapper, path, dir.file('real.db'), dir.file('victim'));
  await swapping.prints('swapping');
  for (let i = 0; i < 300; i += 1) {
    try {
      openTapeStore(path).close();
    } catch (error) {
      expect(error).toBeInstanceOf(TapeError);
    }
  }
  await swapping.kill();
  expect(readFileSync(dir.file('victim'), 'utf8')).toBe(victim);
});
