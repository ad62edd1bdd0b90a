import {
  anchor,
  assistant,
  compaction,
  type JsonObject,
  note,
  openTapeStore,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { type Forger, forge } from '../support/forge.ts';
import { sha256 } from '../support/format-hash.ts';
import { disagreements } from '../support/python.ts';
import { tempDir } from '../support/temp-dir.ts';

type Found = readonly [code: string, session: string | null, seq: number | null];

const given = (paths: { read: string[]; write: string[] }) =>
  toolResult({ toolCallId: 'c', toolName: 'edit' }, 'Done.', { paths });

/**
 * `main` with an anchor, files that were read and written, a rewind and a redaction; two forks without a key and one
 * with one, of which `child` touched something too, and was merged.
 */
function write(store: SqliteTapeStore): void {
  store.sessions.open('main', { title: 'A title \ud83d' });
  store.entries.append('main', [user('Look.'), anchor('plan', { goal: 'blue' })]);
  store.entries.append('main', [assistant([toolCall('c', 'edit', {})])]);
  store.entries.append('main', [given({ read: ['a.ts', 'half \ud83d'], write: ['b.ts'] })]);
  store.entries.append('main', [user('Wrong.')]);
  store.history.rewind('main', 5);
  store.entries.append('main', [user('Secret.'), user('And on.')]);
  store.entries.redact('main', 8, 'private');
  store.lineage.fork('main', { name: 'child' });
  store.entries.append('child', [anchor('found', { colour: 'blue', size: 3 })]);
  store.entries.append('child', [assistant([toolCall('c', 'edit', {})])]);
  store.entries.append('child', [given({ read: ['c.ts'], write: [] }), assistant('Done.')]);
  store.lineage.merge('child');
  store.lineage.fork('main', { name: 'second' });
  store.lineage.fork('main', { name: 'keyed', key: 'k', inherit: { since: 'plan' } });
}

/** The problems of a forged file: of all of it, and the same of the sessions that have them. */
function found(act: (forger: Forger) => void): Found[] {
  using dir = tempDir();
  const path = dir.file('tape.db');
  {
    using store = openTapeStore(path);
    write(store);
    expect([...store.verify(), ...store.verifyDatabase()]).toEqual([]);
    expect(disagreements(path, [])).toEqual([]);
  }
  forge(path, (db) => {
    act(db);
    db.relink();
  });
  using store = openTapeStore(path, { readonly: true });
  const problems = [...store.verify()];
  expect(disagreements(path, problems)).toEqual([]);
  for (const session of new Set(problems.flatMap((problem) => problem.session ?? [])))
    expect([...store.verify(session)]).toEqual(
      expect.arrayContaining(problems.filter((problem) => problem.session === session)),
    );
  return problems.map(({ code, session, seq }) => [code, session, seq]);
}

describe('columns that follow from others are compared with them', () => {
  const row = (what: string, session = 'child') => `UPDATE tape SET ${what} WHERE name = '${session}'`;
  test.each<[string, string, string?]>([
    ['where the inherited part begins', row('from_seq = from_seq + 1', 'keyed'), 'keyed'],
    ['a beginning of a root', row('from_seq = 0', 'main'), 'main'],
    ['no request of a fork', row('request_hash = NULL')],
    ['another request', row(`request_hash = x'00'`)],
    ['a title', row(`title = 'Another'`)],
    ['a title of a root', row('title = NULL', 'main'), 'main'],
    ['that lists omit it', row('ephemeral = 1')],
    ['that lists omit a root', row('ephemeral = 1', 'main'), 'main'],
    ['how its result is delivered', row(`deliver = 'merge+turn'`)],
    ['which call made it', row(`spawn_call = 'c'`)],
    ['no number of a fork without a key', row('ordinal = NULL')],
    ['another number', row('ordinal = 3')],
    ['a number of a fork with a key', row('ordinal = 3', 'keyed'), 'keyed'],
    ['no number of the second', row('ordinal = 7', 'second'), 'second'],
  ])('%s', (_, sql, session = 'child') => {
    expect(found((db) => db.run(sql))).toContainEqual(['row-changed', session, null]);
  });
});

describe('what was touched is compared with the entries', () => {
  const touch = (act: string) => (db: Forger) => db.run(act);
  test.each<[string, (forger: Forger) => void, ...string[]]>([
    ['a key that is missing', touch(`DELETE FROM touch WHERE tape_id = 1 AND what = 'state:goal'`), 'main'],
    ['a file that is missing', touch(`DELETE FROM touch WHERE tape_id = 1 AND what = 'file:b.ts'`), 'main'],
    ['a file that was only read', touch(`UPDATE touch SET wrote = 0 WHERE what = 'file:b.ts'`), 'main'],
    ['a file at another place', touch(`UPDATE touch SET seq = 4 WHERE what = 'file:b.ts'`), 'main'],
    ['a file that no entry touched', touch(`INSERT INTO touch VALUES (1, 'file:z.ts', 5, 1, NULL)`), 'main'],
    [
      'by another',
      touch(`UPDATE touch SET via = 'second' WHERE what = 'state:size' AND tape_id = 1`),
      'main',
    ],
    [
      'what a merge brought, missing',
      touch(`DELETE FROM touch WHERE tape_id = 1 AND what = 'file:c.ts'`),
      'main',
    ],
    [
      'what a merge did not bring',
      touch(
        `INSERT INTO touch SELECT 1, 'file:z.ts', seq, 1, 'child' FROM touch WHERE tape_id = 1 AND what = 'file:c.ts'`,
      ),
      'main',
    ],
    [
      'what a merged child touched',
      touch(
        `INSERT INTO touch SELECT tape_id, 'file:z.ts', seq, 1, NULL FROM touch WHERE tape_id = 2 AND what = 'file:c.ts'`,
      ),
      'main',
      'child',
    ],
    ['an erased entry', touch(`INSERT INTO touch VALUES (1, 'state:x', 8, 1, NULL)`), 'main'],
  ])('%s', (_, act, ...sessions) => {
    expect(found(act)).toEqual(sessions.map((session) => ['row-changed', session, null]));
  });

  test('a file of a child whose entries were erased is no contradiction', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    using store = openTapeStore(path);
    write(store);
    const { base = 0 } = store.sessions.find('child') ?? {};
    for (const seq of [base + 2, base + 4]) store.entries.redact('child', seq, 'private');
    expect([...store.verify()]).toEqual([]);
    expect(disagreements(path, [])).toEqual([]);
    const [mark] = [...store.entries.read('main', { namePrefix: 'merge/' })];
    store.entries.redact('main', mark?.seq ?? 0, 'private');
    store.entries.redact('main', 3, 'private');
    expect([...store.verify()]).toEqual([]);
    expect(disagreements(path, [])).toEqual([]);
  });
});

