import { writeFileSync } from 'node:fs';
import {
  derivedIn,
  Origins,
  parseJsonLines,
  planClaudeCode,
  type ReconcileOptions,
  reconcile,
} from '@tapedeck/runtime/import';
import { assistant, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

const original: readonly Raw[] = [
  person({ uuid: 'u1' }, 'plan it'),
  model({ uuid: 'a1', parent: 'u1' }, [says('a plan')], { usage: { output_tokens: 5 } }),
  person({ uuid: 'u2', parent: 'a1' }, 'do it'),
];

/** What follows a copy of the first two records. */
const more: readonly Raw[] = [
  { ...person({ uuid: 'c3', parent: 'c2' }, 'do it elsewhere'), sessionId: 's-2' },
  {
    ...model({ uuid: 'c4', parent: 'c3' }, [says('done')], { usage: { output_tokens: 2 } }),
    sessionId: 's-2',
  },
];

const copy = (change: (record: Raw, i: number) => Raw): readonly Raw[] =>
  original.slice(0, 2).map((record, i) => ({ ...change(record, i), sessionId: 's-2' }));

/** The ways in which Claude Code has written a session that begins as a copy. */
const copies: Readonly<{ [way: string]: readonly Raw[] }> = {
  'with new uuids and the old ones beside them': [
    ...copy((record, i) => ({
      ...record,
      uuid: `c${i + 1}`,
      parentUuid: i === 0 ? null : `c${i}`,
      forkedFrom: { sessionId: 's-1', messageUuid: record.uuid },
    })),
    ...more,
  ],
  'with the old uuids and the session in a second field': [
    ...copy((record) => ({ ...record, session_id: 's-1' })),
    ...more.map((record, i) => (i === 0 ? { ...record, parentUuid: 'a1' } : record)),
  ],
  'with the old uuids and the session of the request': [
    ...copy((record) => (record.type === 'assistant' ? { ...record, requestSessionId: 's-1' } : record)),
    ...more.map((record, i) => (i === 0 ? { ...record, parentUuid: 'a1' } : record)),
  ],
};

function take(store: SqliteTapeStore, records: readonly Raw[], how: ReconcileOptions = {}): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }), how);
}

const texts = (store: SqliteTapeStore, session: string): unknown[] =>
  view(store.views.entries(session)).messages.map(({ content }) => content[0]?.text);

describe.each(Object.entries(copies))('a session that begins as a copy, %s', (_, records) => {
  test('is a fork: the copied part is stored once, and its tokens count once', () => {
    const store = openStore();
    take(store, original);
    take(store, records);
    expect(store.sessions.find('s-2')).toMatchObject({ parent: 's-1', kind: 'session' });
    expect([...store.entries.read('s-2', { own: true, kind: 'message' })]).toHaveLength(2);
    expect(texts(store, 's-2')).toEqual(['plan it', 'a plan', 'do it elsewhere', 'done']);
    expect(texts(store, 's-1')).toEqual(['plan it', 'a plan', 'do it']);
    const output = store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);
    expect(output).toBe(7);
  });

  test('is a session of its own where the other one is not there, and its copy when that comes', () => {
    const store = openStore();
    take(store, records);
    expect(store.sessions.find('s-2')?.parent).toBeUndefined();
    expect(texts(store, 's-2')).toEqual(['plan it', 'a plan', 'do it elsewhere', 'done']);
    take(store, original);
    // The source inherits from its copy, which was here first; in the tree it is the source.
    expect([...store.entries.read('s-1', { own: true, kind: 'message' })]).toHaveLength(1);
    const other = openStore();
    for (const one of [original, records]) take(other, one);
    expect(stateOf(store)).toEqual(stateOf(other));
    expect([...store.verify()]).toEqual([]);
  });

  test('counts its tokens once when it is imported piece by piece, before or after its source', () => {
    for (const order of [0, 1]) {
      const store = openStore();
      if (order === 0) take(store, original);
      for (let n = 1; n <= records.length; n += 1) take(store, records.slice(0, n));
      if (order === 1) for (let n = 1; n <= original.length; n += 1) take(store, original.slice(0, n));
      const other = openStore();
      for (const one of [original, records]) take(other, one);
      expect(stateOf(store)).toEqual(stateOf(other));
    }
  });
});

describe('a copy of a session with an abandoned branch', () => {
  const usage = { output_tokens: 5 };
  const said = (uuid: string, parent: string | null, text: string): readonly Raw[] => [
    person({ uuid: `${uuid}-p`, parent }, text),
    model({ uuid, parent: `${uuid}-p` }, [says(`did ${text}`)], { usage }),
  ];
  const begun = said('a1', null, 'plan it');
  const left = said('a2', 'a1', 'do it');
  const source = [...begun, ...left, ...said('a3', 'a1', 'do it in Rust')];
  const copyOf = (records: readonly Raw[], session = 's-2'): readonly Raw[] =>
    records.map((record) => ({ ...record, sessionId: session }));
  const named = (records: readonly Raw[]): readonly Raw[] =>
    copyOf(records).map((record) => ({
      ...record,
      forkedFrom: { sessionId: 's-1', messageUuid: record.uuid },
    }));
  const owned = (store: SqliteTapeStore) =>
    store.sessions
      .list({ all: true })
      .reduce((sum, { id }) => sum + [...store.entries.read(id, { own: true, kind: 'message' })].length, 0);

  test.each([
    ['that its records name', named],
    ['that nothing names', copyOf],
  ])(
    '%s stores and counts nothing again, and each of both has the branch, whichever comes first',
    (_, copy) => {
      for (const order of [
        [source, copy(source)],
        [copy(source), source],
      ]) {
        const store = openStore();
        for (const file of [...order, ...order]) take(store, file);
        const { sessions, output } = stateOf(store);
        const branches = ['s-1-branch-a2p', 's-2-branch-a2p'];
        expect(Object.keys(sessions)).toEqual(['s-1', branches[0], 's-2', branches[1]]);
        for (const branch of branches)
          expect(texts(store, branch)).toEqual(['plan it', 'did plan it', 'do it', 'did do it']);
        for (const name of ['s-1', 's-2']) expect(texts(store, name).at(-1)).toBe('did do it in Rust');
        expect([owned(store), output]).toEqual([6, 3 * 5]);
        expect([...store.verify()]).toEqual([]);
      }
    },
  );

  test.each([
    ['that its records name', named],
    ['that nothing names', copyOf],
  ])('%s and goes on from the branch leaves that to its source, whichever comes first', (_, copy) => {
    const fromBranch = copy([...source, ...said('c1', 'a2', 'and a test')]);
    const [one, other] = [
      [source, fromBranch],
      [fromBranch, source],
    ].map((order) => {
      const store = openStore();
      for (const file of [...order, ...order]) take(store, file);
      expect([owned(store), stateOf(store).output]).toEqual([8, 4 * 5]);
      expect([...store.verify()]).toEqual([]);
      return stateOf(store);
    });
    expect(other).toEqual(one);
    expect(one?.sessions['s-1-branch-a2p']).toMatchObject({
      texts: ['plan it', 'did plan it', 'do it', 'did do it'],
      parent: 's-1',
    });
  });

  test('goes on from the branch as a fork of it, and has one where it says more there', () => {
    const on = said('c1', 'a2', 'and a test');
    const fromBranch = copyOf([...source, ...on]);
    // The copy returns to its head, so that what it says behind the branch is a branch of its own.
    const returned = copyOf([...source, ...on, ...said('c2', 'a3', 'go on')], 's-3');
    const store = openStore();
    for (const file of [source, fromBranch, returned]) take(store, file);
    const expected = ['plan it', 'did plan it', 'do it', 'did do it', 'and a test', 'did and a test'];
    expect(texts(store, 's-2')).toEqual(expected);
    expect(store.sessions.find('s-2')?.parent).toBe('s-1-branch-a2p');
    expect(texts(store, 's-3').at(-1)).toBe('did go on');
    const { sessions, output } = stateOf(store);
    const own = ['s-2', 's-2-branch-a3p', 's-3', 's-3-branch-a2p'];
    expect(Object.keys(sessions)).toEqual(['s-1', 's-1-branch-a2p', ...own]);
    expect([owned(store), output]).toEqual([10, 5 * 5]);
    // In the branch of the copy something more is said: it is a fork of what has the rest.
    const more = copyOf(
      [...source, ...on, ...said('c3', 'c1', 'and docs'), ...said('c4', 'a3', 'stop')],
      's-4',
    );
    take(store, more);
    const [branch] = store.sessions
      .list({ all: true })
      .filter(({ session }) => session.startsWith('s-4-branch'));
    expect(branch?.parent).toBe('s-2');
    expect(texts(store, branch?.session ?? '')).toEqual([...expected, 'and docs', 'did and docs']);
    expect(owned(store)).toBe(14);
  });

  test('has it once in pieces', () => {
    const copy = named([...source, ...said('c1', 'a3', 'go on')]);
    for (const cuts of [
      [4, 6, 8],
      [1, 2, 3, 4, 5, 6, 7, 8],
    ]) {
      const store = openStore();
      take(store, source);
      for (const cut of cuts) take(store, copy.slice(0, cut));
      const once = openStore();
      for (const file of [source, copy]) take(once, file);
      expect([cuts, stateOf(store).output]).toEqual([cuts, 4 * 5]);
      expect([cuts, texts(store, 's-2')]).toEqual([cuts, texts(once, 's-2')]);
    }
  });
});

