import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { openJournal } from '@tapedeck/graph';
import { anchor, openTapeStore, type SqliteTapeStore, TapeError, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { afterAll, describe, expect, test } from 'vitest';
import { MemoryJournal } from '../support/memory-journal.ts';
import { rawDb } from '../support/raw-db.ts';
import { openStore, refusal } from '../support/store.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { treeOf } from '../support/tree.ts';

const page = 4096;

/**
 * A home with forks, a merge, bytes, an index, and entries that take several pages; closed, so that all is in one
 * file.
 */
function makeWhole(): TempDir {
  const dir = tempDir();
  using store = openStore(dir.file('tape.db'), { journal: new MemoryJournal() });
  store.sessions.open('main');
  store.entries.append('main', [user('hello'), anchor('start', { a: 1 }), user('x'.repeat(40_000))]);
  for (let n = 0; n < 200; n += 1) store.entries.append('main', [user(`entry ${n} ${'y'.repeat(200)}`)]);
  store.entries.append('main', [
    user([{ type: 'file', mediaType: 'a/b', data: new Uint8Array(3000).fill(7) }]),
  ]);
  store.lineage.fork('main', { name: 'child' });
  store.entries.append('child', [user('own')]);
  store.lineage.merge('child', { text: 'done' });
  store.entries.search({ text: 'entry' });
  store.sessions.open('second');
  store.entries.append('second', [user('hello'), user('again')]);
  return dir;
}

const whole = makeWhole();
afterAll(() => whole[Symbol.dispose]());

/** The outcome of opening a damaged copy for reading and for writing, and of reading all of it, which never throws. */
interface Outcome {
  readonly refused: string | undefined;
  readonly named: readonly string[];
}

function look(path: string, readonly: boolean): Outcome {
  let opened: SqliteTapeStore;
  try {
    opened = openTapeStore(path, { readonly, journal: new MemoryJournal() });
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    return { refused: error.code, named: [] };
  }
  using store = opened;
  const found = [...store.verifyDatabase(), ...store.verify()];
  return { refused: undefined, named: found.map(({ code, session }) => `${code} ${session ?? '-'}`) };
}

/** The first page of one kind of a table or an index. */
function pageOf(name: string, kind: 'leaf' | 'overflow' = 'leaf'): number {
  using db = rawDb(whole.file('tape.db'));
  const [row] = db.all<{ pageno: number }>(
    'SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY pageno',
    name,
    kind,
  );
  if (row === undefined) throw new Error(`${name} has no ${kind} page`);
  return (row.pageno - 1) * page;
}

type Spoil = (path: string) => void;

const cut =
  (size: (all: number) => number): Spoil =>
  (path) =>
    truncateSync(path, size(statSync(path).size));

/** Changes the bytes from a place on. */
const bytes =
  (at: number, change: (run: Buffer) => void): Spoil =>
  (path) => {
    const all = readFileSync(path);
    change(all.subarray(at));
    writeFileSync(path, all);
  };

const flip = (at: number) =>
  bytes(at, (run) => {
    run[0] = (run[0] ?? 0) ^ 0x40;
  });

const zero = (at: number) => bytes(at, (run) => run.fill(0, 0, page));

/** Puts another text of the same length wherever a text is. */
const replaced = (text: string, other: string) =>
  bytes(0, (all) => {
    if (!all.includes(text)) throw new Error(`there is no ${text}`);
    for (let at = all.indexOf(text); at !== -1; at = all.indexOf(text, at + 1)) all.write(other, at);
  });

const sql =
  (text: string): Spoil =>
  (path) => {
    using db = rawDb(path);
    db.exec(`PRAGMA foreign_keys = OFF; ${text}`);
  };

/** The same behind the triggers' back, which are as they were afterwards. */
const behind =
  (text: string): Spoil =>
  (path) => {
    using db = rawDb(path);
    const triggers = db.all<{ sql: string }>(`SELECT sql FROM sqlite_schema WHERE type = 'trigger'`);
    db.dropTriggers();
    db.exec(`PRAGMA foreign_keys = OFF; ${text}; ${triggers.map((trigger) => trigger.sql).join(';')}`);
  };

const damaged = /^(?:TAPE_CORRUPT|database-damaged -)/;
const trigger = /^trigger-wrong -$/;
const index = /^index-wrong -$/;
const foreign = /^TAPE_NOT_A_TAPE$/;
const half = (all: number) => Math.floor(all / 2 / page) * page;

/** The change of the file, and the first refusal or finding after it. */
const spoiled: [what: string, spoil: Spoil, outcome: RegExp][] = [
  ['cut to 99 bytes', cut(() => 99), damaged],
  ['cut to its header', cut(() => 100), damaged],
  ['cut to its first page', cut(() => page), damaged],
  ['cut in half', cut(half), damaged],
  ['cut in half, within a page', cut((all) => half(all) + 777), damaged],
  ['cut by its last page', cut((all) => all - page), damaged],
  ['another magic', flip(3), damaged],
  ['another page size', flip(16), damaged],
  ['another application id', flip(68), foreign],
  ['no application id', sql('PRAGMA application_id = 0'), foreign],
  ['no version', sql('PRAGMA user_version = 0'), /^TAPE_(?:SCHEMA_OLDER|CORRUPT)$/],
  ['a version below all', sql('PRAGMA user_version = -1'), damaged],
  ['a cell flipped on the page of the schema', flip(108), damaged],
  ['the page of the schema zeroed', zero(0), damaged],
  ['a text of the schema changed', replaced('none is ever deleted', 'all may be deleted! '), trigger],
  ['the kind of a leaf page flipped', flip(pageOf('entry')), damaged],
  ['a leaf page of entries zeroed', zero(pageOf('entry')), damaged],
  ['a byte of a body changed', replaced('"text":"own"', '"text":"owm"'), /^entry-changed child$/],
  ['a byte of an overflow page flipped', flip(pageOf('entry', 'overflow') + 1000), /^entry-changed main$/],
  ['the next overflow page gone', zero(pageOf('entry', 'overflow')), damaged],
  ['a byte of stored bytes changed', replaced('\x07'.repeat(3000), '\x08'), /^blob-changed main$/],
  ['an index page flipped', flip(pageOf('entry_name')), damaged],
  ['a byte of an index flipped', flip(pageOf('sqlite_autoindex_entry_1') + page - 3), damaged],
  ['an index page zeroed', zero(pageOf('sqlite_autoindex_entry_1')), damaged],
  ['the tapes zeroed', zero(pageOf('tape')), damaged],
  ['the lineage zeroed', zero(pageOf('lineage')), damaged],
  [
    'two tapes swapped',
    behind(`UPDATE tape SET name = 'tmp' WHERE name = 'main'; UPDATE tape SET name = 'main' WHERE name = 'second';
      UPDATE tape SET name = 'second' WHERE name = 'tmp'`),
    /^row-changed/,
  ],
  [
    'two entries swapped between tapes',
    behind(`UPDATE entry SET seq = 1000 WHERE seq = 2 AND tape_id = 1; UPDATE entry SET tape_id = 1 WHERE seq = 2 AND tape_id = 3;
      UPDATE entry SET tape_id = 3, seq = 2 WHERE seq = 1000`),
    /^chain-broken main$/,
  ],
  ['a trigger gone', sql('DROP TRIGGER entry_update'), trigger],
  [
    'a trigger that does nothing any more',
    sql(
      'DROP TRIGGER entry_delete; CREATE TRIGGER entry_delete BEFORE DELETE ON entry WHEN 0 BEGIN SELECT 1; END',
    ),
    trigger,
  ],
  ['a trigger put in', sql('CREATE TRIGGER spy AFTER INSERT ON entry BEGIN SELECT 1; END'), damaged],
  ['a view put in', sql('CREATE VIEW spy AS SELECT * FROM entry'), damaged],
  ['an index gone', sql('DROP INDEX entry_turn'), index],
  ['an index of other columns', sql('DROP INDEX entry_name; CREATE INDEX entry_name ON entry (at)'), index],
  ['without the search index', sql('DROP TABLE entry_fts'), /^search-wrong -$/],
  ['an index put in', sql('CREATE INDEX spy ON entry (at)'), damaged],
  ['a column gone', behind('ALTER TABLE tape DROP COLUMN title'), damaged],
  [
    'a view in the place of a table',
    behind('DROP TABLE touch; CREATE VIEW touch AS SELECT 1 AS tape_id'),
    damaged,
  ],
  ...['lineage', 'inbox', 'lease', 'touch', 'open_calls', 'blob_ref', 'home'].map(
    (table): [string, Spoil, RegExp] => [`without the table ${table}`, sql(`DROP TABLE ${table}`), damaged],
  ),
];

describe('a database with', () => {
  test('no damage has no findings', () => {
    expect(look(whole.file('tape.db'), true)).toEqual({ refused: undefined, named: [] });
  });

  test.each(spoiled)('%s is refused or named, and not written', (_, spoil, outcome) => {
    for (const readonly of [true, false]) {
      using dir = tempDir();
      const path = dir.file('tape.db');
      cpSync(whole.file('tape.db'), path);
      spoil(path);
      const before = readFileSync(path);
      const { refused, named } = look(path, readonly);
      expect(refused ?? named[0]).toMatch(outcome);
      expect(readFileSync(path).equals(before)).toBe(true);
    }
  });
});

describe('what follows from the format is put back', () => {
  /** The codes before and after everything was mended, and whether each was. */
  const mended = (spoil: Spoil) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    cpSync(whole.file('tape.db'), path);
    spoil(path);
    using store = openTapeStore(path);
    const found = () => [...store.verifyDatabase(), ...store.verify()];
    const before = found().map((problem) => [problem.code, store.mend(problem)]);
    return {
      before,
      after: found().map(({ code }) => code),
      hits: store.entries.search({ text: 'again' }).hits.length,
    };
  };

  test.each<[string, Spoil, string]>([
    ['a trigger', sql('DROP TRIGGER lineage_update'), 'trigger-wrong'],
    [
      'a trigger of another text',
      sql('DROP TRIGGER tape_delete; CREATE TRIGGER tape_delete BEFORE DELETE ON tape BEGIN SELECT 1; END'),
      'trigger-wrong',
    ],
    ['an index', sql('DROP INDEX lineage_tape'), 'index-wrong'],
    ['an index that keeps keys unique', sql('DROP INDEX entry_key'), 'index-wrong'],
    ['the search index', sql('DROP TABLE entry_fts'), 'search-wrong'],
  ])('%s', (_, spoil, code) => {
    expect(mended(spoil)).toEqual({ before: [[code, true]], after: [], hits: 1 });
  });

  test('an index that rows contradict is not built, and an added trigger stays', () => {
    const twice = sql(`DROP INDEX tape_ordinal; DROP TRIGGER tape_update;
      UPDATE tape SET parent_id = 1, ordinal = 1, base_seq = 1, floor_seq = 1 WHERE name = 'second'`);
    const { before, after } = mended(twice);
    expect(before).toEqual(
      expect.arrayContaining([
        ['index-wrong', false],
        ['trigger-wrong', true],
      ]),
    );
    expect(after).toContain('index-wrong');
    expect(after).not.toContain('trigger-wrong');
    const added = sql('CREATE TRIGGER spy AFTER INSERT ON entry BEGIN SELECT 1; END');
    expect(mended(added)).toMatchObject({
      before: [['database-damaged', false]],
      after: ['database-damaged'],
    });
  });
});