describe('what an entry says twice is compared', () => {
  test.each<[string, number, (payload: string) => string]>([
    ['where a rewind goes', 7, (payload) => payload.replace('"to":5', '"to":2')],
    ['what was redacted', 10, (payload) => payload.replace('"seq":8', '"seq":9')],
  ])('%s', (_, seq, change) => {
    expect(found((db) => db.rewrite('main', seq, change))).toContainEqual([
      'record-contradicted',
      'main',
      seq,
    ]);
  });
});

describe('lines of the lineage about one session are compared with each other', () => {
  /** Line 1 makes `main`, 2 forks and 3 merges `child`; then `main` is archived, active again, and has an alias. */
  const lines = (act: (db: Forger) => void) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      store.sessions.open('main');
      store.lineage.fork('main', { name: 'child' });
      store.entries.append('child', [assistant('Done.')]);
      store.lineage.merge('child');
      store.sessions.update('main', { lifecycle: 'archived' });
      store.sessions.update('main', { lifecycle: 'active' });
      store.sessions.update('main', { alias: { name: 'other', reason: 'a better name' } });
    }
    forge(path, (db) => {
      act(db);
      db.relink();
    });
    using store = openTapeStore(path, { readonly: true });
    const problems = [...store.verify()];
    expect(disagreements(path, problems)).toEqual([]);
    const each = ['main', 'child'].flatMap((name) => [...store.verify(name)]);
    expect(each).toEqual(expect.arrayContaining(problems));
    return problems.map(({ code, message }) => [code, message]);
  };
  const contradicted = (g: number, fields: string) => [
    'lineage-broken',
    `lineage line ${g} contradicts itself, or an earlier line, by its ${fields}`,
  ];

  test.each<[string, number, readonly [was: string, is: string], string]>([
    ['the version', 4, ['"v":1', '"v":2'], 'v'],
    ['the parent', 3, ['"parent_session_id":"main"', '"parent_session_id":"other"'], 'parent_session_id'],
    ['when it was made', 3, ['"created_at":"2', '"created_at":"1'], 'created_at'],
    ['the kind', 3, ['"kind":"subagent"', '"kind":"session"'], 'kind'],
    ['the status alone', 3, ['"status":"merged"', '"status":"discarded"'], 'status'],
    ['where a merge went', 3, ['"into_session_id":"main"', '"into_session_id":"child"'], 'into_session_id'],
    [
      'what an alias does not change',
      6,
      ['"lifecycle":"active"', '"task":"running","lifecycle":"active"'],
      'status, task',
    ],
    ['what an archive sets', 4, ['"lifecycle":"archived"', '"lifecycle":"purged"'], 'status, lifecycle'],
  ])('%s', (_, g, [was, is], fields) => {
    expect(lines((db) => db.reline(g, (line) => line.replace(was, is)))).toContainEqual(
      contradicted(g, fields),
    );
  });

  test('a merge that says that it discarded', () => {
    const act = (db: Forger) => {
      db.reline(3, (line) => line.replaceAll('"merged"', '"discarded"'));
      db.run(`UPDATE tape SET delivery = 'discarded' WHERE name = 'child'`);
    };
    expect(lines(act)).toEqual([contradicted(3, 'delivery')]);
  });

  test('the parent in the first line', () => {
    const act = (db: Forger) => {
      for (const g of [2, 3])
        db.reline(g, (line) => line.replace('"parent_session_id":"main"', '"parent_session_id":"x"'));
    };
    expect(lines(act)).toEqual([['row-changed', expect.stringContaining('parent_session_id')]]);
  });
});

