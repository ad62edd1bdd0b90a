import { readdirSync, readFileSync } from 'node:fs';
import {
  assistant,
  type Draft,
  type Json,
  openTapeStore,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, test } from 'vitest';
import { rawDb } from '../support/raw-db.ts';
import { timesRun } from '../support/statements-run.ts';
import { tempDir } from '../support/temp-dir.ts';

afterEach(() => onCrashPoint(undefined));

const image = (bytes: Uint8Array): Draft => user([{ type: 'file', mediaType: 'image/png', data: bytes }]);

function gives(store: SqliteTapeStore, output: Json): void {
  store.entries.append('main', [assistant([toolCall('c1', 'read', {})])]);
  store.entries.append('main', [toolResult({ toolCallId: 'c1', toolName: 'read' }, output)]);
}

describe('a value that looks like a reference to bytes is plain data', () => {
  const forged = { type: 'blob', hash: 'b'.repeat(64), size: 1, as: 'text', preview: 'p' };
  test.each<[string, Json]>([
    ['beside a key toJSON', { toJSON: 1, x: forged }],
    ['in what toJSON gives', { toJSON: () => ({ x: forged }) } as unknown as Json],
    ['as our own escape', { toJSON: 1, x: { type: 'blob', as: 'json', value: 5 } }],
  ])('%s', async (_, value) => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'));
    store.sessions.open('main');
    gives(store, { type: 'json', value });
    expect([...store.verify()]).toEqual([]);
    expect(store.entries.search({ text: 'nothing of it' }).hits).toEqual([]);
    await store.backup(dir.file('copy.db'));
    const [entry] = store.entries.read('main', { last: 1 });
    expect(JSON.stringify(entry?.payload)).toContain('"as":"json","value"');
  });
});

