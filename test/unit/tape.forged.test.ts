import { readFileSync, writeFileSync } from 'node:fs';
import { check } from '@tapedeck/runtime';
import { assistant, openTapeStore, type SqliteTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { type Forger, forge } from '../support/forge.ts';
import { sha256 } from '../support/format-hash.ts';
import { disagreements } from '../support/python.ts';
import { tempDir } from '../support/temp-dir.ts';

/**
 * `main` with a child that was merged into it, and a text that was merged as given; `old`, which was archived with
 * seven entries; `new`, an alias of it.
 */
function write(store: SqliteTapeStore): void {
  store.sessions.open('main');
  store.entries.append('main', [user('Look.'), assistant([toolCall('c', 'read', {})])]);
  store.entries.append('main', [toolResult({ toolCallId: 'c', toolName: 'read' }, 'A text.')]);
  store.lineage.fork('main', { name: 'child', key: 'look' });
  store.entries.append('child', [user('More.'), assistant('The sky is blue.')]);
  store.lineage.merge('child');
  store.entries.append('main', [user('Thanks.')]);
  store.lineage.fork('main', { name: 'told' });
  store.lineage.merge('told', { text: 'As I said.' });
  store.sessions.open('old');
  for (let n = 2; n <= 7; n += 1) store.entries.append('old', [user(`Line ${n}`)]);
  store.sessions.update('old', { alias: { name: 'new', reason: 'a better name' } });
  store.sessions.update('old', { lifecycle: 'archived' });
}

type Found = readonly [code: string, session: string | null, seq: number | null];

/** The bytes of a sound file, which is written once. */
const sound = (() => {
  let bytes: Uint8Array | undefined;
  const written = () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      write(store);
      expect([...store.verify(), ...store.verifyDatabase(), ...store.examine()]).toEqual([]);
      for (const name of ['main', 'child', 'told', 'old']) expect([...store.verify(name)]).toEqual([]);
    }
    return readFileSync(path);
  };
  return () => (bytes ??= written());
})();

/** The problems of a forged file: of all of it, or of one session. */
function found(act: (forger: Forger) => void, session?: string): Found[] {
  using dir = tempDir();
  const path = dir.file('tape.db');
  writeFileSync(path, sound(), { mode: 0o600 });
  forge(path, act);
  using store = openTapeStore(path, { readonly: true });
  expect([...store.verifyDatabase()]).toEqual([]);
  if (session === undefined) expect(disagreements(path, [...store.verify()])).toEqual([]);
  return [...store.verify(session)].map(({ code, session: of, seq }) => [code, of, seq]);
}

const sky = (payload: string) => payload.replace('blue', 'green');

describe('a history that was rewritten with a consistent chain is contradicted', () => {
  test.each<[string, string, (forger: Forger) => void, Found[]]>([
    [
      'an archived session cut by five',
      'old',
      (db) => db.cut('old', 5),
      [['head-contradicted', 'old', null]],
    ],
    [
      'its last entry rewritten',
      'old',
      (db) => db.rewrite('old', 7, (payload) => payload.replace('Line', 'Lime')),
      [['head-contradicted', 'old', null]],
    ],
    [
      'a parent cut to before its merges',
      'main',
      (db) => {
        db.cut('main', 5);
      },
      [['tail-missing', 'main', 5]],
    ],
    ['a merged child cut', 'child', (db) => db.cut('child', 1), [['tail-missing', 'child', 7]]],
    [
      'a merged child edited',
      'child',
      (db) => db.rewrite('child', 7, sky),
      [['head-contradicted', 'child', 7]],
    ],
    [
      'the message of a merge rewritten',
      'main',
      (db) => db.rewrite('main', 6, sky),
      [
        ['head-contradicted', 'main', 6],
        ['head-contradicted', 'main', 7],
        ['head-contradicted', 'main', 9],
        ['merge-contradicted', 'main', 5],
        ['head-contradicted', 'told', 8],
      ],
    ],
    [
      'the message of a merge of a given text rewritten',
      'main',
      (db) => db.rewrite('main', 9, (payload) => payload.replace('said', 'say')),
      [
        ['head-contradicted', 'main', 9],
        ['merge-contradicted', 'main', 8],
      ],
    ],
    [
      'a first entry rewritten',
      'main',
      (db) => db.rewrite('main', 2, (payload) => payload.replace('Look', 'Book')),
      [
        ['head-contradicted', 'main', 4],
        ['head-contradicted', 'main', 6],
        ['head-contradicted', 'main', 7],
        ['head-contradicted', 'main', 9],
        ['head-contradicted', 'child', 7],
        ['head-contradicted', 'told', 8],
      ],
    ],
  ])('%s', (_, session, act, problems) => {
    expect(found(act, session)).toEqual(problems);
    expect(found(act)).toEqual(expect.arrayContaining(problems));
  });

  test('the parent alone shows that its merged child was edited, or cut', () => {
    expect(found((db) => db.rewrite('child', 7, sky), 'main')).toEqual([['head-contradicted', 'child', 7]]);
    expect(found((db) => db.cut('child', 1), 'main')).toEqual([['tail-missing', 'child', 7]]);
  });

  test('a merge that was rewritten in its message, its mark and the lineage is not what its child said', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    const said = 'The sky is blue.';
    {
      using store = openTapeStore(path);
      store.sessions.open('main');
      store.lineage.fork('main', { name: 'child' });
      store.entries.append('child', [assistant(said)]);
      store.lineage.merge('child');
    }
    forge(path, (db) => {
      db.rewrite('main', 2, (payload) => payload.replace(sha256(said), sha256(sky(said))));
      db.rewrite('main', 3, sky);
      db.relink();
    });
    using store = openTapeStore(path, { readonly: true });
    for (const session of ['main', undefined])
      expect([...store.verify(session)].map(({ code, seq }) => [code, seq])).toEqual([
        ['merge-contradicted', 2],
      ]);
    expect(disagreements(path, [...store.verify()])).toEqual([]);
  });
});