describe('what a fork began with is compared with its parent and its line', () => {
  /**
   * `child` has the state of an anchor, and a task; `grandchild` the same state, by its parent; `bare` has none; `late`
   * begins at an anchor that it inherits.
   */
  const make = (store: SqliteTapeStore) => {
    store.sessions.open('main');
    store.entries.append('main', [
      user('Look.'),
      anchor('plan', { goal: 'blue', half: '\ud83d' }),
      user('Go.'),
    ]);
    const nextSteps = `Look \ud83d \u2028 ${'at all of it '.repeat(40)}`;
    store.lineage.fork('main', {
      name: 'child',
      inherit: { since: 'plan' },
      intention: { triggerOnComplete: 'notify_parent', contextSummary: 'A "sky".', nextSteps },
    });
    store.lineage.fork('child', { name: 'grandchild', intention: {} });
    store.lineage.fork('main', { name: 'bare', inherit: 'nothing' });
    store.lineage.fork('grandchild', { name: 'nothing', inherit: 'nothing' });
    store.entries.append('grandchild', [anchor('second', {}), user('More.')]);
    store.lineage.fork('grandchild', { name: 'late', inherit: { since: 'second' } });
    store.lineage.fork('grandchild', { name: 'window', inherit: { last: 1 } });
    store.lineage.fork('main', { name: 'at', inherit: { since: 2 } });
  };
  const problems = (act: (db: Forger) => void, erase: readonly (readonly [string, number])[] = []) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      make(store);
      expect([...store.verify()]).toEqual([]);
      for (const [session, seq] of erase) store.entries.redact(session, seq, 'private');
    }
    forge(path, (db) => {
      act(db);
      db.relink();
    });
    using store = openTapeStore(path, { readonly: true });
    const all = [...store.verify()];
    expect(disagreements(path, all)).toEqual([]);
    for (const { session } of all)
      expect([...store.verify(session ?? undefined)]).toEqual(
        expect.arrayContaining(all.filter((one) => one.session === session)),
      );
    return all.map(({ code, session, seq }) => [code, session, seq]);
  };
  const other = (text: string) => text.replace('"goal":"blue"', '"goal":"red"');

  test('its state', () => {
    expect(problems((db) => db.rewrite('child', 5, other))).toEqual(
      expect.arrayContaining([
        ['record-contradicted', 'child', 5],
        ['record-contradicted', 'grandchild', 7],
      ]),
    );
    expect(problems((db) => db.rewrite('grandchild', 7, other))).toEqual(
      expect.arrayContaining([['record-contradicted', 'grandchild', 7]]),
    );
    expect(problems((db) => db.rewrite('main', 3, other))).toContainEqual([
      'record-contradicted',
      'child',
      5,
    ]);
  });

  test.each<[string, string, number, readonly [string, string]]>([
    ['a state that is no longer there', 'child', 5, ['"state":{', '"stale":{']],
    ['a state of nothing', 'bare', 5, ['"base":4', '"base":4,"state":{"goal":"red"}']],
    ['a state at a position that is no anchor', 'at', 5, ['"base":4', '"base":4,"state":{"goal":"red"}']],
    ['the end of a task', 'child', 6, ['it ","context', 'it!","context']],
    ['the beginning of a task', 'child', 6, ['"Look', '"Book']],
    ['a summary', 'child', 6, ['sky', 'sea']],
    ['what happens in the end', 'child', 6, ['"notify_parent"', '"nothing"']],
    ['a task that was none', 'grandchild', 8, ['"state":{', '"state":{"next_steps":"Obey.",']],
  ])('%s', (_, session, seq, [was, is]) => {
    expect(problems((db) => db.rewrite(session, seq, (text) => text.replace(was, is)))).toContainEqual([
      'record-contradicted',
      session,
      seq,
    ]);
  });

  test('the name of an anchor at which the inherited part begins', () => {
    const act = (db: Forger) => {
      db.run(`UPDATE entry SET name = 'other' WHERE tape_id = 1 AND seq = 3`);
      db.rewrite('main', 3, (text) => `${text} `);
    };
    expect(problems(act)).toContainEqual(['record-contradicted', 'child', 5]);
  });

  test('an intention that its line does not have, or has', () => {
    const act = (db: Forger) => db.reline(2, (line) => line.replace(/"intention":\{.*?\},/, ''));
    expect(problems(act)).toEqual([['record-contradicted', 'child', 6]]);
    const renamed = (db: Forger) => {
      db.run(`UPDATE entry SET kind = 'event' WHERE tape_id = 2 AND seq = 6`);
      db.rewrite('child', 6, (text) => `${text} `);
    };
    expect(problems(renamed)).toContainEqual(['record-contradicted', 'child', 6]);
  });

  test('what was erased is not known', () => {
    const nothing = () => undefined;
    expect(
      problems(nothing, [
        ['main', 3],
        ['child', 6],
      ]),
    ).toEqual([]);
    expect(
      problems(nothing, [
        ['child', 5],
        ['grandchild', 7],
      ]),
    ).toEqual([]);
  });
});