/** What readers find of a home: the conversations, their places in the tree and what all of them cost. */
function stateOf(store: SqliteTapeStore) {
  const sessions = store.sessions.list({ all: true });
  return {
    sessions: Object.fromEntries(
      sessions
        .toSorted((a, b) => (a.session < b.session ? -1 : 1))
        .map((info) => [
          info.session,
          { texts: texts(store, info.session), parent: treeParentOf(info).parent, delivery: info.delivery },
        ]),
    ),
    output: store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0),
  };
}

const at = (record: Raw, minute: number): Raw => ({
  ...record,
  timestamp: `2026-03-01T10:${String(minute).padStart(2, '0')}:00.000Z`,
});

/** A session that goes on, two copies of it, a copy of a copy, and one that has the same records and names no session. */
function family(): readonly (readonly Raw[])[] {
  const begun = original.slice(0, 2).map((record, i) => at(record, i));
  const answer = (uuid: string, parent: string, text: string, minute: number): Raw =>
    at(model({ uuid, parent }, [says(text)], { usage: { output_tokens: 3 } }), minute);
  const source = [...begun, at(original[2] ?? {}, 2), answer('a2', 'u2', 'did it', 3)];
  const forked = (session: string, records: readonly Raw[], from: string): readonly Raw[] =>
    records.map((record) => ({
      ...record,
      sessionId: session,
      forkedFrom: { sessionId: from, messageUuid: record.uuid },
    }));
  const own = (session: string, records: readonly Raw[]): readonly Raw[] =>
    records.map((record) => ({ ...record, sessionId: session }));
  const first = [...forked('s-2', begun, 's-1'), ...own('s-2', [answer('c1', 'a1', 'first copy', 10)])];
  const second = [...forked('s-3', begun, 's-1'), ...own('s-3', [answer('c2', 'a1', 'second copy', 20)])];
  const ofCopy = [...forked('s-4', first, 's-2'), ...own('s-4', [answer('c3', 'c1', 'copy of a copy', 30)])];
  const resumed = own('s-5', [...begun, answer('c4', 'a1', 'resumed', 40)]);
  return [source, first, second, ofCopy, resumed];
}

function orders<T>(all: readonly T[]): readonly (readonly T[])[] {
  if (all.length <= 1) return [all];
  return all.flatMap((one, i) => orders(all.toSpliced(i, 1)).map((rest) => [one, ...rest]));
}

test('a family of copies ends in the same tree, views and tokens in whatever order its files are imported', () => {
  const files = family();
  const expected = openStore();
  for (const file of files) take(expected, file);
  expect(stateOf(expected)).toMatchObject({
    output: 5 + 5 * 3,
    sessions: {
      's-1': { parent: undefined },
      's-2': { parent: 's-1' },
      's-3': { parent: 's-1' },
      's-4': { parent: 's-2' },
      's-5': { parent: 's-1' },
    },
  });
  // All 120 of them take 20 s.
  const step = sized(13, 13, 1);
  for (const order of orders(files).filter((_, i) => i % step === 0)) {
    const store = openStore();
    for (const file of order) take(store, file);
    const names = order.map((one) => one.at(-1)?.sessionId ?? 's-1');
    expect([names, stateOf(store)]).toEqual([names, stateOf(expected)]);
    // Importing again moves nothing.
    const before = [...store.lineage.read()].length;
    for (const file of order) take(store, file);
    expect([names, [...store.lineage.read()].length]).toEqual([names, before]);
  }
});

test('a session that names no source is above its copies though it went on last, and each branch under its own', () => {
  const said = (session: string, uuid: string, parent: string | null, minute: number): readonly Raw[] =>
    [
      at(person({ uuid: `${uuid}-p`, parent }, `ask ${uuid}`), minute),
      at(model({ uuid, parent: `${uuid}-p` }, [says(`did ${uuid}`)]), minute),
    ].map((one) => ({ ...one, sessionId: session }));
  const forked = (records: readonly Raw[], from: string, session: string): readonly Raw[] =>
    records.map((one) => ({
      ...{ ...one, uuid: `${session}-${one.uuid}`, sessionId: session },
      parentUuid: one.parentUuid === null ? null : `${session}-${one.parentUuid}`,
      forkedFrom: { sessionId: from, messageUuid: one.uuid },
    }));
  const begun = [...said('s-1', 'a1', null, 0), ...said('s-1', 'a2', 'a1', 1)];
  const copy = [...forked(begun, 's-1', 's-2'), ...said('s-2', 'c3', 's-2-a2', 10)];
  const files = [
    [...begun, ...said('s-1', 'a3', 'a2', 35), ...said('s-1', 'b2', 'a1', 40)],
    [...copy, ...said('s-2', 'c4', 's-2-a1', 20)],
    [...forked(copy, 's-2', 's-3'), ...said('s-3', 'd4', 's-3-s-2-a2', 30)],
  ];
  const states = orders(files).map((order) => {
    const store = openStore();
    for (const file of order) take(store, file);
    return stateOf(store);
  });
  const parents = Object.entries(states[0]?.sessions ?? {}).map(([session, { parent }]) => [session, parent]);
  expect(Object.fromEntries(parents)).toEqual({
    ...{ 's-1': undefined, 's-2': 's-1', 's-3': 's-2', 's-1-branch-a2p': 's-1' },
    ...{ 's-2-branch-a2p': 's-2', 's-3-branch-c3p': 's-3' },
  });
  for (const state of states) expect(state).toEqual(states[0]);
});

