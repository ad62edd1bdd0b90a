import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { type StoreProcess, startStores } from '../support/store-process.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';

const sessions = ['main', 'second', 'child'];

/** A home with three sessions, and two processes that append to all of them until a signal stops them. */
async function busyHome(dir: TempDir, workers: readonly StoreProcess[]) {
  const [path, graph] = [dir.file('home/tape.db'), dir.file('home/session_graph.jsonl')];
  {
    using store = openTapeStore(path, { journal: openJournal(graph) });
    store.sessions.open('main');
    store.sessions.open('second');
    store.lineage.fork('main', { name: 'child' });
  }
  for (const worker of workers) await worker.ask('open', { path, graph });
  let busy = true;
  const written = workers.map(async (worker) => {
    for (let from = 1; busy; from += 20)
      for (const session of sessions) await worker.ask('append', { session, count: 20, from });
  });
  return {
    path,
    stop: async () => {
      busy = false;
      await Promise.all(written);
    },
  };
}

/** Every tape of a copy is the beginning of the tape that it was copied from: the hash at its head covers all of it. */
function expectPrefixes(copy: SqliteTapeStore, whole: SqliteTapeStore): number {
  let entries = 0;
  for (const session of sessions) {
    const head = copy.sessions.find(session)?.head ?? 0;
    const hashAt = (store: SqliteTapeStore) =>
      [...store.entries.read(session, { from: head, to: head })][0]?.hash;
    expect(hashAt(copy)).toBe(hashAt(whole));
    entries += head;
  }
  return entries;
}

describe('while two processes append', () => {
  test(
    'a backup is whole, and contains a prefix of every tape',
    async () => {
      using dir = tempDir();
      await using workers = await startStores(2);
      const home = await busyHome(dir, workers);
      using store = openTapeStore(home.path);
      const copies = Array.from({ length: sized(4, 4, 100) }, (_, i) => dir.file(`copy-${i}.db`));
      for (const copy of copies) await store.backup(copy);
      await home.stop();
      const sizes = copies.map((path) => {
        using copy = openTapeStore(path, { readonly: true });
        expect([...copy.verifyDatabase(), ...copy.verify()]).toEqual([]);
        return expectPrefixes(copy, store);
      });
      expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
      expect(new Set(sizes).size).toBeGreaterThan(1);
      expect(readdirSync(dir.path).filter((name) => name.endsWith('.part'))).toEqual([]);
    },
    sized(60_000, 180_000, 900_000),
  );

  test(
    'a copy of the files, an unsupported backup, is whole too or reported as damaged',
    async () => {
      using dir = tempDir();
      await using workers = await startStores(2);
      const home = await busyHome(dir, workers);
      const copies = Array.from({ length: sized(8, 8, 500) }, (_, i) => dir.file(`copy-${i}`));
      for (const copy of copies) {
        // In a process of its own: closing any descriptor of the file would drop this one's locks.
        spawnSync('cp', ['-r', dir.file('home'), copy]);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await home.stop();
      using whole = openTapeStore(home.path);
      for (const copied of copies) {
        const open = () =>
          openTapeStore(join(copied, 'tape.db'), {
            journal: openJournal(join(copied, 'session_graph.jsonl')),
          });
        let copy: SqliteTapeStore;
        try {
          copy = open();
        } catch (error) {
          expect(error).toMatchObject({
            code: expect.stringMatching(/^(?:TAPE_CORRUPT|GRAPH_DIVERGED|TAPE_IO)$/),
          });
          continue;
        }
        using _copy = copy;
        if ([...copy.verifyDatabase(), ...copy.verify()].length === 0) expectPrefixes(copy, whole);
      }
    },
    sized(60_000, 180_000, 900_000),
  );
});

describe('the locks of a process', () => {
  /** Tries to take the write lock of a file, in another process. */
  const other = `import Database from 'better-sqlite3';
    const db = new Database(process.argv[1], { timeout: 50 });
    try { db.exec('BEGIN IMMEDIATE; ROLLBACK'); console.log('taken'); } catch (error) { console.log(error.code); }`;
  const tryToWrite = (path: string) =>
    execFileSync(process.execPath, ['--input-type=module', '-e', other, path], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
    }).trim();

  test.each<[string, (path: string) => void]>([
    ['nothing', () => {}],
    ['opening it again for writing', (path) => openTapeStore(path).close()],
    ['opening it again for reading', (path) => openTapeStore(path, { readonly: true }).close()],
    [
      'reading and verifying all of it',
      (path) => {
        using store = openTapeStore(path, { readonly: true });
        expect([...store.verifyDatabase(), ...store.verify(), ...store.examine()]).toEqual([]);
        expect([...store.entries.read('main')].length).toBe(1);
      },
    ],
  ])('stay while it writes, whatever it also does: %s', (_, act) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    let inside: (() => void) | undefined;
    using store = openTapeStore(path, {
      salt: () => {
        inside?.();
        return new Uint8Array(16);
      },
    });
    store.sessions.open('main');
    let seen = '';
    // Salts are drawn within the transaction of an append, so this happens while it is open.
    inside = () => {
      act(path);
      seen = tryToWrite(path);
    };
    store.entries.append('main', [user('hello')]);
    expect(seen).toBe('SQLITE_BUSY');
    expect(tryToWrite(path)).toBe('taken');
    inside = undefined;
    expect([...store.verify()]).toEqual([]);
  });
});