describe('what the mark of a merge says beside the text is compared with the child, the line and itself', () => {
  const said = 'The sky is blue.';
  /** The mark is at 3 of `main`; the child used tokens, and lacks a piece of an answer. */
  const marked = (change: (mark: string) => string, more: (db: Forger) => void = () => undefined) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      store.sessions.open('main');
      store.lineage.fork('main', { name: 'child' });
      store.entries.append('main', [user('Meanwhile.')]);
      store.entries.append('child', [assistant('Look: ', { partial: true }), user('Go on.')]);
      store.entries.append('child', [assistant(said, { usage: { input: 3, output: 4.5 } })]);
      store.lineage.merge('child');
      expect([...store.verify()]).toEqual([]);
      expect(disagreements(path, [])).toEqual([]);
    }
    forge(path, (db) => {
      db.rewrite('main', 3, change);
      more(db);
      db.relink();
    });
    using store = openTapeStore(path, { readonly: true });
    const problems = [...store.verify()];
    expect(disagreements(path, problems)).toEqual([]);
    expect([...store.verify('main')]).toEqual(problems);
    return problems.map(({ code, session, seq }) => [code, session, seq]);
  };
  const contradicted = [['merge-contradicted', 'main', 3]];

  test.each<[string, RegExp, string]>([
    ['where the text is', /"text_seq":\d+/, '"text_seq":2'],
    ['how long it took', /"duration_ms":\d+/, '"duration_ms":-1'],
    ['what it used', /"input":3/, '"input":30'],
    ['what is missing from the text', /"rest":\[\d+\]/, '"rest":[2]'],
    ['that nothing is missing', /"partial":true,"rest":\[\d+\],/, ''],
    ['that something else happened meanwhile', /"gap":1/, '"gap":0'],
    ['that a patch was brought', /"gap"/, '"artifact":{"type":"patch"},"gap"'],
    ['that conflicts may be missing', /"complete":true/, '"complete":false'],
    ['that it was discarded', /"strategy":"result"/, '"strategy":"discard"'],
    ['that its text was given', /"text_seq":\d+,"text_version":1,/, ''],
  ])('%s', (_, was, is) => {
    expect(marked((mark) => mark.replace(was, is))).toEqual(contradicted);
  });

  test('a text that passes as one that was given, in the mark and in the message', () => {
    const other = said.replace('blue', 'green');
    const given = (mark: string) =>
      mark
        .replace(/"result_digest":"\w+"/, `"result_digest":"${sha256(other)}"`)
        .replace(/"text_seq":\d+,"text_version":1,/, '')
        .replace(/"partial":true,"rest":\[\d+\],/, '');
    const text = (message: string) =>
      message
        .replace(/\[An interrupted .*?\]\\n/, '')
        .replace('blue', 'green')
        .replace(' partial=\\"true\\"', '');
    expect(marked(given, (db) => db.rewrite('main', 4, text))).toEqual(contradicted);
  });
});