test('a copy stays under the source that it names, though a copy of it was taken for the source of that', () => {
  const answer = (uuid: string, parent: string, minute: number): Raw =>
    at(model({ uuid, parent }, [says(`did ${uuid}`)]), minute);
  const copyOf = (
    source: string,
    session: string,
    records: readonly Raw[],
    ...own: Raw[]
  ): readonly Raw[] => [
    ...records.map((one) => ({ ...one, sessionId: session, session_id: source })),
    ...own.map((one) => ({ ...one, sessionId: session })),
  ];
  const begun = original.slice(0, 2).map((record, i) => at(record, i));
  const second = copyOf('s-1', 's-2', begun, answer('b1', 'a1', 30));
  const third = copyOf('s-2', 's-3', begun, answer('c1', 'a1', 10));
  const fourth = copyOf('s-3', 's-4', third, answer('d1', 'c1', 20));
  const store = openStore();
  for (const file of [second, fourth, third]) take(store, file);
  const parents = ['s-2', 's-3', 's-4'].map((name) => treeParentOf(store.sessions.find(name) ?? {}).parent);
  expect(parents).toEqual([undefined, 's-2', 's-3']);
});

test('a source that comes after its copy, and after a session that went on before it, is below that as in any other order', () => {
  const [begun = {}] = original;
  const on = (sessionId: string, minute: number): Raw => ({
    ...at(person({ uuid: `u-${sessionId}`, parent: 'u1' }, sessionId), minute),
    sessionId,
  });
  const files = [
    [begun, on('s-1', 9)],
    [{ ...begun, sessionId: 's-2', forkedFrom: { sessionId: 's-1', messageUuid: 'u1' } }, on('s-2', 2)],
    [{ ...begun, sessionId: 's-3' }, on('s-3', 3)],
  ];
  for (const order of orders(files)) {
    const store = openStore();
    for (const file of order) take(store, file);
    const parents = ['s-1', 's-2', 's-3'].map((name) => stateOf(store).sessions[name]?.parent);
    expect([order.map((file) => file.at(-1)?.sessionId), parents]).toEqual([
      expect.anything(),
      ['s-3', 's-1', undefined],
    ]);
  }
});

test('files that name each other as their sources make no circle in the tree, and importing them again moves nothing', () => {
  const begun = original.slice(0, 2);
  const named = ['s-1', 's-2', 's-3'].map((session, i, all): readonly Raw[] => {
    const of = all[(i + 1) % all.length];
    const last = at(model({ uuid: `m-${session}`, parent: 'a1' }, [says(session)]), i + 10);
    return [...begun.map((one) => ({ ...one, session_id: of })), last].map((one) => ({
      ...one,
      sessionId: session,
    }));
  });
  for (const order of orders(named)) {
    const store = openStore();
    for (const file of [...order, ...order]) take(store, file);
    for (const { id } of store.sessions.list()) {
      const above = new Set<string>();
      for (let one: string | undefined = id; one !== undefined; ) {
        expect(above).not.toContain(one);
        above.add(one);
        one = treeParentOf(store.sessions.find(one) ?? {}).parentId;
      }
    }
    const before = [...store.lineage.read()].length;
    for (const file of order) take(store, file);
    expect([...store.lineage.read()]).toHaveLength(before);
    expect([...store.verify()]).toEqual([]);
  }
});

test('importing again moves no copy of a source that has a second session here, since the first one went on', () => {
  using store = openStore();
  take(store, original.slice(0, 1));
  store.entries.append('s-1', [user('and here', { run: 'r-1' }), assistant('a run')]);
  const forkedFrom = { sessionId: 's-1', messageUuid: 'u1' };
  const first = original.slice(0, 1).map((record) => ({ ...record, sessionId: 's-2', forkedFrom }));
  const copied = [...first, { ...person({ uuid: 'c2', parent: 'u1' }, 'elsewhere'), sessionId: 's-2' }];
  for (const records of [original, copied]) take(store, records);
  expect(treeParentOf(store.sessions.find('s-2') ?? {}).parent).toBe('s-1');
  const lines = () => [...store.lineage.read()].length;
  const before = lines();
  for (const records of [original, copied]) take(store, records);
  expect(lines()).toBe(before);
  expect(store.sessions.list().map(({ session }) => session)).toContain('s-1-2');
});

test('a copy that a person moved stays where it was put', () => {
  const [source = [], first = []] = family();
  const store = openStore();
  take(store, first);
  store.sessions.open('elsewhere');
  store.lineage.link('s-2', 'elsewhere');
  for (const file of [source, first]) take(store, file);
  expect(treeParentOf(store.sessions.find('s-2') ?? {}).parent).toBe('elsewhere');
  expect(treeParentOf(store.sessions.find('s-1') ?? {}).parent).toBeUndefined();
});