describe('a file that is not ours keeps every byte, and so do the files beside it', () => {
  /** Another program's file with triggers and views, in WAL mode, as its crash left it. */
  const crashed = (path: string, text: string) => {
    using made = tempDir();
    const db = new Database(made.file('x.db'));
    db.exec(`PRAGMA journal_mode = WAL; ${text}`);
    for (const suffix of ['', '-wal', '-shm']) cpSync(made.file(`x.db${suffix}`), `${path}${suffix}`);
    db.close();
  };
  const theirs = `CREATE TABLE entry (a); CREATE VIEW tape AS SELECT 1; INSERT INTO entry VALUES (1);
    CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entry; END`;

  test.each<[string, (path: string) => void, string]>([
    ['a database with triggers and views', (path) => crashed(path, theirs), 'TAPE_NOT_A_TAPE'],
    [
      'one with our table names and no id',
      (path) => crashed(path, `CREATE TABLE tape (id); CREATE TABLE entry (id)`),
      'TAPE_NOT_A_TAPE',
    ],
    [
      'one with another id',
      (path) => crashed(path, 'PRAGMA application_id = 7; CREATE TABLE t (a)'),
      'TAPE_NOT_A_TAPE',
    ],
    [
      'one of ours that is newer',
      (path) =>
        crashed(path, 'PRAGMA application_id = 0x54415045; PRAGMA user_version = 99; CREATE TABLE t (a)'),
      'TAPE_SCHEMA_NEWER',
    ],
    ['a text', (path) => writeFileSync(path, 'my diary, page one.\n'.repeat(400)), 'TAPE_CORRUPT'],
    [
      'a picture',
      (path) => writeFileSync(path, Buffer.from('\x89PNG\r\n\x1a\n'.padEnd(5000, 'x'), 'latin1')),
      'TAPE_CORRUPT',
    ],
  ])('%s', (_, make, code) => {
    for (const readonly of [true, false]) {
      using dir = tempDir();
      mkdirSync(dir.file('home'), { mode: 0o700 });
      make(dir.file('home/tape.db'));
      // Shared memory is no content: SQLite rebuilds it each time.
      const content = () =>
        Object.entries(treeOf(dir.file('home'))).filter(([name]) => name !== '.' && !name.endsWith('-shm'));
      const before = content();
      expect(refusal(() => openTapeStore(dir.file('home/tape.db'), { readonly })).code).toBe(code);
      expect(content()).toEqual(before);
    }
  });
});