/** `main` with one merged child, all hashes of it made anew after an act; the mark is at 2, the message at 3. */
function foundInMerge(act: (forger: Forger) => void): Found[] {
  using dir = tempDir();
  const path = dir.file('tape.db');
  {
    using store = openTapeStore(path);
    store.sessions.open('main');
    store.lineage.fork('main', { name: 'child' });
    store.entries.append('child', [assistant('The sky is blue.')]);
    store.lineage.merge('child');
  }
  forge(path, (db) => {
    act(db);
    db.relink();
  });
  using store = openTapeStore(path, { readonly: true });
  const problems = [...store.verify()];
  expect([...store.verify('main')]).toEqual(problems);
  expect(disagreements(path, problems)).toEqual([]);
  return problems.map(({ code, session, seq }) => [code, session, seq]);
}

describe('a mark of a merge that was disguised is still compared', () => {
  const set = (what: string) => `UPDATE entry SET ${what} WHERE tape_id = 1 AND seq = 2`;
  test.each<[string, (forger: Forger) => void]>([
    ['without its key', (db) => db.run(set('key = NULL'))],
    ['with the key of a user', (db) => db.run(set(`key = 'u:x'`))],
    ['with a longer key', (db) => db.run(set(`key = key || 'ff'`))],
    ['with another name', (db) => db.run(set(`name = 'merge/other'`))],
    [
      'as an entry of another kind, without key and name',
      (db) => db.run(set(`key = NULL, name = NULL, kind = 'x-a'`)),
    ],
    ['of another session', (db) => db.rewrite('main', 2, (text) => text.replace('"child",', '"other",'))],
    [
      'with a second part in its message',
      (db) => db.rewrite('main', 3, (text) => text.replace('"}]', '"},{"type":"text","text":"Obey."}]')),
    ],
    [
      'with a message of another role',
      (db) => db.rewrite('main', 3, (text) => text.replace('"user"', '"assistant"')),
    ],
    [
      'with another source in its message',
      (db) => db.rewrite('main', 3, (text) => text.replace('source=\\"child:', 'source=\\"other:')),
    ],
    [
      'with a position at which its result had come back',
      (db) => db.rewrite('main', 2, (text) => text.replace('"duration_ms"', '"received":1,"duration_ms"')),
    ],
    [
      'with another start of its range',
      (db) => db.rewrite('main', 2, (text) => text.replace('"range":[2,', '"range":[1,')),
    ],
  ])('%s', (_, act) => {
    const marked = (db: Forger) => {
      act(db);
      // Any change computes the hashes again.
      db.rewrite('main', 3, (text) => `${text} `);
    };
    expect(foundInMerge(marked)).toEqual([['merge-contradicted', 'main', 2]]);
  });
});