describe('a copy of a session that was compacted', () => {
  const usage = { output_tokens: 5 };
  const boundary = (uuid: string, kept: string, minute: number): readonly Raw[] => [
    at(
      {
        ...{ type: 'system', subtype: 'compact_boundary', uuid, parentUuid: null, sessionId: 's-1' },
        compactMetadata: { trigger: 'manual', preservedSegment: { headUuid: kept, tailUuid: kept } },
      },
      minute,
    ),
    at(person({ uuid: `${uuid}-s`, parent: uuid }, `summary ${uuid}`, { isCompactSummary: true }), minute),
  ];
  const said = (text: string, uuid: string, parent: string, minute: number): readonly Raw[] => [
    at(person({ uuid: `${uuid}-p`, parent }, text), minute),
    at(model({ uuid, parent: `${uuid}-p` }, [says(`did ${text}`)], { usage }), minute),
  ];
  const begun = [at(person({ uuid: 'u1' }, 'plan it'), 0), ...said('begin', 'a1', 'u1', 1)];
  const once = [...begun, ...boundary('b1', 'a1', 2), ...said('go on', 'a2', 'b1-s', 3)];
  const twice = [...once, ...boundary('b2', 'a2', 4), ...said('again', 'a3', 'b2-s', 5)];
  const withoutTokens = (record: Raw): Raw => ({
    ...record,
    message: { ...(record.message as Raw), usage: { output_tokens: 0 } },
  });
  /** What a copy has of its source: the compaction, what that kept, with its old ids and times, and what follows. */
  const copied = (source: readonly Raw[], uuid: string, kept: string): readonly Raw[] => {
    const i = source.findIndex((record) => record.uuid === uuid);
    const records = [
      ...source.slice(i, i + 2),
      withoutTokens({ ...source.find((record) => record.uuid === kept), parentUuid: `${uuid}-s` }),
      ...source
        .slice(i + 2)
        .map((one) => (one.parentUuid === `${uuid}-s` ? { ...one, parentUuid: kept } : one)),
    ].map((one: Raw) => (one.type === 'assistant' ? { ...one, requestSessionId: 's-1' } : one));
    const last = String(source.at(-1)?.uuid);
    return [...records, ...said('in a fork', 'c1', last, 9)].map((one) => ({ ...one, sessionId: 's-2' }));
  };

  /** The same of all of it, as `/branch` writes it: what each compaction kept follows that, and not what was before it. */
  const branched = (source: readonly Raw[], ...kept: readonly (readonly [uuid: string, kept: string])[]) => {
    let records = source;
    for (const [uuid, tail] of kept) {
      const i = records.findIndex((record) => record.uuid === uuid);
      const from = records.findIndex((record) => record.uuid === tail);
      const before = [...records.slice(0, from), ...records.slice(from + 1, i)];
      const [head, ...behind] = copied(records, uuid, tail).slice(0, -2);
      records = [...before, { ...head, parentUuid: `${tail}-p` }, ...behind];
    }
    const named = records.map((one) =>
      one.type === 'assistant' ? { ...one, requestSessionId: 's-1' } : one,
    );
    const last = String(source.at(-1)?.uuid);
    return [...named, ...said('in a fork', 'c1', last, 9)].map((one): Raw => ({ ...one, sessionId: 's-2' }));
  };

  test.each([
    ['once', once, copied(once, 'b1', 'a1'), 3],
    ['twice', twice, copied(twice, 'b2', 'a2'), 4],
    ['twice, from the first on', twice, branched(copied(twice, 'b1', 'a1').slice(0, -2), ['b2', 'a2']), 4],
    ['once, with what precedes that', once, branched(once, ['b1', 'a1']), 3],
    ['twice, with what precedes that', twice, branched(twice, ['b1', 'a1'], ['b2', 'a2']), 4],
  ])('stores and counts nothing again: %s', (_, source, copy, answers) => {
    const store = openStore();
    take(store, source);
    take(store, copy);
    expect(store.sessions.find('s-2')).toMatchObject({ parent: 's-1', kind: 'session' });
    expect([...store.entries.read('s-2', { own: true, kind: 'message' })]).toHaveLength(2);
    const own = openStore();
    take(own, copy);
    expect(texts(store, 's-2').toSorted()).toEqual(texts(own, 's-2').toSorted());
    const head = store.sessions.find('s-2')?.head;
    take(store, copy);
    expect(store.sessions.find('s-2')?.head).toBe(head);
    expect(stateOf(store).output).toBe(answers * 5);
    expect([...store.verify()]).toEqual([]);
    // Piece by piece, and in the other order, its tokens count once as well.
    const pieces = openStore();
    take(pieces, source);
    for (let n = 1; n <= copy.length; n += 1) take(pieces, copy.slice(0, n));
    expect(texts(pieces, 's-2')).toEqual(texts(store, 's-2'));
    expect(stateOf(pieces).output).toBe(answers * 5);
    take(own, source);
    take(own, copy);
    expect(texts(own, 's-1')).toEqual(texts(store, 's-1'));
    expect(stateOf(own).output).toBe(answers * 5);
  });

  test('stores nothing again where both are imported at once, whichever file is found first', async () => {
    for (const [first, second] of [
      ['copy', 'source'],
      ['source', 'copy'],
    ] as const) {
      using dir = tempDir();
      const store = openStore();
      const files = { copy: copied(once, 'b1', 'a1'), source: once };
      writeFileSync(dir.file('1.jsonl'), jsonl(files[first]));
      writeFileSync(dir.file('2.jsonl'), jsonl(files[second]));
      await importFiles(store, [dir.path]);
      expect(store.sessions.find('s-2')).toMatchObject({ parent: 's-1', kind: 'session' });
      expect([...store.entries.read('s-2', { own: true, kind: 'message' })]).toHaveLength(2);
    }
  });

  test('stores nothing again where the source was here before what is attached to its first prompt, which precedes that', () => {
    const attached = {
      ...at(person({ uuid: 'n1', parent: 'u1' }, ''), 0),
      ...{ type: 'attachment', attachment: { type: 'instructions' }, message: undefined },
      rendered: [{ role: 'user', content: [says('be terse')] }],
    };
    const [prompt = {}, ...rest] = once;
    const source = [
      prompt,
      attached,
      ...rest.map((one, i) => (i === 0 ? { ...one, parentUuid: 'n1' } : one)),
    ];
    const store = openStore();
    for (const file of [[prompt], source, copied(source, 'b1', 'a1')]) take(store, file);
    expect(store.sessions.find('s-2')).toMatchObject({ parent: 's-1', kind: 'session' });
    expect([...store.entries.read('s-2', { own: true, kind: 'message' })]).toHaveLength(2);
    expect(stateOf(store).output).toBe(3 * 5);
  });

  describe.each([
    ['once', once, branched(once, ['b1', 'a1']), 3],
    ['twice', twice, branched(twice, ['b1', 'a1'], ['b2', 'a2']), 4],
  ])('by /branch, %s, and was imported before its source,', (_, source, copy, answers) => {
    const on = said('and on', 'a9', String(source.at(-1)?.uuid), 10);
    const owned = (store: SqliteTapeStore, session: string) =>
      [...store.entries.read(session, { own: true, kind: 'message' })].filter(
        ({ payload }) => !JSON.stringify(payload).includes('"content":[]'),
      ).length;
    const wanted = openStore();
    for (const file of [source, copy]) take(wanted, file);

    test('has all that both say: the source is a fork of it, and counts what the compaction kept', () => {
      const store = openStore();
      for (const file of [copy, source]) take(store, file);
      expect(store.sessions.find('s-1')).toMatchObject({ parent: 's-2', kind: 'session' });
      expect(owned(store, 's-1')).toBe(0);
      expect(stateOf(store)).toEqual(stateOf(wanted));
      expect(stateOf(store).output).toBe(answers * 5);
      const heads = () => store.sessions.list({ all: true }).map(({ session, head }) => [session, head]);
      const before = heads();
      for (const file of [source, copy]) take(store, file);
      expect(heads()).toEqual(before);
      expect([...store.verify()]).toEqual([]);
      // What either gets later is its own.
      take(store, [...source, ...on]);
      expect(texts(store, 's-1')).toEqual([...texts(wanted, 's-1'), 'and on', 'did and on']);
      expect(texts(store, 's-2')).toEqual(texts(wanted, 's-2'));
      expect(owned(store, 's-1')).toBe(2);
      expect(stateOf(store).output).toBe((answers + 1) * 5);
    });

    test('has a prompt that is typed anew right behind its summary once, however often it is imported', () => {
      const summary = String(copy.findLast(({ isCompactSummary }) => isCompactSummary === true)?.uuid);
      const anew = said('in another way', 'c2', summary, 11).map((one) => ({ ...one, sessionId: 's-2' }));
      for (const order of [
        [source, [...copy, ...anew]],
        [[...copy, ...anew], source],
      ]) {
        const store = openStore();
        for (const file of order) take(store, file);
        const heads = () => store.sessions.list({ all: true }).map(({ session, head }) => [session, head]);
        const before = heads();
        for (const file of order) take(store, file);
        expect(heads()).toEqual(before);
        expect(texts(store, 's-2').at(-1)).toBe('did in another way');
      }
    });

    test('counts its tokens once in pieces, and where the source came in pieces', () => {
      for (const isSource of [false, true]) {
        const store = openStore();
        const [pieces, other] = isSource ? [source, copy] : [copy, source];
        if (isSource) take(store, other);
        for (let n = 1; n <= pieces.length; n += 1) take(store, pieces.slice(0, n));
        if (!isSource) take(store, other);
        expect([isSource, stateOf(store)]).toEqual([isSource, stateOf(wanted)]);
      }
    });

    test('shares a branch of the source, also one that was left within what the compaction kept', () => {
      for (const parent of [String(source.at(-3)?.uuid), 'a1-p']) {
        const left = [...source, ...said('and on', 'a9', parent, 10)];
        const [one, other] = [
          [copy, left],
          [left, copy],
        ].map((order) => {
          const store = openStore();
          for (const file of [...order, ...order]) take(store, file);
          expect([...store.verify()]).toEqual([]);
          return stateOf(store);
        });
        expect([parent, one]).toEqual([parent, other]);
      }
    });
  });

  test('stores and counts what is left of it once where a prompt is typed anew right behind its compaction', () => {
    const anew = said('in another way', 'c2', 'a1', 10).map((one) => ({ ...one, sessionId: 's-2' }));
    const copy = [...copied(once, 'b1', 'a1'), ...anew];
    const store = openStore();
    for (const records of [once, copy, copy]) take(store, records);
    expect(texts(store, 's-2').slice(-2)).toEqual(['in another way', 'did in another way']);
    const left = ['go on', 'did go on', 'in a fork', 'did in a fork'];
    expect(texts(store, 's-2-branch-a2p').slice(-4)).toEqual(left);
    const { sessions, output } = stateOf(store);
    expect(Object.keys(sessions)).toEqual(['s-1', 's-2', 's-2-branch-a2p']);
    const owned = Object.keys(sessions).map(
      (name) => [...store.entries.read(name, { own: true, kind: 'message' })].length,
    );
    expect([owned, output]).toEqual([[5, 2, 2], 4 * 5]);
    expect([...store.verify()]).toEqual([]);
  });

  test('counts what its branch has of its source once where it is imported before that', () => {
    const source: readonly Raw[] = once.map((one) =>
      one.uuid === 'b1' ? { ...one, compactMetadata: { trigger: 'manual' } } : one,
    );
    const copy = [
      ...source.slice(begun.length).map((one) => ({ ...one, session_id: 's-1' })),
      ...said('in another way', 'c2', 'b1-s', 10),
    ].map((one): Raw => ({ ...one, sessionId: 's-2' }));
    const store = openStore();
    for (const records of [copy, source]) take(store, records);
    expect(Object.keys(stateOf(store).sessions)).toEqual(['s-1', 's-2', 's-2-branch-a2p']);
    expect(stateOf(store).output).toBe(3 * 5);
  });

  test('finds its place where it is read before an answer that names its source', () => {
    const second = [
      ...begun.map((one) => ({ ...one, session_id: 's-1' })),
      ...boundary('b1', '', 2).map((one) => ({ ...one, compactMetadata: undefined })),
      ...said('go on', 'a2', 'b1-s', 3),
    ].map((one) => ({ ...one, sessionId: 's-2' }));
    const third = second.slice(begun.length).map((one: Raw) => ({
      ...{ ...one, sessionId: 's-3' },
      ...(one.type === 'assistant' && { requestSessionId: 's-2' }),
    }));
    const store = openStore();
    for (const records of [begun, second, third.slice(0, -1), third]) take(store, records);
    const parents = ['s-1', 's-2', 's-3'].map((name) => stateOf(store).sessions[name]?.parent);
    expect(parents).toEqual([undefined, 's-1', 's-2']);
  });

  test('keeps one session where it is read before the summary of its compaction, and a prompt is typed anew', () => {
    const source: readonly Raw[] = once.map((one) =>
      one.uuid === 'b1' ? { ...one, compactMetadata: { trigger: 'manual' } } : one,
    );
    const copy = [
      ...source.slice(begun.length).map((one) => ({ ...one, session_id: 's-1' })),
      ...said('in a fork', 'c1', 'a2', 9),
    ].map((one): Raw => ({ ...one, sessionId: 's-2' }));
    const anew = said('in another way', 'c2', 'a2', 10).map((one) => ({ ...one, sessionId: 's-2' }));
    const store = openStore();
    take(store, source);
    for (const records of [copy.slice(0, 1), copy, [...copy, ...anew]]) take(store, records);
    const whole = openStore();
    for (const records of [source, [...copy, ...anew]]) take(whole, records);
    expect(stateOf(store)).toEqual(stateOf(whole));
    expect(Object.keys(stateOf(store).sessions)).toEqual(['s-1', 's-2', 's-2-branch-c1p']);
    expect([...store.verify()]).toEqual([]);
  });
});

