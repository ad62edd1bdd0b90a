import { sessionName, view } from '@tapedeck/tape';
import {
  bodyHash,
  childName,
  encodeLine,
  entryHash,
  genesisHash,
  hashLine,
  isUlid,
  type LineageLine,
  nameMax,
  parseAnchorName,
  parseName,
  sha256,
  tapeName,
} from '@tapedeck/tape/store';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { playScript, scriptHashes } from '../support/script.ts';
import { openStore, refusal } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const ulid = '01JD0000000000000000000001';
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('names', () => {
  test('a tape is named after its session, in its base', () => {
    expect(tapeName('tape', 'main')).toBe('tape:main');
    expect(tapeName('bub', 's1', 1)).toBe('bub:s1');
    expect(tapeName('tape', 'main', 2)).toBe('tape:main~2');
  });

  test('a child is named after its parent, its task and 8 digits of the key or number', () => {
    const parent = { name: 'main', incarnation: 1 };
    expect(childName(parent, { by: 'task-1' })).toBe('main-fork-0b993cd6');
    expect(childName(parent, { by: 'clé ✓' })).toBe('main-fork-41443e1e');
    expect(childName(parent, { by: 1 })).toBe('main-fork-773ef036');
    expect(childName(parent, { by: '1' })).toBe('main-fork-3700252e');
    expect(childName({ ...parent, incarnation: 2 }, { by: 'task-1' })).toBe('main-fork-fb5fcab0');
    expect(childName(parent, { by: 'task-1', digits: 16 })).toBe('main-fork-0b993cd6b9fe16b8');
    expect(childName(parent, { by: 'task-1', task: 'Fix the naïve tests, and then all others' })).toBe(
      'main-fix-the-naive-tests-and-0b993cd6',
    );
    expect(childName(parent, { by: 'task-1', task: '修正' })).toBe('main-fork-0b993cd6');
  });

  test('the name of a parent is cut where that of its child would be too long', () => {
    const parent = { name: `${'x'.repeat(nameMax)}-fork-12345678`, incarnation: 1 };
    expect(childName(parent, { by: 'task-1' })).toBe(`${'x'.repeat(nameMax)}-fork--fork-f9dcd8bd`);
  });

  test.each([
    ['main', 'main'],
    ['Main', '!main'],
    ['C1/naïve #x', '!c1%2Fna%C3%AFve%20%23x'],
    ['mom@gmail.com', 'mom%40gmail.com'],
    ['!c1', '%21c1'],
    ['a..b::', 'a.%2Eb:%3A'],
    ['-x.', '%2Dx%2E'],
    ['\ud800', '%ED%A0%80'],
    ['😀', '%F0%9F%98%80'],
    ['00000000000000000000000000', '%300000000000000000000000000'],
    ['worker:00000000000000000000000000', '%77orker:00000000000000000000000000'],
    ['/'.repeat(61), `${'%2F'.repeat(38)}!-cc2ce4bdefb3c0c43ad20da637b57707aae6f6c44ebb4293439cf8b02594b9ce`],
  ])('the id %j has the name %s', (id, name) => {
    expect(sessionName(id)).toBe(name);
    expect(parseName(sessionName(id))).toBe(name);
  });

  test.each([
    'main',
    'a',
    '0',
    '_',
    'dm:gmail:mom@gmail.com',
    'group:slack:C1:thread:9',
    'dm:imessage:+1555',
    'a.b-c_d@e+f%20!',
    '%2Fetc',
    'x'.repeat(180),
  ])('a session can be called %j', (name) => {
    expect(parseName(name)).toBe(name);
  });

  test.each([
    '',
    '../x',
    'a/b',
    'a\\b',
    '/etc/passwd',
    'a..b',
    'a::b',
    '.hidden',
    '-x',
    'trailing-',
    'trailing.',
    ':a',
    'a:',
    '@a',
    'a@',
    '+a',
    'a b',
    'a\0b',
    'a\nb',
    'a\u200bb',
    'naïve',
    'ａ',
    '\ud800',
    'a~2',
    "a'; DROP TABLE tape; --",
    'x'.repeat(181),
    'x'.repeat(201),
    '01ARZ3NDEKTSV4RRFFQ69G5FAV',
    'worker:01ARZ3NDEKTSV4RRFFQ69G5FAV',
  ])('a session cannot be called %j', (name) => {
    expect(refusal(() => parseName(name)).code).toBe('TAPE_BAD_NAME');
  });

  test.each(['task', 'phase/2', 'a@b', '%20', 'v1.2', 'x'.repeat(200), 'Session', 'forked'])(
    'an anchor can be called %j',
    (name) => {
      expect(parseAnchorName(name)).toBe(name);
    },
  );

  test.each([
    '',
    '42',
    'head',
    'intention',
    'session/start',
    'fork/start',
    'merge/x',
    'inbox/refused',
    'a..b',
    'a::b',
    '/a',
    'a/',
    'a b',
    'a~1',
    'a\0',
    'x'.repeat(201),
  ])('an anchor cannot be called %j', (name) => {
    expect(refusal(() => parseAnchorName(name)).code).toBe('TAPE_BAD_NAME');
  });

  test.each([
    ['01ARZ3NDEKTSV4RRFFQ69G5FAV', true],
    ['01arz3ndektsv4rrffq69g5fav', false],
    ['81ARZ3NDEKTSV4RRFFQ69G5FAV', false],
    ['01ARZ3NDEKTSV4RRFFQ69G5FA', false],
    ['01ARZ3NDEKTSV4RRFFQ69G5FAVV', false],
    ['01ARZ3NDEKTSV4RRFFQ69G5FAI', false],
    ['01ARZ3NDEKTSV4RRFFQ69G5FAV\n', false],
  ])('%j is a ULID: %j', (text, is) => {
    expect(isUlid(text)).toBe(is);
  });
});