let read: ReadonlyMap<string, string> | undefined;

/** All sources of the packages, by name: read once. */
function sources(): ReadonlyMap<string, string> {
  read ??= readSources();
  return read;
}

function readSources(): ReadonlyMap<string, string> {
  const root = join(import.meta.dirname, '../../packages');
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /^\w+\/src\/.*\.ts$/.test(name),
  );
  return new Map(names.map((name) => [name, readFileSync(join(root, name), 'utf8')]));
}

describe('no source opens, reads or copies a database by node:fs, which would drop the locks of its process', () => {
  const byContent = /\b(?:open|read|write|append|copy|cp|truncate|createReadStream|createWriteStream)\w*/;

  test('in the package that owns the database, only opening and backup use files at all', () => {
    const users = [...sources()].filter(
      ([name, text]) => name.startsWith('tape/') && text.includes("'node:fs"),
    );
    expect(users.map(([name]) => name).sort()).toEqual([
      'tape/src/bundle/pack.ts',
      'tape/src/bundle/records.ts',
      'tape/src/bundle/unpack.ts',
      'tape/src/origin/home-claim.ts',
      'tape/src/origin/home-record.ts',
      'tape/src/origin/own-log.ts',
      'tape/src/origin/place-faults.ts',
      'tape/src/origin/state-files.ts',
      'tape/src/owner.ts',
      'tape/src/postgres/password-file.ts',
      'tape/src/remote/directory.ts',
      'tape/src/remote/git-cache.ts',
      'tape/src/remote/git.ts',
      'tape/src/remote/known.ts',
      'tape/src/remote/push.ts',
      'tape/src/remote/seen.ts',
      'tape/src/secrets/secrets.ts',
      'tape/src/sqlite/directories.ts',
      'tape/src/sqlite/draft-file.ts',
      'tape/src/sqlite/lock-holders.ts',
      'tape/src/sqlite/place.ts',
      'tape/src/sqlite/private-copy.ts',
      'tape/src/sqlite/sync.ts',
      'tape/src/sqlite/take-lock.ts',
      'tape/src/store/migrate.ts',
      'tape/src/store/open.ts',
    ]);
    const imports = (name: string) =>
      /import \{([^}]*)\} from 'node:fs'/.exec(sources().get(name) ?? '')?.[1]?.match(/[a-z]\w+/gi) ?? [];
    // The file of a lock stays empty, and is no file of the database.
    expect(imports('tape/src/sqlite/take-lock.ts')).toEqual(['closeSync', 'openSync']);
    // A bundle is written to a new file, and read only if it is no file of the database.
    expect(
      sources()
        .get('tape/src/bundle/pack.ts')
        ?.match(/(?:createWriteStream|open\w*)\(\w+/g),
    ).toEqual(['createWriteStream(draft', 'openSync(draft']);
    expect(imports('tape/src/bundle/records.ts')).toEqual(['readSync']);
    expect(
      sources()
        .get('tape/src/bundle/unpack.ts')
        ?.match(/openSync\(\s*\w+/g)
        ?.map((call) => call.replace(/\s/g, '')),
    ).toEqual(['openSync(path', 'openSync(path']);
    // Packs are files of a remote, and of a directory beside the database.
    expect(imports('tape/src/remote/push.ts')).toEqual([]);
    expect(
      sources()
        .get('tape/src/remote/directory.ts')
        ?.match(/\bopen\(\w+/g),
    ).toEqual(['open(path', 'open(into', 'open(file', 'open(draft', 'open(dir']);
    // Of a repository, its ref; a pack goes to a new file, through git.
    expect(
      sources()
        .get('tape/src/remote/git-cache.ts')
        ?.match(/(?:read|write)FileSync\([\w.#]+/g),
    ).toEqual(['readFileSync(this.#ref', 'writeFileSync(draft']);
    expect(
      sources()
        .get('tape/src/remote/git.ts')
        ?.match(/openSync\(.*\)/g),
    ).toEqual(["openSync(into, 'wx', 0o600)"]);
    // The records of homes are files of another directory, and of a database only its inode is read.
    expect(imports('tape/src/origin/place-faults.ts').filter((name) => byContent.test(name))).toEqual([]);
    expect(sources().get('tape/src/origin/home-record.ts')).not.toMatch(
      /(?:readFile|writeFile|rm|rename)Sync\([^)]*tape\.db/,
    );
    // Of the log of a database, which is a file of the home, only the inode is read.
    expect(
      sources()
        .get('tape/src/origin/own-log.ts')
        ?.match(/(?:readFile|writeFile)Sync\(\w+/g),
    ).toEqual(['writeFileSync(record', 'readFileSync(file']);
    // These look without opening; the one that opens creates what was not there (O_EXCL), before SQLite knows of it.
    expect(imports('tape/src/store/open.ts')).toEqual(['existsSync', 'statSync']);
    expect(imports('tape/src/store/migrate.ts')).toEqual(['lstatSync', 'rmSync']);
    expect(imports('tape/src/sqlite/place.ts').filter((name) => byContent.test(name))).toEqual([
      'openSync',
      'readdirSync',
    ]);
    expect(
      sources()
        .get('tape/src/sqlite/place.ts')
        ?.match(/openSync\(/g),
    ).toHaveLength(1);
    expect(sources().get('tape/src/sqlite/place.ts')).toContain(
      'O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW',
    );
    // Of a database that cannot be read in place, only the log is opened, on which SQLite has no locks.
    expect(
      sources()
        .get('tape/src/sqlite/private-copy.ts')
        ?.match(/openSync\(\w+/g),
    ).toEqual(['openSync(wal']);
    // The synced files are copies, which are closed by then, and directories.
    const synced = [...sources()].flatMap(([name, text]) =>
      [...text.matchAll(/\bsync\((\w+(?:\(\w+\))?)\)/g)].map(([, what]) => `${name} ${what}`),
    );
    expect(synced.filter((call) => call.startsWith('tape/')).sort()).toEqual([
      'tape/src/remote/git-cache.ts draft',
      'tape/src/sqlite/draft-file.ts dirname(file)',
      'tape/src/sqlite/draft-file.ts draft',
      'tape/src/sqlite/place.ts dirname(at)',
    ]);
  });

  test('in the other packages no such call names a database', () => {
    const call =
      /\b(?:open|read|write|append|copy|cp|truncate|createReadStream)(?:File|Sync|FileSync|)\([^)\n]*(?:\.db\b|-wal|-shm)/;
    const found = [...sources()].flatMap(([name, text]) =>
      text.split('\n').flatMap((line, i) => (call.test(line) ? [`${name}:${i + 1}: ${line.trim()}`] : [])),
    );
    expect(found).toEqual([]);
  });
});