test('an answer that was arriving in a copy when its source was read counts once', () => {
  const answer = { id: 'm1', requestId: 'r1' };
  const source: readonly Raw[] = [
    person({ uuid: 'u1' }, 'plan it'),
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [says('a plan')], {
      ...answer,
      usage: { output_tokens: 3 },
    }),
    model({ uuid: 'a2', parent: 'a1', id: 'm1' }, [calls('t1')], { ...answer, usage: { output_tokens: 7 } }),
  ];
  const copied = source.map((one) => ({
    ...{ ...one, uuid: `c-${one.uuid}`, sessionId: 's-2' },
    parentUuid: one.parentUuid === null ? null : `c-${one.parentUuid}`,
  }));
  const store = openStore();
  for (const file of [copied.slice(0, 2), source, copied]) take(store, file);
  expect(stateOf(store).output).toBe(7);
});

test('a copy in pieces whose answers name no request counts none that its source has from another copy', () => {
  const { requestId: _, ...answer } = original[1] ?? {};
  const source = [original[0] ?? {}, answer];
  const copyTo = (sessionId: string): readonly Raw[] => [
    ...source.map((one) => ({ ...one, sessionId, forkedFrom: { sessionId: 's-1', messageUuid: one.uuid } })),
    {
      ...model({ uuid: `a-${sessionId}`, parent: 'a1' }, [says('on')], { usage: { output_tokens: 2 } }),
      sessionId,
    },
  ];
  const store = openStore();
  for (const file of [copyTo('s-2'), source, copyTo('s-3').slice(0, 1), copyTo('s-3')]) take(store, file);
  expect(stateOf(store).output).toBe(5 + 2 + 2);
});

test('answers of one millisecond in two sessions, of which no record names a request, count each', () => {
  const answered = (session: string): readonly Raw[] =>
    original.slice(0, 2).map(({ requestId: _, ...one }) => ({
      ...{ ...one, sessionId: session, uuid: `${session}-${one.uuid}` },
      parentUuid: one.parentUuid === null ? null : `${session}-${one.parentUuid}`,
      message: { ...(one.message as object), ...(one.type === 'assistant' && { id: `msg_${session}` }) },
    }));
  const store = openStore();
  // A subagent has other prompts than its session: what both say is no copy.
  const asked = answered('s-2').map((one) =>
    one.type === 'user' ? { ...one, message: { role: 'user', content: 'something else' } } : one,
  );
  for (const file of [answered('s-1'), asked]) take(store, file);
  expect(stateOf(store).output).toBe(2 * 5);
});

test('an answer that was arriving when a session was resumed under new ids counts once, whichever of them has it first', () => {
  const records = [
    person({ uuid: 'u1' }, 'plan it'),
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [says('I think')], { usage: { output_tokens: 3 } }),
    model({ uuid: 'a2', parent: 'a1', id: 'm1' }, [says('a plan')], { usage: { output_tokens: 7 } }),
  ];
  const resumed = records.map((one: Raw) => ({
    ...{ ...one, uuid: `r-${one.uuid}`, sessionId: 's-2' },
    parentUuid: one.parentUuid === null ? null : `r-${one.parentUuid}`,
  }));
  for (const rest of orders([records, resumed])) {
    const store = openStore();
    for (const file of [records.slice(0, 2), resumed.slice(0, 2), ...rest]) take(store, file);
    expect(stateOf(store).output).toBe(7);
  }
});