describe('hashes', () => {
  const salt = Uint8Array.from({ length: 16 }, (_, i) => i);
  const payload = '{"role":"user","content":[{"type":"text","text":"hé"}]}';
  const plain = 'df2a82b5c0bfdcc65f86aea7caaefa3309c5f494ca69befd1bdc27502400d1e4';
  const withMeta = '1cdac663399c9fe80f5c72db7203ff3b6d2ae1c79809430d58e6941617514213';
  const genesis = '4d6611db922a690b780b6fac750d4486db1e1e700e050fe9c02b47a88db5615f';
  const first = 'c2e95d8c3887b8cb794f7ed19e718da8306fed54d954313678a80adcfff5a13d';
  const second = '05dd07e599317be45792324e1e4dc881db30e6b053fbfb95c8ff5000f5d211eb';

  test('a body', () => {
    expect(hex(bodyHash(salt, payload, null))).toBe(plain);
    expect(hex(bodyHash(salt, payload, '{"model":"m"}'))).toBe(withMeta);
  });

  test('a chain of entries, from its beginning on', () => {
    expect(hex(genesisHash(ulid))).toBe(genesis);
    const none = { mark: null, name: null, ref: null, key: null };
    const message = { ...none, seq: 2, kind: 'message', at: 1795255200000 };
    expect(hex(entryHash(ulid, message, Buffer.from(plain, 'hex'), Buffer.from(genesis, 'hex')))).toBe(first);
    const boundary = {
      seq: 3,
      kind: 'anchor',
      mark: 'boundary',
      name: 'phase/é',
      ref: 2,
      at: 1795255200001,
      key: 'u:k"1',
    };
    expect(hex(entryHash(ulid, boundary, Buffer.from(withMeta, 'hex'), Buffer.from(first, 'hex')))).toBe(
      second,
    );
  });
});

test('a graph line contains no byte that a line reader could take for a line end', () => {
  const line: LineageLine = {
    v: 1,
    g: 1,
    event_id: ulid,
    type: 'session',
    session_id: 'main',
    parent_session_id: null,
    from_anchor: null,
    created_at: '2026-11-21T10:00:00.000Z',
    status: 'active',
    at: '2026-11-21T10:00:00.000Z',
    session: ulid,
    parent: null,
    tape: 'tape:main',
    kind: 'a\n\r\u2028\u2029\u0085\u007f\ufeff\u001b\ud800é"\\',
    prev: '0'.repeat(64),
  };
  const text = encodeLine(line);
  expect(text).toBe(
    String.raw`{"v":1,"g":1,"event_id":"01JD0000000000000000000001","type":"session","session_id":"main","parent_session_id":null,"from_anchor":null,"created_at":"2026-11-21T10:00:00.000Z","status":"active","at":"2026-11-21T10:00:00.000Z","session":"01JD0000000000000000000001","parent":null,"tape":"tape:main","kind":"a\n\r\u2028\u2029\u0085\u007f\ufeff\u001b\ud800é\"\\","prev":"0000000000000000000000000000000000000000000000000000000000000000"}`,
  );
  expect(JSON.parse(text)).toEqual(line);
  expect(hashLine(text)).toBe(sha256(text));
});

/** All that a database file holds, table by table, as text. */
function dump(path: string): Record<string, string[]> {
  using db = Object.assign(new Database(path, { readonly: true }), {
    [Symbol.dispose](this: { close(): void }) {
      this.close();
    },
  });
  const tables = db
    .prepare<[], { name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`)
    .all();
  return Object.fromEntries(
    tables.map(({ name }) => [
      name,
      db
        .prepare(`SELECT * FROM "${name}"`)
        .all()
        .map((row) => JSON.stringify(row)),
    ]),
  );
}

interface Outcome {
  readonly rows: Record<string, string[]>;
  readonly lines: readonly string[];
  readonly views: readonly string[];
  readonly head: string | undefined;
}

/** The rows, lines and views of the script. */
async function outcome(): Promise<Outcome> {
  using dir = tempDir();
  const path = dir.file('tape.db');
  using store = openStore(path);
  await playScript(store);
  const views = ['main', 'one', 'two'].flatMap((name) =>
    (['last-boundary', 'full'] as const).map((policy) =>
      JSON.stringify(
        view(store.views.entries(name, { policy }), { policy, target: { provider: 'anthropic' } }).messages,
      ),
    ),
  );
  const rows = dump(path);
  const lines = (rows.lineage ?? []).map((row) => String(JSON.parse(row).line));
  return { rows, lines, views, head: store.sessions.find('main')?.headHash };
}

test('the same script produces the same bytes: rows, lines and views', async () => {
  const once = await outcome();
  expect(await outcome()).toEqual(once);
  expect(once.lines.map((line) => JSON.parse(line).type)).toEqual([
    'session',
    'fork',
    'fork',
    'status',
    'merge',
    'merge',
    'alias',
    'archive',
  ]);
  expect(once.rows.entry?.length).toBe(21);
});

test('the hashes of the script are fixed values, on every machine and at any time', async () => {
  const { head, lines, views } = await outcome();
  expect({ head, lines: sha256(lines.join('\n')), views: sha256(views.join('\n')) }).toEqual(scriptHashes);
});