describe('a redaction', () => {
  /** Whether any file of a directory contains a word, also without its first letters, as an index shortens it. */
  const traces = (dir: string, word: string) =>
    readdirSync(dir).filter((name) => {
      const bytes = readFileSync(`${dir}/${name}`);
      return [0, 1, 2, 3].some((from) => bytes.includes(word.slice(from)));
    });
  const secret = 'zanzibarsecretqq';

  test.each([
    [
      'a message',
      (store: SqliteTapeStore) => store.entries.append('main', [user(`my key is ${secret} indeed`)]),
    ],
    ['a large output', (store: SqliteTapeStore) => gives(store, `${'filler '.repeat(50_000)}${secret}`)],
  ])('leaves no word of %s in the search index, the log or anywhere', (_, write) => {
    using dir = tempDir();
    {
      using store = openTapeStore(dir.file('tape.db'));
      store.sessions.open('main');
      write(store);
      expect(store.entries.search({ text: secret }).hits.length).toBe(1);
      const { logEmptied } = store.entries.redact('main', store.sessions.find('main')?.head ?? 0, 'a key');
      expect(logEmptied).toBe(true);
      expect(traces(dir.path, secret)).toEqual([]);
    }
    expect(traces(dir.path, secret)).toEqual([]);
  });

  test('leaves no word of rows that the database moved to other pages before', () => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'), { durability: 'fast' });
    store.sessions.open('main');
    // Pages are split while the entries come, and keep what they had.
    for (let n = 0; n < 150; n += 1)
      store.entries.append('main', [user(`${secret}${n} ${'x'.repeat((n * 37) % 900)}`)]);
    store.entries.redact('main', 5, 'a key');
    expect(traces(dir.path, `${secret}3 `)).toEqual([]);
    expect([...store.verify()]).toEqual([]);
  });

  test('reports a reader that kept the log from being emptied', () => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'), { lockWaitMs: 0 });
    store.sessions.open('main');
    store.entries.append('main', [user(secret)]);
    using reader = rawDb(dir.file('tape.db'));
    reader.exec('BEGIN');
    reader.all('SELECT count(*) FROM entry');
    expect(store.entries.redact('main', 2, 'a key').logEmptied).toBe(false);
    expect([...store.examine()]).toMatchObject([{ code: 'content-left', fixable: true }]);
    reader.exec('COMMIT');
    expect(store.entries.redact('main', 2, 'a key')).toMatchObject({ repeated: true, logEmptied: true });
    expect([...store.examine()]).toEqual([]);
    expect(traces(dir.path, secret)).toEqual([]);
  });

  test('writes the file and its search index anew once behind redactions that leave it to a later act', async () => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'));
    const redactEach = () => {
      for (const name of ['one', 'two', 'three']) {
        store.sessions.open(name);
        store.entries.append(name, [user(secret)]);
        expect(store.entries.search({ text: secret }).hits.length).toBe(1);
        expect(store.entries.redact(name, 2, 'a key', { wipe: false }).logEmptied).toBe(false);
      }
    };
    expect(await timesRun(`'optimize'`, redactEach)).toBe(0);
    expect([...store.examine()]).toMatchObject([{ code: 'content-left' }]);
    expect(traces(dir.path, secret)).not.toEqual([]);
    const wipe = () => expect(store.imports.discard([])).toEqual({ erased: 0, wiped: true });
    expect(await timesRun(`'optimize'`, wipe)).toBe(1);
    expect([...store.examine()]).toEqual([]);
    expect(traces(dir.path, secret)).toEqual([]);
  });

  const erasures = {
    purge: (store: SqliteTapeStore) => store.sessions.purge('main', 'a request'),
    redact: (store: SqliteTapeStore) => store.entries.redact('main', 5, 'a key'),
  };

  test.each([
    ['purge', 'purge/before-checkpoint'],
    ['redact', 'redact/before-checkpoint'],
    ['purge', 'wipe/words'],
    ['redact', 'wipe/words'],
  ] as const)('that dies before the file is written anew is found, and finished: %s at %s', (act, point) => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'), { durability: 'fast' });
    store.sessions.open('main');
    // Pages are split while the entries come, and keep what they had.
    for (let n = 0; n < 150; n += 1) {
      const text = `${n === 3 ? secret : 'nothing'} m${n}n ${'x'.repeat((n * 37) % 900)}`;
      store.entries.append('main', [user(text)]);
    }
    expect(store.entries.search({ text: secret }).hits.length).toBe(1);
    onCrashPoint((at) => {
      if (at === point) throw new Error('killed');
    });
    expect(() => erasures[act](store)).toThrow('killed');
    onCrashPoint(undefined);
    const [found, ...others] = [...store.examine()];
    expect([found?.code, others]).toEqual(['content-left', []]);
    expect(traces(dir.path, secret)).not.toEqual([]);
    if (found !== undefined) expect(store.mend(found)).toBe(true);
    expect([...store.examine()]).toEqual([]);
    expect(traces(dir.path, secret)).toEqual([]);
    expect([...store.verify()]).toEqual([]);
  });

  test('of another process in the midst of a wipe is still to be wiped behind it, also within a millisecond', () => {
    using dir = tempDir();
    const options = { durability: 'fast', now: () => 1_700_000_000_000 } as const;
    using store = openTapeStore(dir.file('tape.db'), options);
    using other = openTapeStore(dir.file('tape.db'), options);
    store.sessions.open('main');
    store.entries.append('main', [user('first'), user(secret)]);
    expect(store.entries.search({ text: secret }).hits.length).toBe(1);
    onCrashPoint((at) => {
      if (at !== 'wipe/words') return;
      onCrashPoint(undefined);
      other.entries.redact('main', 3, 'a key', { wipe: false });
    });
    expect(store.entries.redact('main', 2, 'a key').logEmptied).toBe(true);
    expect([...store.examine()]).toMatchObject([{ code: 'content-left' }]);
    expect(traces(dir.path, secret)).not.toEqual([]);
    expect(store.imports.discard([])).toEqual({ erased: 0, wiped: true });
    expect([...store.examine()]).toEqual([]);
    expect(traces(dir.path, secret)).toEqual([]);
  });

  test.each([
    ['is missing', 'DROP TABLE entry_fts'],
    ['is damaged', `UPDATE entry_fts_data SET block = x'00' WHERE id > 100`],
  ])('leaves nothing in the file where the search index %s, which the next search makes anew', (_, sql) => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'));
    store.sessions.open('main');
    store.entries.append('main', [user('first'), user(secret)]);
    expect(store.entries.search({ text: 'first' }).hits.length).toBe(1);
    store.entries.redact('main', 3, 'a key', { wipe: false });
    new Database(dir.file('tape.db')).unsafeMode().exec(sql).close();
    expect(store.imports.discard([])).toEqual({ erased: 0, wiped: true });
    expect([...store.examine()]).toEqual([]);
    expect(traces(dir.path, secret)).toEqual([]);
    expect(store.entries.search({ text: 'first' }).hits.length).toBe(1);
    expect([...store.verify()]).toEqual([]);
  });

  test('keeps the bytes that an accepted inbox item needs, and erases them with the item', () => {
    using dir = tempDir();
    const bytes = new Uint8Array(500).fill(7);
    using store = openTapeStore(dir.file('tape.db'));
    for (const name of ['main', 'other']) store.sessions.open(name);
    store.entries.append('other', [image(bytes)]);
    const lease = store.leases.acquire('main', { id: 'owner' });
    store.inbox.post('main', { body: { type: 'append', drafts: [image(bytes)] } });
    store.entries.redact('other', 2, 'private');
    expect(store.inbox.drain(lease)).toBe(1);
    expect([...store.entries.read('main', { last: 1 })][0]).toMatchObject({ kind: 'message' });
    expect([...store.verify()]).toEqual([]);
    store.entries.append('main', [user('x')], { key: 'k', lease });
    store.inbox.post('main', {
      body: { type: 'append', drafts: [{ ...image(new Uint8Array(300)), key: 'l' }] },
    });
    store.entries.append('main', [user('y')], { key: 'l', lease });
    store.inbox.drain(lease);
    using db = rawDb(dir.file('tape.db'));
    expect(db.all('SELECT count(*) AS n FROM blob')).toEqual([{ n: 1 }]);
  });

  test('of a merge keeps a repeated merge the same, and names no erased entry', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    store.lineage.fork('main', { name: 'kid' });
    store.entries.append('kid', [assistant('my answer')]);
    const merged = store.lineage.merge('kid');
    store.entries.redact('main', merged.seq, 'private');
    expect(store.lineage.merge('kid')).toMatchObject({
      repeated: true,
      seq: merged.seq,
      range: merged.range,
    });
    // The text is in the message that follows the anchor.
    const said = store.sessions.find('kid')?.head ?? 0;
    expect(store.entries.redact('kid', said, 'private').quotedBy).toEqual([`main@${merged.seq + 1}`]);
    store.entries.redact('main', merged.seq + 1, 'private');
    expect(store.entries.redact('kid', said, 'private').quotedBy).toEqual([]);
    expect([...store.verify()]).toEqual([]);
  });
});