test('a copy of a copy has a branch of that once, wherever its records got new ids', () => {
  const usage = { output_tokens: 5 };
  const said = (session: string, uuid: string, parent: string | null, text: string): readonly Raw[] =>
    [
      person({ uuid: `${uuid}-p`, parent }, text),
      model({ uuid, parent: `${uuid}-p` }, [says(`did ${text}`)], { usage }),
    ].map((one) => ({ ...one, sessionId: session }));
  const forked = (records: readonly Raw[], session: string): readonly Raw[] =>
    records.map((one) => ({
      ...{ ...one, uuid: `${session}-${one.uuid}`, sessionId: session },
      parentUuid: one.parentUuid === null ? null : `${session}-${one.parentUuid}`,
      forkedFrom: { sessionId: one.sessionId, messageUuid: one.uuid },
    }));
  const first = said('s-1', 'a1', null, 'plan it');
  const second = [...forked(first, 's-2'), ...said('s-2', 'a2', 's-2-a1', 'do it')];
  const third = [...forked(second, 's-3'), ...said('s-3', 'a3', 's-3-a2', 'test it')];
  // The second one goes on from before what the third one has of it.
  const store = openStore();
  for (const file of [first, [...second, ...said('s-2', 'a4', 's-2-a1', 'do it in Rust')], third])
    take(store, file);
  expect(texts(store, 's-3').slice(2)).toEqual(['do it', 'did do it', 'test it', 'did test it']);
  const { sessions, output } = stateOf(store);
  expect(Object.keys(sessions)).toEqual(['s-1', 's-2', 's-2-branch-a2p', 's-3']);
  const owned = store.sessions
    .list({ all: true })
    .flatMap(({ id }) => [...store.entries.read(id, { own: true, kind: 'message' })]);
  expect([owned.length, output]).toEqual([8, 4 * 5]);
  expect([...store.verify()]).toEqual([]);
});

describe('a session that was resumed as a copy under new ids, which names nothing', () => {
  const renamed = (record: Raw): Raw => ({
    ...record,
    uuid: `r-${record.uuid}`,
    parentUuid: record.parentUuid === null ? null : `r-${record.parentUuid}`,
    ...{ sessionId: 's-2', cwd: '/elsewhere', version: '2.0.0' },
  });
  const own = (record: Raw): Raw => ({ ...record, sessionId: 's-2' });
  const usage = { output_tokens: 7 };
  const source = [
    ...original,
    model({ uuid: 'a2', parent: 'u2' }, [calls('t1')], { usage }),
    person({ uuid: 'r2', parent: 'a2' }, [returns('t1')]),
    model({ uuid: 'a3', parent: 'r2' }, [says('did it')]),
  ];
  const resumed = [
    ...source.map(renamed),
    own(person({ uuid: 'c0', parent: 'r-a3' }, 'go on')),
    own(model({ uuid: 'c1', parent: 'c0' }, [says('more')], { usage })),
  ];
  const begun = ['plan it', 'a plan', 'do it', undefined, undefined, 'did it'];
  const both = [
    [source, resumed],
    [resumed, source],
  ] as const;
  const said = (store: SqliteTapeStore, text: string) =>
    store.sessions
      .list()
      .flatMap(({ id }) => [...store.entries.read(id, { own: true, kind: 'message' })])
      .filter(({ payload }) => JSON.stringify(payload).includes(`"${text}"`)).length;

  test('is found without a list of the sessions that have nothing in common with it', () => {
    let listed = 0;
    const store = wrapStore(openStore(), ({ method, act }) => {
      const answer = act();
      if (method === 'sessions.list') listed += (answer as readonly unknown[]).length;
      return answer;
    });
    for (let i = 0; i < 9; i += 1) store.sessions.open(`other-${i}`);
    const origins = new Origins(store);
    take(store, source, { origins });
    listed = 0;
    take(store, resumed, { origins });
    expect(listed).toBe(0);
    expect(texts(store, 's-2')).toEqual([...begun, 'go on', 'more']);
  });

  test.each(both)('is a fork of it, in whichever order they are imported', (...order) => {
    const store = openStore();
    for (const file of order) take(store, file);
    expect(texts(store, 's-1')).toEqual(begun);
    expect(texts(store, 's-2')).toEqual([...begun, 'go on', 'more']);
    expect(treeParentOf(store.sessions.find('s-2') ?? {}).parent).toBe('s-1');
    expect(treeParentOf(store.sessions.find('s-1') ?? {}).parent).toBeUndefined();
    expect(store.sessions.find('s-2')?.link).toMatchObject({
      ...{ type: 'copy', derived: true, evidence: 'both begin with the same 6 entries' },
    });
    for (const text of ['plan it', 'a plan', 'did it', 'more'])
      expect([text, said(store, text)]).toEqual([text, 1]);
    expect(stateOf(store).output).toBe(5 + 7 + 7);
    expect([...store.verify()]).toEqual([]);
    // Grown, it still has what it shares; so has an older copy of it.
    const before = store.sessions.list().map(({ head }) => head);
    for (const file of order) take(store, file);
    for (const file of order) take(store, file.slice(0, 5), { rewritten: true });
    expect(store.sessions.list().map(({ head }) => head)).toEqual(before);
    const grown = [...resumed, own(person({ uuid: 'c2', parent: 'c1' }, 'and on'))];
    take(store, grown);
    take(store, [...source, person({ uuid: 'u4', parent: 'a3' }, 'here, too')]);
    expect(texts(store, 's-2')).toEqual([...begun, 'go on', 'more', 'and on']);
    expect(texts(store, 's-1')).toEqual([...begun, 'here, too']);
    expect([...store.entries.read('s-2', { own: true, kind: 'rewind' })]).toEqual([]);
  });

  test.each(both)('leaves each of both the time of its last message', (...order) => {
    const store = openStore();
    const timed = (records: readonly Raw[]) =>
      records.map((one, i) => ({ ...one, timestamp: `2026-03-01T10:00:0${i}.000Z` }));
    for (const file of order) take(store, timed(file));
    const last = ['s-1', 's-2'].map((name) => store.sessions.find(name)?.lastMessageAt ?? 0);
    expect(last.map((time) => new Date(time).toISOString().slice(17, 19))).toEqual(['05', '07']);
  });

  test.each(both)('counts its answers once in pieces', (...order) => {
    const store = openStore();
    for (const file of order) for (let n = 1; n <= file.length; n += 1) take(store, file.slice(0, n));
    expect(texts(store, 's-1')).toEqual(begun);
    expect(texts(store, 's-2')).toEqual([...begun, 'go on', 'more']);
    expect(stateOf(store).output).toBe(5 + 7 + 7);
  });

  test('is below it also where it was read before its first answer', () => {
    for (const cut of [1, 2, 3]) {
      const store = openStore();
      for (const file of [source, resumed.slice(0, cut), resumed]) take(store, file);
      expect([cut, treeParentOf(store.sessions.find('s-2') ?? {}).parent]).toEqual([cut, 's-1']);
      expect(stateOf(store).output).toBe(5 + 7 + 7);
    }
  });

  test('is below it, where both went on, if that went on first, in whichever order they are imported', () => {
    const on = at(person({ uuid: 'u4', parent: 'a3' }, 'here, too'), 1);
    const later = resumed.map((one: Raw) => (one.uuid === 'c0' ? at(one, 2) : one));
    for (const order of orders([[...source, on], later])) {
      const store = openStore();
      for (const file of [...order, ...order]) take(store, file);
      const parents = ['s-1', 's-2'].map((name) => treeParentOf(store.sessions.find(name) ?? {}).parent);
      expect(parents).toEqual([undefined, 's-1']);
    }
  });

  test('is below it, where that is a copy of another one by name, before and after that comes', () => {
    const last = model({ uuid: 'a0', parent: 'u1' }, [says('another plan')]);
    const other = [...source.slice(0, 1), last].map((one: Raw) => ({ ...one, sessionId: 's-0' }));
    const copied = source.map((one: Raw, i) => (i === 0 ? { ...one, session_id: 's-0' } : one));
    for (const order of [
      [other, copied, resumed],
      [copied, resumed, other],
    ]) {
      const store = openStore();
      for (const file of order) take(store, file);
      const parents = ['s-0', 's-1', 's-2'].map((name) => stateOf(store).sessions[name]?.parent);
      expect(parents).toEqual([undefined, 's-0', 's-1']);
    }
  });

  test('says nothing of what it inherits: edges that no record names are in the session that has them', () => {
    const store = openStore();
    const broken = source.map((one) => (one.uuid === 'u2' ? { ...one, parentUuid: 'lost' } : one));
    take(store, broken);
    take(store, [...broken.map(renamed), ...resumed.slice(source.length)]);
    expect(derivedIn(store, 's-1')).toMatchObject([{ of: 'cc:u2', from: 'cc:a1', why: 'parent-missing' }]);
    expect(derivedIn(store, 's-2')).toEqual([]);
  });

  describe.each([
    ['in pieces', [8, 12]],
    ['at once', [12]],
  ])('with a prompt typed anew before where it was resumed, %s', (_, cuts) => {
    const records = [
      ...resumed,
      own(person({ uuid: 'c2', parent: 'c0' }, 'go on in Rust')),
      own(model({ uuid: 'c3', parent: 'c2' }, [says('in Rust')], { usage })),
      own(person({ uuid: 'c4', parent: 'r-a1' }, 'do something else')),
      own(model({ uuid: 'c5', parent: 'c4' }, [says('did that')], { usage })),
    ];

    test('stores each text once, and nothing when it is read again', () => {
      const store = openStore();
      take(store, source);
      for (const cut of cuts) take(store, records.slice(0, cut));
      expect(texts(store, 's-2')).toEqual(['plan it', 'a plan', 'do something else', 'did that']);
      for (const text of ['plan it', 'do it', 'did it', 'go on', 'go on in Rust', 'in Rust'])
        expect([text, said(store, text)]).toEqual([text, 1]);
      const heads = () => store.sessions.list().map(({ session, head }) => [session, head]);
      const before = heads();
      take(store, records);
      expect(heads()).toEqual(before);
      expect(stateOf(store).output).toBe(5 + 7 * 4);
      expect([...store.verify()]).toEqual([]);
    });
  });

  const anew = own(person({ uuid: 'c4', parent: 'r-a1' }, 'in Rust'));
  test.each([
    ...['r-u1', 'r-a1', 'r-u2', 'r-a3', 'c0'].map((parent) => ({ parent, way: 'alone', first: resumed })),
    ...['r-u1', 'r-a1'].map((parent) => ({ parent, way: 'beside a branch', first: [...resumed, anew] })),
  ])(
    'has a prompt that is typed anew behind $parent, $way, once what it inherits is erased',
    ({ parent, first }) => {
      const store = openStore();
      for (const file of [source, first]) take(store, file);
      const kinds = new Set(['message', 'tool-result']);
      const seqs = [...store.entries.read('s-1', { own: true })].flatMap(({ kind, seq }) =>
        kinds.has(kind) ? [seq] : [],
      );
      store.entries.redact('s-1', seqs, 'private');
      const records = [
        ...first,
        // What was erased is known by its time.
        own(person({ uuid: 'c5', parent }, 'something else', { timestamp: '2026-03-12T10:00:00.000Z' })),
        own(model({ uuid: 'c6', parent: 'c5' }, [says('something done')], { usage })),
      ];
      for (const end of [records.length - 1, records.length]) take(store, records.slice(0, end));
      const heads = () => store.sessions.list().map(({ head }) => head);
      const before = heads();
      take(store, records);
      expect(heads()).toEqual(before);
      for (const text of ['go on', 'more', 'something else', 'something done'])
        expect([text, said(store, text)]).toEqual([text, 1]);
      for (const text of ['plan it', 'a plan', 'do it', 'did it'])
        expect([text, said(store, text)]).toEqual([text, 0]);
      expect([...store.verify()]).toEqual([]);
    },
  );

  test('shares its branches, and only what is equal', () => {
    const store = openStore();
    take(store, source);
    // The prompt is typed anew, so that the answer to the first one is a branch.
    take(store, [...resumed, own(person({ uuid: 'c3', parent: 'r-a1' }, 'do something else'))]);
    expect(texts(store, 's-2')).toEqual(['plan it', 'a plan', 'do something else']);
    for (const text of ['plan it', 'do it', 'did it']) expect([text, said(store, text)]).toEqual([text, 1]);
    const edited = resumed.map((one) => ({ ...one, sessionId: 's-3' }));
    take(
      store,
      edited.with(2, { ...person({ uuid: 'r-u2', parent: 'r-a1' }, 'do it well'), sessionId: 's-3' }),
    );
    expect(texts(store, 's-3').slice(0, 3)).toEqual(['plan it', 'a plan', 'do it well']);
    expect([said(store, 'plan it'), said(store, 'did it')]).toEqual([1, 2]);
    expect([...store.verify()]).toEqual([]);
  });
});