describe('a summary is compared with the answers of its summarizer', () => {
  const odd = 'half \ud83d <\n\u0085';
  const tags = `<read-files>\na.ts\n${JSON.stringify(odd).replaceAll('<', '\\u003c')}\n</read-files>\n\n<modified-files>\nb.ts\n</modified-files>`;
  const files = { read_files: ['a.ts', odd], modified_files: ['b.ts'] };
  /** `main` with a whole summary at 4, one in two pieces at 5, and one that a program wrote at 6. */
  const summarised = (act: (db: Forger) => void, erase: readonly (readonly [string, number])[] = []) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    {
      using store = openTapeStore(path);
      store.sessions.open('main');
      store.entries.append('main', [user('Look.'), assistant('The sky is blue.')]);
      const write = (name: string, answers: readonly string[], state: { summary: string } & JsonObject) => {
        const drafts = [note('summary/asked', {}), ...answers.map((text) => assistant(text))];
        const { id } = store.lineage.fork('main', {
          name,
          kind: 'summarizer',
          done: { drafts, task: 'completed' },
        });
        const head = store.sessions.find(name)?.headHash ?? '';
        const summarizer = { session: name, id, head };
        store.entries.append('main', [
          compaction({ range: [1, 3], trigger: 'manual', ...state, summarizer }),
        ]);
      };
      write('one', ['It broke.', '  It is blue.\n'], {
        summary: `It is blue.\n\n${tags}`,
        compaction_type: 'whole',
        ...files,
      });
      write('two', ['Too long.', 'First.', 'Then.'], {
        summary: 'First.\n\nThen.',
        compaction_type: 'chunked',
        read_files: [],
        modified_files: [],
      });
      write('own', ['It is.'], { summary: 'What a program wrote.' });
      for (const [session, seq] of erase) store.entries.redact(session, seq, 'private');
      expect([...store.verify()]).toEqual([]);
      expect(disagreements(path, [])).toEqual([]);
    }
    forge(path, (db) => {
      act(db);
      db.relink();
    });
    using store = openTapeStore(path, { readonly: true });
    const problems = [...store.verify()];
    expect(disagreements(path, problems)).toEqual([]);
    return problems.map(({ code, session, seq }) => [code, session, seq]);
  };

  test.each<[string, number, readonly [string, string]]>([
    ['another text', 4, ['blue', 'red']],
    ['a text behind its files', 4, ['</modified-files>', '</modified-files>\\n\\nObey.']],
    ['a piece that is missing', 5, ['First.\\n\\n', 'Obey.\\n\\n']],
  ])('%s', (_, seq, [was, is]) => {
    expect(summarised((db) => db.rewrite('main', seq, (text) => text.replace(was, is)))).toContainEqual([
      'record-contradicted',
      'main',
      seq,
    ]);
  });

  test('another answer', () => {
    const act = (db: Forger) => db.rewrite('two', 8, (text) => text.replace('First', 'Last'));
    expect(summarised(act)).toContainEqual(['record-contradicted', 'main', 5]);
  });

  test('what was erased is not known', () => {
    expect(
      summarised(
        () => undefined,
        [
          ['one', 7],
          ['main', 5],
        ],
      ),
    ).toEqual([]);
  });
});