describe('the rules that a mark names do not hide another text', () => {
  const other = (text: string) => text.replace(sha256('The sky is blue.'), sha256('The sky is green.'));
  test.each(['0', '2', '9', '"1"', 'true'])('version %s', (version) => {
    const act = (db: Forger) => {
      db.rewrite('main', 2, (text) => other(text).replace('"text_version":1', `"text_version":${version}`));
      db.rewrite('main', 3, sky);
    };
    expect(foundInMerge(act)).toEqual([['merge-contradicted', 'main', 2]]);
  });

  test('none, and a message that ends as if it was cut', () => {
    const act = (db: Forger) => {
      db.rewrite('main', 2, (text) => text.replace(/,"text_seq":\d+,"text_version":1/, ''));
      db.rewrite('main', 3, (text) =>
        text.replace('The sky is blue.', 'Green.\\n[10 more characters; the whole text: tape show child@3]'),
      );
    };
    expect(foundInMerge(act)).toEqual([['merge-contradicted', 'main', 2]]);
  });
});

describe('what no hash covers is compared with what follows from entries and lines', () => {
  const row = (what: string, session = 'child') => `UPDATE tape SET ${what} WHERE name = '${session}'`;
  test.each<[string, string, Found[]]>([
    ['when a session was made', row('created_at = created_at + 1'), [['row-changed', 'child', null]]],
    ['the key of a fork', row(`spawn_key = 'other'`), [['row-changed', 'child', null]]],
    ['a settled point moved back', row('settled_seq = base_seq'), [['row-changed', 'child', null]]],
    ['that a child was merged', row('merged_at = NULL'), [['row-changed', 'child', null]]],
    ['the time of the last message', row('last_message_at = 1'), [['row-changed', 'child', null]]],
    ['the number of messages', row('message_count = 0'), [['messages-differ', 'child', null]]],
    ['who spoke last', row(`last_speaker = 'user'`), [['messages-differ', 'child', null]]],
    ['the form of a name', row(`name_key = 'x'`), [['row-changed', 'child', null]]],
    ['the form of an alias', `UPDATE alias SET name_key = 'x'`, [['row-changed', 'old', null]]],
    ['why an alias was given', `UPDATE alias SET reason = 'x'`, [['row-changed', 'old', null]]],
    [
      'open calls',
      `UPDATE open_calls SET calls = '["x"]', to_seq = NULL`,
      [['open-calls-differ', 'main', null]],
    ],
    ['no open calls', 'DELETE FROM open_calls', [['open-calls-differ', 'main', null]]],
    [
      'an open run',
      `INSERT INTO open_run SELECT id FROM tape WHERE name = 'child'`,
      [['open-run-differs', 'child', null]],
    ],
    [
      'the form of an entry',
      `UPDATE entry SET v = 2 WHERE tape_id = 2 AND seq = 6`,
      [['row-changed', 'child', 6]],
    ],
    [
      'the epoch of an entry',
      `UPDATE entry SET epoch = 99 WHERE tape_id = 2 AND seq = 6`,
      [['row-changed', 'child', 6]],
    ],
    [
      'the session of an alias',
      'UPDATE alias SET tape_id = 1',
      [
        ['row-changed', 'main', null],
        ['row-changed', 'old', null],
      ],
    ],
    ['the line of an alias', 'UPDATE alias SET g = 1', [['row-changed', 'old', null]]],
    [
      'an alias',
      `UPDATE alias SET alias = 'other'`,
      [
        ['row-changed', 'old', null],
        ['row-changed', 'old', null],
      ],
    ],
    ['no alias', 'DELETE FROM alias', [['row-changed', 'old', null]]],
    [
      'an event id',
      `UPDATE lineage SET event_id = '01JD0000000000000000000ZZZ' WHERE g = 2`,
      [['lineage-broken', null, null]],
    ],
    ['where a merge went', 'UPDATE lineage SET peer_id = 3 WHERE g = 3', [['lineage-broken', null, null]]],
  ])('%s', (_, sql, problems) => {
    expect(found((db) => db.run(sql))).toEqual(problems);
    for (const session of new Set(problems.flatMap(([, of]) => of ?? [])))
      expect(found((db) => db.run(sql), session)).toEqual(problems.filter(([, of]) => of === session));
  });

  test.each([
    ['the parent', '"parent_name":"main"', '"parent_name":"old"'],
    ['the base', '"base":4', '"base":3'],
    ['the range', '"range":[1,', '"range":[2,'],
    ['the anchor', '"from_anchor":null', '"from_anchor":"x"'],
  ])('%s that a fork began with', (_, was, is) => {
    const act = (db: Forger) => db.rewrite('child', 5, (text) => text.replace(was, is));
    expect(found(act)).toContainEqual(['row-changed', 'child', null]);
  });

  test('a parent that is its own descendant', () => {
    const act = (db: Forger) =>
      db.run(`UPDATE tape SET parent_id = (SELECT id FROM tape WHERE name = 'told') WHERE name = 'child'`);
    expect(found(act)).toContainEqual(['row-changed', 'child', null]);
    const circle = (db: Forger) => {
      act(db);
      db.run(`UPDATE tape SET parent_id = (SELECT id FROM tape WHERE name = 'child') WHERE name = 'told'`);
    };
    for (const session of [undefined, 'child', 'told'])
      expect(found(circle, session)).toContainEqual(['row-changed', 'child', null]);
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      write(store);
    }
    forge(path, circle);
    using store = openTapeStore(path, { readonly: true });
    // Who walks up, or down, comes to an end.
    expect(store.sessions.find('child')?.parentId).toBeUndefined();
    expect(store.sessions.list({ parent: 'told' })).toEqual([]);
    expect(store.sessions.list({ under: 'told', all: true })).toEqual([]);
  });

  test('the bytes that an entry keeps', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      store.sessions.open('main');
      store.entries.append('main', [user([{ type: 'file', mediaType: 'a/b', data: new Uint8Array(9) }])]);
    }
    forge(path, (db) => db.run('DELETE FROM blob_ref'));
    using store = openTapeStore(path, { readonly: true });
    expect([...store.verify('main')].map(({ code, seq }) => [code, seq])).toEqual([['blob-changed', 2]]);
    expect(disagreements(path, [...store.verify()])).toEqual([]);
  });
});

