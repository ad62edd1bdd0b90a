import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { type Entry, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

function take(store: SqliteTapeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

const own = (store: SqliteTapeStore): Entry[] =>
  store.sessions.list().flatMap(({ id }) => [...store.entries.read(id, { own: true })]);

/** How many entries of a home have a text. */
const said = (store: SqliteTapeStore, text: string): number =>
  own(store).filter(({ payload }) => JSON.stringify(payload).includes(text)).length;

/** How many messages of a home have a text: a branch has it as its title, too. */
const stored = (store: SqliteTapeStore, text: string): number =>
  own(store).filter(({ kind, payload }) => kind === 'message' && JSON.stringify(payload).includes(text))
    .length;

/** Erases the messages and results of a session that have a text. */
function erase(store: SqliteTapeStore, session: string, text: string): void {
  const found = [...store.entries.read(session)].filter(({ payload }) =>
    JSON.stringify(payload).includes(text),
  );
  expect(found).not.toEqual([]);
  store.entries.redact(
    session,
    found.map(({ seq }) => seq),
    'private',
  );
}

/** Imports files until nothing is new, and checks that this is so at once. */
function takeOnce(store: SqliteTapeStore, ...files: readonly (readonly Raw[])[]): void {
  for (const file of files) take(store, file);
  const heads = () => store.sessions.list().map(({ session, head }) => [session, head]);
  const before = heads();
  for (const file of files) take(store, file);
  expect(heads()).toEqual(before);
  expect([...store.verify()]).toEqual([]);
}

const secret = 'aardvark';
const call = (id: string) => calls(id, 'Read', { path: secret });
const begun: readonly Raw[] = [
  person({ uuid: 'u0' }, 'hello'),
  model({ uuid: 'a0', parent: 'u0' }, [says('hello, too')], { usage: { output_tokens: 3 } }),
  person({ uuid: 'u1', parent: 'a0' }, 'read it'),
  model({ uuid: 'k1', parent: 'u1' }, [call('t1'), call('t2')]),
];
const first = person({ uuid: 'r1', parent: 'k1' }, [returns('t1', 'the first')]);
const second = person({ uuid: 'r2', parent: 'r1' }, [returns('t2', 'the second')]);
const ended = [...begun, first, second, model({ uuid: 'a1', parent: 'r2' }, [says('read')])];

/** When nothing was said that was erased. */
const later = '2026-03-12T10:00:00.000Z';

/** The records as a copy has them: under ids that begin with a prefix. */
const copied = (records: readonly Raw[], prefix: string): readonly Raw[] =>
  records.map((one) => ({
    ...one,
    ...{ sessionId: 's-2', uuid: `${prefix}${one.uuid}` },
    parentUuid: one.parentUuid === null ? null : `${prefix}${one.parentUuid}`,
  }));

describe('a call that was erased before its result came does not come back with that', () => {
  const check = (store: SqliteTapeStore, session: string) => {
    expect(said(store, secret)).toBe(0);
    expect([said(store, 'the first'), said(store, 'the second')]).toEqual([1, 1]);
    const { messages } = view(store.views.entries(session));
    expect(messages.map(({ role }) => role).slice(-3)).toEqual(['assistant', 'tool', 'assistant']);
  };

  test('in its own session', () => {
    const store = openStore();
    take(store, begun);
    erase(store, 's-1', secret);
    takeOnce(store, ended);
    check(store, 's-1');
  });

  test.each([
    ['the same ids', ''],
    ['new ids', 'c-'],
  ])('in a copy with %s', (_, prefix) => {
    const store = openStore();
    // What was read of it before is known to the process.
    for (const file of [begun, copied(begun, prefix), copied(begun, prefix)]) take(store, file);
    expect(store.sessions.find('s-2')?.parent).toBe('s-1');
    erase(store, 's-1', secret);
    takeOnce(store, copied(ended, prefix));
    check(store, 's-2');
  });

  test('in a copy that comes after that', () => {
    const store = openStore();
    take(store, begun);
    erase(store, 's-1', secret);
    takeOnce(store, copied(ended, ''));
    check(store, 's-2');
  });
});

test('a call that was erased does not come back in a session beside one that went on here', () => {
  const store = openStore();
  take(store, begun);
  erase(store, 's-1', secret);
  store.entries.append('s-1', [user('typed here')]);
  takeOnce(store, ended);
  expect([secret, 'the first', 'the second'].map((text) => said(store, text))).toEqual([0, 1, 1]);
  expect(store.sessions.find('s-1-2')?.parent).toBe('s-1');
});

test('a result that comes in a copy with new ids, once what stood for it in its source was erased, is stored', () => {
  const store = openStore();
  const late = { ...second, parentUuid: 'k1' };
  const part = [...begun, late, person({ uuid: 'u2', parent: 'r2' }, 'wait')];
  for (const file of [part, copied(part, 'c-')]) take(store, file);
  for (const text of [secret, 'interrupted', 'the second', 'wait']) erase(store, 's-1', text);
  takeOnce(store, copied([...part, { ...first, parentUuid: 'u2' }], 'c-'));
  expect([secret, 'the second', 'wait', 'the first'].map((text) => said(store, text))).toEqual([0, 0, 0, 1]);
});

test('a result that was erased stays so when that of a call beside it comes', () => {
  const store = openStore();
  take(store, [...begun, first]);
  erase(store, 's-1', 'the first');
  takeOnce(store, ended);
  expect([said(store, 'the first'), said(store, 'the second')]).toEqual([0, 1]);
});

test('what was erased of a session that was resumed under new ids stays so where its user returns to it', () => {
  const store = openStore();
  const on = [
    ...copied(ended, 'c-'),
    { ...person({ uuid: 'u2', parent: 'c-a1' }, 'go on'), sessionId: 's-2' },
  ];
  for (const file of [ended, on]) take(store, file);
  const prompt = (uuid: string, parent: string) => ({
    ...person({ uuid, parent }, `${uuid} typed`),
    sessionId: 's-2',
  });
  for (const text of [secret, 'the first', 'the second', 'hello', 'read']) erase(store, 's-1', text);
  const left = [...on, prompt('u3', 'c-u1')];
  takeOnce(store, left);
  takeOnce(store, [...left, prompt('u4', 'u2')]);
  for (const text of ['u3 typed', 'u4 typed']) expect([text, stored(store, text)]).toEqual([text, 1]);
  for (const text of [secret, 'the first', 'the second', 'hello', 'read'])
    expect([text, said(store, text)]).toEqual([text, 0]);
  expect(JSON.stringify(view(store.views.entries('s-2')).messages)).toContain('u4 typed');
});

test('a prompt that was left in a session that was resumed under new ids is stored once', () => {
  const store = openStore();
  const typed = (uuid: string, parent: string) => ({
    ...person({ uuid, parent }, `${uuid} typed`),
    sessionId: 's-2',
  });
  const on = [...copied(ended, 'c-'), typed('u2', 'c-a1')];
  const left = [...on, typed('u3', 'c-u1')];
  for (const file of [ended, on]) take(store, file);
  for (const file of [left, [...left, typed('u4', 'u2')]]) takeOnce(store, file);
  for (const text of ['u3 typed', 'u4 typed']) expect([text, stored(store, text)]).toEqual([text, 1]);
  expect(store.sessions.find('s-2-branch-u3')?.title).toBe('u3 typed');
});

test('a prompt that was erased names no branch that inherits it', () => {
  const store = openStore();
  const left = [
    ...ended,
    person({ uuid: 'u2', parent: 'a1' }, 'an okapi'),
    model({ uuid: 'a2', parent: 'u2' }, [says('fine')]),
  ];
  take(store, left);
  erase(store, 's-1', 'okapi');
  takeOnce(store, [...left, person({ uuid: 'u3', parent: 'a1' }, 'typed anew', { timestamp: later })]);
  expect(store.sessions.find('s-1-branch-u2')).toMatchObject({ parent: 's-1', base: expect.any(Number) });
  expect([said(store, 'okapi'), said(store, 'typed anew')]).toEqual([0, 1]);
  expect(JSON.stringify(store.sessions.list())).not.toContain('okapi');
});

test('a prompt that was erased in a session names no branch of a copy of it', () => {
  const store = openStore();
  const left = person({ uuid: 'u5', parent: 'a1' }, 'left');
  const source = [...ended, left, person({ uuid: 'u2', parent: 'a1' }, 'an okapi')];
  // Where it has a branch, what it says is known to the process.
  take(store, source);
  erase(store, 's-1', 'okapi');
  takeOnce(
    store,
    [
      ...source,
      person({ uuid: 'u3', parent: 'u2' }, 'a later prompt', { timestamp: later }),
      person({ uuid: 'u4', parent: 'a1' }, 'typed anew', { timestamp: later }),
    ].map((one) => ({ ...one, sessionId: 's-2', forkedFrom: { sessionId: 's-1' } })),
  );
  expect(store.sessions.find('s-2-branch-u2')?.parent).toBe('s-1');
  expect([said(store, 'okapi'), said(store, 'a later prompt'), said(store, 'typed anew')]).toEqual([0, 1, 1]);
});

describe('what was erased is not stored again with a copy that comes after that', () => {
  const texts = ['hello', 'read it', secret, 'the first', 'the second'];

  /** A record of the copy alone. */
  const on = {
    ...person({ uuid: 'u9', parent: 'c-a1' }, 'a later prompt', { timestamp: later }),
    sessionId: 's-2',
  };

  test.each([
    ['of all', texts],
    ['of its first prompt', ['hello']],
    ['of a call', [secret]],
  ])('under new ids: %s', (_, erased) => {
    const store = openStore();
    take(store, ended);
    for (const text of erased) erase(store, 's-1', text);
    const before = texts.map((text) => said(store, text));
    takeOnce(store, [...copied(ended, 'c-'), on]);
    expect(texts.map((text) => said(store, text))).toEqual(before);
    expect(store.sessions.find('s-2')?.parent).toBe('s-1');
    expect(JSON.stringify(view(store.views.entries('s-2')).messages)).toContain('a later prompt');
  });

  test.each([
    ['new ids', 'c-', 0],
    ['the same ids, without the beginning', '', 2],
  ])('nor with the records beside it that repeat it: %s', (_, prefix, from) => {
    const store = openStore();
    const queued = (uuid: string, content: string) => ({ type: 'queue-operation', uuid, content });
    const file = (uuid: string, parent: string) => ({
      ...{
        type: 'attachment',
        uuid,
        parentUuid: parent,
        sessionId: 's-1',
        timestamp: '2026-03-12T09:00:02.000Z',
      },
      attachment: { type: 'file', filename: '/a', content: { type: 'text', file: { content: 'an okapi' } } },
    });
    const source = [
      ...ended.slice(0, 2),
      queued('q1', 'read it'),
      ...ended.slice(2, 3),
      file('f1', 'u1'),
      ...ended.slice(3).map((one) => (one.uuid === 'k1' ? { ...one, parentUuid: 'f1' } : one)),
    ];
    take(store, source);
    const seqs = [...store.entries.read('s-1', { own: true })].flatMap(({ seq, kind, name }) =>
      kind === 'anchor' || name === 'import/source' ? [] : [seq],
    );
    store.entries.redact('s-1', seqs, 'private');
    for (const text of [...texts, 'okapi']) expect([text, said(store, text)]).toEqual([text, 0]);
    takeOnce(store, [
      ...copied(source, prefix).slice(from),
      queued('q2', 'a later prompt'),
      { ...on, parentUuid: `${prefix}a1` },
    ]);
    for (const text of [...texts, 'okapi']) expect([text, said(store, text)]).toEqual([text, 0]);
    expect(said(store, 'a later prompt')).toBe(2);
  });

  test('under the same ids, without the records with which its source begins', () => {
    const store = openStore();
    take(store, ended);
    for (const text of texts) erase(store, 's-1', text);
    takeOnce(store, [...copied(ended, '').slice(2), { ...on, parentUuid: 'a1' }]);
    for (const text of texts) expect([text, said(store, text)]).toEqual([text, 0]);
    expect(said(store, 'a later prompt')).toBe(1);
  });
});

describe('a prompt that was erased does not come back with a copy under another id', () => {
  const time = (ms: number) => ({ timestamp: new Date(Date.UTC(2026, 2, 12, 9, 0, 0, ms)).toISOString() });
  const prompt = (sessionId: string, uuid: string, text: string, ms: number) => ({
    ...person({ uuid }, text, time(ms)),
    sessionId,
  });
  const taken = (...files: readonly (readonly Raw[])[]) => {
    const store = openStore();
    for (const file of files) take(store, file);
    return store;
  };

  test('where it is alone at the beginning', () => {
    const states = Array.from({ length: 12 }, (_, n) => ({ type: 'mode', mode: `${n}`, sessionId: 's-1' }));
    const store = taken([...states, prompt('s-1', 'u1', 'an okapi', 17)]);
    erase(store, 's-1', 'okapi');
    const on = { ...person({ uuid: 'u9', parent: 'c-u1' }, 'a later prompt', time(900)), sessionId: 's-2' };
    takeOnce(store, [prompt('s-2', 'c-u1', 'an okapi', 17), on]);
    expect([said(store, 'okapi'), said(store, 'a later prompt')]).toEqual([0, 1]);
  });

  test('where what is beside it was said at the same time, and what is next to that was not', () => {
    const first = [
      prompt('s-1', 'u1', 'hello', 1),
      model({ uuid: 'a1', parent: 'u1' }, [says('hi')], time(5)),
    ];
    const note = { ...person({ uuid: 'n2', parent: 'a1' }, 'a reminder', time(17)), isMeta: true };
    const source = [...first, note, person({ uuid: 'u2', parent: 'n2' }, 'an okapi', time(17))];
    const store = taken(source);
    erase(store, 's-1', 'okapi');
    takeOnce(store, copied(source, 'c-'));
    expect([said(store, 'okapi'), said(store, 'a reminder')]).toEqual([0, 1]);
  });

  test('but what begins at another time, or in whole seconds, is another one', () => {
    for (const [ms, other] of [
      [17, 18],
      [0, 0],
    ] as const) {
      const store = taken([prompt('s-1', 'u1', 'an okapi', ms)]);
      erase(store, 's-1', 'okapi');
      takeOnce(store, [prompt('s-2', 'v1', 'a zebra', other)]);
      expect(said(store, 'zebra')).toBe(1);
    }
  });
});

const linesOf = (records: readonly Raw[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;

/** A session with a subagent, which says that all is well. */
function withSubagent(records: readonly Raw[]) {
  const inside = { isSidechain: true, agentId: 'x1' };
  const lines = linesOf([
    person({ uuid: 'y1' }, 'look', inside),
    model({ uuid: 'z1', parent: 'y1' }, [says('well')], inside),
  ]);
  return planClaudeCode({ name: 's-1', lines: linesOf(records), agents: [{ id: 'x1', lines }] });
}

test('a report of a subagent that is erased takes nothing away of what its source says later', () => {
  using store = openStore();
  const records = [
    person({ uuid: 'u1' }, 'ask'),
    model({ uuid: 'a1', parent: 'u1' }, [says('hello')]),
    person({ uuid: 'u2', parent: 'a1' }, 'look'),
    model({ uuid: 'k2', parent: 'u2' }, [calls('t1', 'Task')]),
    person({ uuid: 'r2', parent: 'k2' }, [returns('t1', 'well')], { toolUseResult: { agentId: 'x1' } }),
    person({ uuid: 'u3', parent: 'a1' }, 'in another way'),
    model({ uuid: 'a3', parent: 'u3' }, [says('so')]),
    person({ uuid: 'u4', parent: 'a3' }, 'a zebra'),
    person({ uuid: 'u5', parent: 'a1' }, 'in a third way'),
  ];
  const takeFirst = (count: number) => reconcile(store, withSubagent(records.slice(0, count)));
  takeFirst(7);
  const messages = [...store.entries.read('s-1-branch-u2', { own: true, kind: 'message' })];
  const report = messages.find(({ meta }) => meta.source === 'merge');
  store.entries.redact('s-1-branch-u2', report?.seq ?? 0, 'private');
  takeFirst(9);
  expect(said(store, 'a zebra')).toBe(1);
});

test('a report of a subagent that is erased is no work of a person: its source goes on in the same session', () => {
  using store = openStore();
  const records = [
    person({ uuid: 'u1' }, 'ask'),
    model({ uuid: 'k1', parent: 'u1' }, [calls('t1', 'Task')]),
    person({ uuid: 'r1', parent: 'k1' }, [returns('t1', 'well')], { toolUseResult: { agentId: 'x1' } }),
    model({ uuid: 'a1', parent: 'r1' }, [says('so')]),
    person({ uuid: 'u2', parent: 'a1' }, 'in another way'),
  ];
  const takeFirst = (count: number) => reconcile(store, withSubagent(records.slice(0, count)));
  takeFirst(3);
  const report = [...store.entries.read('s-1', { kind: 'message' })].find(
    ({ meta }) => meta.source === 'merge',
  );
  store.entries.redact('s-1', report?.seq ?? 0, 'private');
  takeFirst(5);
  const [last] = store.entries.read('s-1', { kind: 'message', last: 1 });
  expect(JSON.stringify(last?.payload)).toContain('in another way');
  expect(store.sessions.list({ all: true }).map(({ session }) => session)).not.toContain('s-1-2');
});