test('an id that a proxy gives to every request counts each answer of a session', () => {
  const constant = (session: string): readonly Raw[] =>
    ['a', 'b']
      .flatMap((one, i) => [
        person({ uuid: `${session}-p${one}`, ...(i > 0 && { parent: `${session}-a` }) }, `ask ${one}`),
        model({ uuid: `${session}-${one}`, parent: `${session}-p${one}` }, [says(one)], {
          usage: { output_tokens: 3 },
          requestId: 'req_same',
        }),
      ])
      .map((record) => ({ ...record, sessionId: session }));
  const store = openStore();
  for (const session of ['s-1', 's-2']) take(store, constant(session));
  expect(stateOf(store).output).toBe(4 * 3);
});

test('a copy of what follows a /clear is stored and counted once, whichever of them is imported first', () => {
  const cleared: readonly Raw[] = [
    person({ uuid: 'u5' }, 'begin anew'),
    model({ uuid: 'a5', parent: 'u5' }, [says('anew')], { usage: { output_tokens: 7 } }),
  ];
  const source = [...original.slice(0, 2), ...cleared];
  const copied = [
    ...cleared.map((one) => (one.type === 'assistant' ? { ...one, requestSessionId: 's-1' } : one)),
    person({ uuid: 'u6', parent: 'a5' }, 'and on'),
  ].map((one): Raw => ({ ...one, sessionId: 's-2' }));
  for (const files of orders([source, copied])) {
    const store = openStore();
    for (const file of [...files, ...files]) take(store, file);
    const owned = store.sessions
      .list({ all: true })
      .flatMap(({ id }) => [...store.entries.read(id, { own: true, kind: 'message' })]);
    expect([owned.length, stateOf(store).output]).toEqual([5, 5 + 7]);
    expect(stateOf(store).sessions['s-1-clear-u5']?.parent).toBe('s-1');
    expect([...store.verify()]).toEqual([]);
  }
});

test('what a copy has of the middle of what follows a /clear counts once, whichever of them is imported first', () => {
  const usage = { output_tokens: 7 };
  const cleared: readonly Raw[] = [
    person({ uuid: 'u5' }, 'begin anew'),
    model({ uuid: 'a5', parent: 'u5' }, [says('anew')], { usage }),
    // A copy has what leads to its end, which a lost parent cuts off.
    person({ uuid: 'u6', parent: 'lost' }, 'and on'),
    model({ uuid: 'a6', parent: 'u6' }, [says('on')], { usage }),
  ];
  const source = [...original.slice(0, 2), ...cleared];
  const named = cleared.slice(2).map((one) => ({ ...one, forkedFrom: { sessionId: 's-1' } }));
  const copied = [...named, person({ uuid: 'u7', parent: 'a6' }, 'elsewhere')];
  const copyFile = copied.map((one): Raw => ({ ...one, sessionId: 's-2' }));
  for (const files of orders([source, copyFile])) {
    const store = openStore();
    for (const file of [...files, ...files]) take(store, file);
    expect(stateOf(store).output).toBe(5 + 7 + 7);
    expect([...store.verify()]).toEqual([]);
  }
});