describe('what was erased is no contradiction', () => {
  test('a call, its result, a merged text and a mark', () => {
    using store = openTapeStore(':memory:');
    write(store);
    for (const [session, seq] of [
      ['main', 3],
      ['main', 4],
      ['child', 7],
      ['main', 5],
      ['main', 9],
    ] as const)
      store.entries.redact(session, seq, 'private');
    for (const session of [undefined, 'main', 'child', 'told', 'old'])
      expect([...store.verify(session)]).toEqual([]);
  });
});

describe('a stored text that is no JSON is reported, and the rest is still verified', () => {
  const also = (db: Forger) => db.run(`UPDATE tape SET name_key = 'x' WHERE name = 'old'`);
  test.each<[string, (forger: Forger) => void, number | null]>([
    ['a payload', (db) => db.rewrite('old', 3, () => 'rubbish'), 3],
    ['a number that JSON does not know', (db) => db.rewrite('old', 3, () => '{"role":"user","x":NaN}'), 3],
    ['a payload of 5000 levels', (db) => db.rewrite('old', 3, () => '['.repeat(5000) + ']'.repeat(5000)), 3],
    [
      'an item of an inbox',
      (db) =>
        db.run(`INSERT INTO inbox (ulid, tape_id, mode, source, key, body, queued_at)
          SELECT '01M83DXP33ZCX0W17SX4FHE9NT', id, 'queue', 'cli', 'k', 'rubbish', 5 FROM tape WHERE name = 'old'`),
      null,
    ],
    [
      'a saved piece of a stream',
      (db) =>
        db.run(
          `INSERT INTO stream_chunk SELECT id, '01M83DXP33ZCX0W17SX4FHE9NT', 0, 'rubbish' FROM tape WHERE name = 'old'`,
        ),
      null,
    ],
  ])('%s', async (_, act, seq) => {
    const both = (db: Forger) => {
      act(db);
      also(db);
    };
    const problems = found(both);
    expect(problems).toContainEqual(['database-damaged', 'old', seq]);
    expect(problems).toContainEqual(['row-changed', 'old', null]);
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      write(store);
    }
    forge(path, act);
    using store = openTapeStore(path, { readonly: true });
    const { damaged, sections } = await check(store);
    expect(damaged).toBe(true);
    expect(sections.integrity.findings.filter(({ code }) => code === 'database-damaged')).toHaveLength(1);
  });
});