describe('a copy taken during writes, or half lost', () => {
  /** A home in use, whose newest entries are in the log alone, copied as it is. */
  const copyOfRunning = (dir: TempDir, suffixes: readonly string[], graph: boolean) => {
    mkdirSync(dir.file('copy'), { mode: 0o700 });
    using store = openTapeStore(dir.file('tape.db'), { journal: openJournal(dir.file('graph')) });
    store.sessions.open('main');
    store.entries.append('main', [user('one')]);
    store.checkpoint();
    store.entries.append('main', [user('two')]);
    store.lineage.fork('main', { name: 'child' });
    for (const suffix of suffixes) cpSync(dir.file(`tape.db${suffix}`), dir.file(`copy/tape.db${suffix}`));
    if (graph) cpSync(dir.file('graph'), dir.file('copy/graph'));
    return () => openTapeStore(dir.file('copy/tape.db'), { journal: openJournal(dir.file('copy/graph')) });
  };

  test('the database with its log is complete, with or without its shared memory', () => {
    for (const suffixes of [
      ['', '-wal'],
      ['', '-wal', '-shm'],
    ]) {
      using dir = tempDir();
      using copy = copyOfRunning(dir, suffixes, true)();
      expect([...copy.verifyDatabase(), ...copy.verify()]).toEqual([]);
      expect(copy.sessions.find('child')?.head).toBe(4);
    }
  });

  test('the shared memory of another time does no harm', () => {
    using dir = tempDir();
    const open = copyOfRunning(dir, ['', '-wal', '-shm'], true);
    const shm = dir.file('copy/tape.db-shm');
    writeFileSync(shm, Buffer.alloc(statSync(shm).size, 0x55));
    using copy = open();
    expect([...copy.verifyDatabase(), ...copy.verify()]).toEqual([]);
    expect(copy.sessions.find('child')?.head).toBe(4);
  });

  test('the database without its log is an earlier state, and the graph file shows that', () => {
    using dir = tempDir();
    const open = copyOfRunning(dir, [''], true);
    const before = readFileSync(dir.file('copy/graph'));
    using copy = open();
    const { aside } = copy.graphFile;
    expect(aside).toHaveLength(1);
    expect(readFileSync(aside[0] ?? '').equals(before)).toBe(true);
    expect([...copy.verify()]).toEqual([]);
    expect(copy.sessions.find('main')?.head).toBe(2);
  });

  test('a log that is cut or flipped anywhere is a shorter history, and never a damaged one', () => {
    using dir = tempDir();
    copyOfRunning(dir, ['', '-wal'], false);
    const wal = readFileSync(dir.file('copy/tape.db-wal'));
    const heads = new Set<number>();
    for (let at = 0; at < wal.length; at += 1999) {
      for (const how of ['cut', 'flipped']) {
        const other = Buffer.from(how === 'cut' ? wal.subarray(0, at) : wal);
        if (how === 'flipped') other[at] = (other[at] ?? 0) ^ 1;
        using copied = tempDir();
        cpSync(dir.file('copy/tape.db'), copied.file('tape.db'));
        writeFileSync(copied.file('tape.db-wal'), other);
        using copy = openTapeStore(copied.file('tape.db'));
        expect([...copy.verifyDatabase(), ...copy.verify()], `${how} at ${at}`).toEqual([]);
        heads.add(copy.sessions.find('main')?.head ?? 0);
      }
    }
    expect([...heads].sort()).toEqual([2, 3]);
  });

  test('an empty file beside a graph file is no new home', () => {
    using dir = tempDir();
    const open = copyOfRunning(dir, [''], true);
    truncateSync(dir.file('copy/tape.db'), 0);
    const before = readFileSync(dir.file('copy/graph'));
    expect(refusal(open).code).toBe('GRAPH_DIVERGED');
    expect(readFileSync(dir.file('copy/graph')).equals(before)).toBe(true);
    expect(readdirSync(dir.file('copy'))).toContain('graph');
  });
});
