import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { openTapeStore, type StoreOptions } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { describe, expect, test, vi } from 'vitest';
import { toSchema0 } from '../support/old-schemas.ts';
import { refusal } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

type Probe = NonNullable<StoreOptions['probe']>;

test('opening refuses an option that does not exist, names the nearest, and creates nothing', () => {
  using dir = tempDir();
  const options = [
    [{ durabilty: 'fast' }, "there is no option 'durabilty'; did you mean 'durability'?"],
    [{ durability: 'fats' }, "durability must be 'full' or 'fast'"],
  ] as const;
  for (const [given, why] of options) {
    const error = refusal(() => openTapeStore(dir.file('tape.db'), given as StoreOptions));
    expect(error).toMatchObject({ code: 'TAPE_BAD_OPTION', message: expect.stringContaining(why) });
  }
  expect(readdirSync(dir.path)).toEqual([]);
});

describe('opening refuses an unsafe place, and creates nothing there', () => {
  test.each<[string, Probe, string]>([
    ['an SQLite that may lose data', { sqliteVersion: () => '3.51.2' }, 'TAPE_CANNOT_OPEN'],
    ['NFS', { fileSystem: () => 0x6969 }, 'TAPE_UNSAFE_PLACE'],
    ['CIFS, whose number has the sign bit', { fileSystem: () => 0xff534d42 | 0 }, 'TAPE_UNSAFE_PLACE'],
    ['a directory of another user', { uid: () => 4242 }, 'TAPE_UNSAFE_PLACE'],
  ])('%s', (_what, probe, code) => {
    using dir = tempDir();
    const home = join(dir.path, 'home');
    expect(refusal(() => openTapeStore(join(home, 'tape.db'), { probe })).code).toBe(code);
    expect(readdirSync(home).filter((name) => statSync(join(home, name)).size > 0)).toEqual([]);
  });

  test('a symbolic link, a hard link, a directory or a fifo of that name', () => {
    using dir = tempDir();
    writeFileSync(dir.file('target'), '', { mode: 0o600 });
    symlinkSync(dir.file('target'), dir.file('link.db'));
    symlinkSync(dir.file('nowhere'), dir.file('dangling.db'));
    linkSync(dir.file('target'), dir.file('hard.db'));
    mkdirSync(dir.file('folder.db'));
    for (const name of ['link.db', 'dangling.db', 'hard.db', 'folder.db'])
      expect(refusal(() => openTapeStore(dir.file(name))).code, name).toBe('TAPE_CANNOT_OPEN');
    expect(existsSync(dir.file('nowhere'))).toBe(false);
  });

  test('a link in the place of the log', () => {
    using dir = tempDir();
    openTapeStore(dir.file('tape.db')).close();
    writeFileSync(dir.file('target'), '');
    symlinkSync(dir.file('target'), dir.file('tape.db-wal'));
    expect(refusal(() => openTapeStore(dir.file('tape.db'))).code).toBe('TAPE_CANNOT_OPEN');
  });

  test('a directory that other users can enter and that contains other files', () => {
    using dir = tempDir();
    writeFileSync(dir.file('notes.txt'), 'mine');
    chmodSync(dir.path, 0o755);
    const error = refusal(() => openTapeStore(dir.file('tape.db')));
    expect(error).toMatchObject({ code: 'TAPE_UNSAFE_PLACE', data: { dir: dir.path, mode: '755' } });
    expect(readdirSync(dir.path)).toEqual(['notes.txt']);
    expect(statSync(dir.path).mode & 0o777).toBe(0o755);
  });
});

describe('opening', () => {
  test('closes an empty directory to other users, and reports it', () => {
    using dir = tempDir();
    chmodSync(dir.path, 0o755);
    const said: string[] = [];
    openTapeStore(dir.file('tape.db'), { onWarning: (text) => said.push(text) }).close();
    expect(said).toEqual([`closed '${dir.path}' to other users (mode 700)`]);
    expect(statSync(dir.path).mode & 0o777).toBe(0o700);
  });

  test('never closes a directory that is made to be shared', () => {
    using dir = tempDir();
    for (const name of ['empty', 'used']) mkdirSync(dir.file(name));
    writeFileSync(dir.file('used/tape.db'), '');
    for (const name of ['empty', 'used']) {
      chmodSync(dir.file(name), 0o1777);
      expect(refusal(() => openTapeStore(dir.file(`${name}/tape.db`)))).toMatchObject({
        code: 'TAPE_UNSAFE_PLACE',
        data: { sharedDir: dir.file(name) },
      });
      expect(statSync(dir.file(name)).mode & 0o7777).toBe(0o1777);
    }
  });

  test('accepts what an interrupted backup and doctor leave for a home, and closes it', () => {
    using dir = tempDir();
    const left = ['session_graph.jsonl.aside-2030-01-01T000000.000Z', 'tape.db.schema-0.0123456789ab.part'];
    for (const name of left) writeFileSync(dir.file(name), '');
    chmodSync(dir.path, 0o755);
    openTapeStore(dir.file('tape.db'), { onWarning: () => {} }).close();
    expect(statSync(dir.path).mode & 0o777).toBe(0o700);
    expect(readdirSync(dir.path)).toEqual(expect.arrayContaining(left));
  });

  test('trusts no schema and checks every page, on each connection and before it reads', async () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    openTapeStore(path).close();
    toSchema0(path);
    writeFileSync(`${path}-wal`, '', { mode: 0o600 }); // Then the owner of the file is checked first.
    const asked = new Map<unknown, string[]>();
    const methods = (['pragma', 'prepare', 'exec', 'backup'] as const).map((name) => {
      const act: (...args: never[]) => unknown = Database.prototype[name];
      return vi.spyOn(Database.prototype, name).mockImplementation(function (
        this: unknown,
        ...args: unknown[]
      ) {
        asked.set(this, [...(asked.get(this) ?? []), String(args[0])]);
        return act.apply(this, args as never[]) as never;
      });
    });
    try {
      using store = openTapeStore(path);
      await store.backup(dir.file('copy.db'));
    } finally {
      for (const method of methods) method.mockRestore();
    }
    // The look before, the store, the copy of the old schema, the backup's source, and the copy that is verified.
    expect(asked.size).toBeGreaterThanOrEqual(5);
    for (const texts of asked.values()) {
      // One text may have several statements.
      const settings = texts
        .flatMap((text) => text.split(/;\s*/))
        .map((text) => text.replace(/^PRAGMA /, ''));
      expect(settings.slice(0, 4)).toEqual([
        'foreign_keys = ON',
        'trusted_schema = OFF',
        'cell_size_check = ON',
        'mmap_size = 0',
      ]);
    }
  });

  test('on an unsafe file system continues on request, without shared memory', () => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'), {
      probe: { fileSystem: () => 0x6969 },
      allowUnsafePlace: true,
    });
    store.sessions.open('main');
    expect(readdirSync(dir.path).filter((name) => /-(?:wal|shm)$/.test(name))).toEqual([]);
  });

  test.each([0o000, 0o022, 0o077, 0o777])(
    'makes files of mode 600 and directories of mode 700 at umask %o',
    (umask) => {
      using dir = tempDir();
      const home = join(dir.path, 'home');
      const before = process.umask(umask);
      try {
        using store = openTapeStore(join(home, 'tape.db'));
        store.sessions.open('main');
        expect(statSync(home).mode & 0o777).toBe(0o700);
        for (const name of readdirSync(home))
          expect(statSync(join(home, name)).mode & 0o777, name).toBe(0o600);
      } finally {
        process.umask(before);
      }
    },
  );
});