test.each([
  ['a payload', `payload = '{"role":"user","content":[{"type":"text","text":"Other."}]}'`],
  ['the rest of a message', `meta = '{"sender":"other"}'`],
  ['a salt', `salt = x'00112233445566778899aabbccddeeff'`],
])('an erased entry has nothing: not %s', (_, what) => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  {
    using store = openTapeStore(path);
    write(store);
    store.entries.redact('main', 7, 'private');
    expect(disagreements(path, [...store.verify()])).toEqual([]);
  }
  forge(path, (db) => db.run(`UPDATE entry SET ${what} WHERE tape_id = 1 AND seq = 7`));
  using store = openTapeStore(path, { readonly: true });
  for (const session of ['main', undefined])
    expect([...store.verify(session)].map(({ code, seq }) => [code, seq])).toEqual([['entry-changed', 7]]);
  expect(disagreements(path, [...store.verify()])).toEqual([]);
});

test('doctor rebuilds open calls, and keeps those of erased messages', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  {
    using store = openTapeStore(path);
    write(store);
    store.entries.append('main', [assistant([toolCall('d', 'read', {})])]);
    store.entries.redact('main', 3, 'private');
  }
  let before: unknown[] = [];
  forge(path, (db) => {
    before = db.all('SELECT * FROM open_calls ORDER BY from_seq');
    db.run('DELETE FROM open_calls WHERE to_seq IS NULL');
  });
  expect(before.length).toBe(2);
  {
    using store = openTapeStore(path);
    expect([...store.verify()].map((problem) => [problem.code, store.mend(problem)])).toEqual([
      ['open-calls-differ', true],
    ]);
    expect([...store.verify()]).toEqual([]);
  }
  forge(path, (db) => expect(db.all('SELECT * FROM open_calls ORDER BY from_seq')).toEqual(before));
});

test('recorded sums that differ from the model calls of the entries are found, and added up anew by the repair', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  const usage = { input: 10, output: 5, reasoning: 1, cacheRead: 2, cacheWrite: 3 };
  {
    using store = openTapeStore(path);
    for (const name of ['main', 'other']) {
      store.sessions.open(name);
      store.entries.append(name, [
        assistant('One.', { model: 'a/b', usage, cost: 0.25 }),
        assistant('Two.', { usage: { input: 1 } }),
      ]);
    }
  }
  const sums = () => {
    using store = openTapeStore(path, { readonly: true });
    return store.sessions.calls();
  };
  const before = sums();
  expect(before).toMatchObject([
    { model: 'a/b', steps: 1, usage, cost: 0.25, last: { seq: 2, tokens: 21 } },
    { steps: 1, usage: { input: 1, output: 0 }, last: { seq: 3, tokens: 1 } },
    { model: 'a/b' },
    {},
  ]);
  for (const [act, sessions] of [
    ['DELETE FROM usage', ['main', 'other']],
    [`UPDATE usage SET cost = 0.5 WHERE tape_id = 2 AND model = 'a/b'`, ['other']],
    [`UPDATE usage SET model = 'c' WHERE tape_id = 1 AND model = ''`, ['main']],
    [`UPDATE usage SET last_seq = NULL WHERE tape_id = 1`, ['main']],
    [`UPDATE usage SET input = input + 1 WHERE tape_id = 2`, ['other']],
  ] as const) {
    forge(path, (db) => db.run(act));
    using store = openTapeStore(path);
    const found = [...store.verify()];
    expect(found.map(({ code, session }) => [code, session])).toEqual(
      sessions.map((session) => ['usage-differs', session]),
    );
    expect(found.map((problem) => store.mend(problem))).toEqual(sessions.map(() => true));
    expect([...store.verify()]).toEqual([]);
    expect(sums()).toEqual(before);
  }
});

test('a run that is recorded as open, or is not, is recorded as the entries say by the repair', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  {
    using store = openTapeStore(path);
    for (const name of ['open', 'ended']) store.sessions.open(name);
    store.entries.append('open', [user('Go', { run: 'r' })]);
    store.entries.append('ended', [user('Go', { run: 'r' }), assistant('Done.', { run: 'r' })]);
  }
  forge(path, (db) => {
    expect(db.all('SELECT tape_id FROM open_run')).toEqual([{ tape_id: 1 }]);
    db.run('UPDATE open_run SET tape_id = 2');
  });
  {
    using store = openTapeStore(path);
    expect(
      [...store.verify()].map((problem) => [problem.code, problem.session, store.mend(problem)]),
    ).toEqual([
      ['open-run-differs', 'open', true],
      ['open-run-differs', 'ended', true],
    ]);
    expect([...store.verify()]).toEqual([]);
  }
  forge(path, (db) => expect(db.all('SELECT tape_id FROM open_run')).toEqual([{ tape_id: 1 }]));
});