test('a copy of a copy has what a branch of that has once, wherever its records got new ids', () => {
  const said = (session: string, uuid: string, parent: string | null): readonly Raw[] =>
    [
      person({ uuid: `${uuid}-p`, parent }, `ask ${uuid}`),
      model({ uuid, parent: `${uuid}-p` }, [says(`did ${uuid}`)], { usage: { output_tokens: 5 } }),
    ].map((one) => ({ ...one, sessionId: session }));
  const forked = (records: readonly Raw[], from: string, session: string): readonly Raw[] =>
    records.map((one) => ({
      ...{ ...one, uuid: `${session}-${one.uuid}`, sessionId: session },
      parentUuid: one.parentUuid === null ? null : `${session}-${one.parentUuid}`,
      forkedFrom: { sessionId: from, messageUuid: one.uuid },
    }));
  const first = [...said('s-1', 'a1', null), ...said('s-1', 'a2', 'a1')];
  const second = [...forked(first, 's-1', 's-2'), ...said('s-2', 'b3', 's-2-a2')];
  const third = [...forked(second, 's-2', 's-3'), ...said('s-3', 'c4', 's-3-b3')];
  const files = [
    first,
    [...second, ...said('s-2', 'b2', 's-2-a1')],
    [...third, ...said('s-3', 'c3', 's-3-s-2-a2')],
  ];
  const store = openStore();
  for (const file of [...files, ...files]) take(store, file);
  expect(texts(store, 's-3').slice(-2)).toEqual(['ask c3', 'did c3']);
  const left = store.sessions.list().find(({ session }) => session.startsWith('s-3-branch'));
  expect(texts(store, left?.session ?? '').slice(-4)).toEqual(['ask b3', 'did b3', 'ask c4', 'did c4']);
  const owned = store.sessions
    .list({ all: true })
    .flatMap(({ id }) => [...store.entries.read(id, { own: true, kind: 'message' })]);
  expect([owned.length, stateOf(store).output]).toEqual([2 * 6, 5 * 6]);
  expect([...store.verify()]).toEqual([]);
});

test('an older version of a copy that ends in an answer which it has under another id adds nothing', () => {
  const usage = { output_tokens: 5 };
  const forked = (records: readonly Raw[], from: string, session: string): readonly Raw[] =>
    records.map((one) => ({
      ...{ ...one, uuid: `${session}-${one.uuid}`, sessionId: session },
      parentUuid: one.parentUuid === null ? null : `${session}-${one.parentUuid}`,
      forkedFrom: { sessionId: from, messageUuid: one.uuid },
    }));
  const first = [
    person({ uuid: 'u1' }, 'plan it'),
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [says('I think')], { usage }),
    model({ uuid: 'a2', parent: 'a1', id: 'm1' }, [says('a plan')], { usage }),
  ];
  const second = forked(first, 's-1', 's-2');
  const third = [
    ...forked(second, 's-2', 's-3'),
    { ...person({ uuid: 'u3', parent: 's-3-s-2-a2' }, 'do it'), sessionId: 's-3' },
  ];
  const store = openStore();
  for (const file of [first, second, third]) take(store, file);
  const before = stateOf(store);
  for (const n of [2, 3]) take(store, third.slice(0, n), { rewritten: true });
  expect(Object.keys(before.sessions)).toEqual(['s-1', 's-2', 's-3']);
  expect(stateOf(store)).toEqual(before);
});

test('a copy of a copy, of which pieces came, has for its title the first prompt that its nearest source does not have', () => {
  const at = (minute: number) => ({ timestamp: `2026-01-02T03:${String(minute).padStart(2, '0')}:00.500Z` });
  const turn = (n: number, text: string, of: object): readonly Raw[] => [
    { ...person({ uuid: `u${n}`, ...(n > 1 && { parent: `a${n - 1}` }) }, text), ...at(2 * n), ...of },
    { ...model({ uuid: `a${n}`, parent: `u${n}` }, [says(`did ${text}`)]), ...at(2 * n + 1), ...of },
  ];
  const from = (sessionId: string) => ({ forkedFrom: { sessionId } });
  const [first, second, third, last] = ['first', 'second', 'third', 'last'];
  const [source, copy] = [{ sessionId: 's-2', ...from('s-1') }, { sessionId: 's-3' }];
  const begun = turn(1, first, { ...copy, ...from('s-1') });
  const copied = [...begun, ...turn(2, second, { ...copy, ...from('s-2') }), ...turn(3, third, copy)];
  const wentOn = turn(9, last, { sessionId: 's-2' }).map((one, i) =>
    i === 0 ? { ...one, parentUuid: 'a2' } : one,
  );
  using store = openStore();
  take(store, turn(1, first, { sessionId: 's-1' }));
  take(store, turn(1, first, source));
  take(store, begun);
  take(store, copied);
  take(store, [...turn(1, first, source), ...turn(2, second, { sessionId: 's-2' }), ...wentOn]);
  const titles = store.sessions.list({ titles: true }).map(({ session, title }) => [session, title]);
  expect(Object.fromEntries(titles)).toEqual({ 's-1': first, 's-2': second, 's-3': third });
});

describe.each(Object.entries(copies))('a copy %s', (_, copied) => {
  test('and its source are whole in each realm into which they are imported', () => {
    const planOf = (records: readonly Raw[]) =>
      planClaudeCode({ name: 's', lines: parseJsonLines([Buffer.from(jsonl(records))]).records });
    const stateOf = (store: SqliteTapeStore) => ({
      sessions: store.sessions
        .list({ all: true })
        .map(({ session, id }) => [session, view(store.views.entries(id)).messages]),
      output: store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0),
    });
    using store = openStore();
    for (const records of [original.slice(0, 2), copied.slice(0, 3)]) reconcile(store, planOf(records));
    const before = stateOf(store);
    using alone = openStore();
    const here = store.inRealm('work');
    for (const records of [original, copied]) {
      reconcile(alone, planOf(records));
      expect(reconcile(here, planOf(records)).filter(({ refused }) => refused !== undefined)).toEqual([]);
    }
    expect(stateOf(here)).toEqual(stateOf(alone));
    expect(stateOf(store)).toEqual(before);
    // Each goes on in the realm in which it grows.
    for (const records of [original, copied]) reconcile(store, planOf(records));
    expect(stateOf(store)).toEqual(stateOf(alone));
    expect([...store.verify()]).toEqual([]);
  });
});

test('a first prompt that is typed anew in the source of a copy leaves a branch that has its title', () => {
  const typed = { promptSource: 'typed' };
  const first = (sessionId: string) => [
    person({ uuid: 'u1', parent: null }, 'a plan', { sessionId, ...typed }),
    model({ uuid: 'a1', parent: 'u1' }, [says('a reply')], { sessionId }),
  ];
  const again = person({ uuid: 'u2', parent: null }, 'another plan', { sessionId: 's-1', ...typed });
  using store = openStore();
  const take = (records: readonly object[]) => {
    const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
    return reconcile(store, planClaudeCode({ name: 'file', lines }));
  };
  take(first('s-0'));
  take(first('s-1'));
  take([...first('s-1'), again]);
  const branches = store.sessions.list({ all: true, titles: true });
  expect(branches.flatMap(({ session, title }) => (session.includes('branch') ? [title] : []))).toEqual([
    'a plan',
  ]);
});
