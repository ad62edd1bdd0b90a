import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { assistant, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };
/** What is imported at once: the file of a session, if it is there, and that of its subagent. */
type Piece = readonly [session: string, main: readonly Raw[], agent?: readonly Raw[]];

const usage = { output_tokens: 5 };
const at = (record: Raw, i: number): Raw => ({
  ...record,
  timestamp: new Date(Date.UTC(2026, 2, 1, 10, 0, i)).toISOString(),
});
const of = (session: string, records: readonly Raw[]): readonly Raw[] =>
  records.map((one) => ({ ...one, sessionId: session }));
const said = (uuid: string, parent: string | null, second: number): readonly Raw[] => [
  at(person({ uuid: `u${uuid}`, parent }, `ask ${uuid}`), second),
  at(model({ uuid: `a${uuid}`, parent: `u${uuid}` }, [says(`did ${uuid}`)], { usage }), second + 1),
];
/** A turn whose answer calls a subagent, and the result of that. */
const called = (session: string, parent: string, second: number): readonly Raw[] =>
  of(session, [
    at(person({ uuid: `${session}-u`, parent }, `look in ${session}`), second),
    at(
      model({ uuid: `${session}-a`, parent: `${session}-u` }, [calls(`${session}-t`, 'Task')], { usage }),
      second + 1,
    ),
    at(
      person({ uuid: `${session}-r`, parent: `${session}-a` }, [returns(`${session}-t`)], {
        toolUseResult: { status: 'completed', agentId: session },
      }),
      second + 2,
    ),
  ]);
const agentOf = (session: string, second: number): readonly Raw[] => {
  const inside = { isSidechain: true, agentId: session };
  return of(session, [
    at(person({ uuid: `${session}-su` }, 'look', inside), second),
    at(
      model({ uuid: `${session}-sa`, parent: `${session}-su` }, [says(`seen in ${session}`)], {
        ...inside,
        usage,
      }),
      second + 1,
    ),
  ]);
};

const compaction = (parent: string, second: number): readonly Raw[] =>
  [
    { ...person({ uuid: 'c1' }, ''), type: 'system', subtype: 'compact_boundary', logicalParentUuid: parent },
    person({ uuid: 's1', parent: 'c1' }, 'what was done', { isCompactSummary: true }),
  ].map((one) => at(one, second));

const begun = [...said('1', null, 0), ...said('2', 'a1', 2)];
const source = [...begun, ...called('s-1', 'a2', 10)];
const compacted = [...begun, ...compaction('a2', 4), ...said('3', 's1', 5)];

/** The ways in which a session begins as another one does, each with that and the record at which its own part begins. */
const copies: readonly (readonly [string, readonly Raw[], readonly Raw[], string])[] = [
  [
    'by /branch',
    source,
    begun.map((one) => ({ ...one, forkedFrom: { sessionId: 's-1', messageUuid: one.uuid } })),
    'a2',
  ],
  ['and names nothing', source, begun, 'a2'],
  [
    'under other ids',
    source,
    begun.map((one) => ({
      ...{ ...one, uuid: `r-${one.uuid}` },
      parentUuid: one.parentUuid === null ? null : `r-${one.parentUuid}`,
    })),
    'r-a2',
  ],
  ['from a compaction on', compacted, compacted.slice(begun.length), 'a3'],
];

function take(store: SqliteTapeStore, ...pieces: Piece[]): SqliteTapeStore {
  const linesOf = (records: readonly Raw[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;
  for (const [session, main, agent] of pieces) {
    const lines = main.length === 0 ? [] : linesOf(main);
    const meta = { toolUseId: `${session}-t` };
    const agents = agent === undefined ? [] : [{ id: session, lines: linesOf(agent), meta }];
    reconcile(store, planClaudeCode({ name: session, lines, agents }));
  }
  expect([...store.verify()]).toEqual([]);
  return store;
}

/** What readers find of a home, and how often it has what was said before a subagent was called. */
function told(store: SqliteTapeStore) {
  const infos = store.sessions.list({ all: true, deleted: false });
  const own = infos.flatMap(({ id }) => [...store.entries.read(id, { own: true, kind: 'message' })]);
  return {
    sessions: infos
      .toSorted((a, b) => (a.session < b.session ? -1 : 1))
      .map((info) => [
        ...[info.session, treeParentOf(info).parent, info.spawnCall, info.delivery],
        view(store.views.entries(info.id)).messages.map(({ content }) => JSON.stringify(content)),
      ]),
    stored: own.filter(({ payload }) => /"(?:ask|did) \d"/.test(JSON.stringify(payload))).length,
    output: store.sessions.calls().reduce((sum, one) => sum + one.usage.output, 0),
  };
}

const heads = (store: SqliteTapeStore) =>
  store.sessions.list({ all: true }).map(({ session, head }) => [session, head]);

describe.each(copies)('a session that begins as a copy %s', (_, first, copied, end) => {
  const main = [...of('s-2', copied), ...called('s-2', end, 20)];
  const agent = agentOf('s-2', 30);
  const whole: Piece = ['s-2', main, agent];
  const once = (...pieces: Piece[]) => told(take(openStore(), ...pieces));

  test.each<[string, Piece[]]>([
    ['before its source', [['s-2', [], agent], ['s-1', first], whole]],
    ['behind its source', [['s-1', first], ['s-2', [], agent], whole]],
    ['in pieces', [['s-1', first], ['s-2', [], agent.slice(0, 1)], ['s-2', main.slice(0, -1), agent], whole]],
    ['before a copy of it', [['s-2', [], agent], ['s-1', first], ['s-3', of('s-3', copied)], whole]],
  ])('is a fork of that also where the file of its subagent came before its own: %s', (_, pieces) => {
    const others = pieces.filter(([session]) => session !== 's-2');
    const wanted = once(...others, whole);
    expect(wanted.sessions).toContainEqual(['agent-s-2', 's-2', 's-2-t', 'merged', expect.anything()]);
    const store = take(openStore(), ...pieces);
    expect(told(store)).toEqual(wanted);
    const before = heads(store);
    take(store, ...others, whole);
    expect(heads(store)).toEqual(before);
  });
});

describe('a session of which the file of a subagent came before its own', () => {
  const [, , copied = []] = copies[0] ?? [];
  const main = [...of('s-2', copied), ...called('s-2', 'a2', 20)];
  const agent = agentOf('s-2', 30);
  const whole: Piece = ['s-2', main, agent];
  const of1: Piece = ['s-1', source, agentOf('s-1', 15)];

  test('is a fork of its copy, where that came first', () => {
    const store = take(openStore(), ['s-1', [], agentOf('s-1', 15)], whole, of1);
    expect(told(store)).toEqual(told(take(openStore(), of1, whole)));
    expect(store.sessions.find('s-1')?.parent).toBe('s-2');
  });

  test('is that of the subagent, where it is no copy', () => {
    const store = take(openStore(), whole, ['s-1', [], agentOf('s-1', 15)]);
    const { id } = store.sessions.find('s-1') ?? {};
    const other = [...said('8', null, 40), ...called('s-1', 'a8', 42)];
    take(store, ['s-1', other, agentOf('s-1', 15)]);
    expect(store.sessions.find('s-1')?.id).toBe(id);
    expect(store.sessions.find('agent-s-1')).toMatchObject({ parentId: id, delivery: 'merged' });
  });

  test('has the subagent also where its result has not come back', () => {
    const store = take(openStore(), of1, ['s-2', [], agent], ['s-2', main.slice(0, -1), agent]);
    expect(store.sessions.find('s-2')?.parent).toBe('s-1');
    const info = store.sessions.find('agent-s-2') ?? {};
    expect([treeParentOf(info).parent, info]).toEqual([
      's-2',
      expect.not.objectContaining({ delivery: 'merged' }),
    ]);
    take(store, whole);
    expect(told(store)).toEqual(told(take(openStore(), of1, whole)));
  });

  test.each(
    ['', 'agent-'].flatMap(
      (where): [string, string, (store: SqliteTapeStore, session: string) => unknown][] => [
        [
          where,
          'continued',
          (store, session) => store.entries.append(session, [user('mine'), assistant('yours')]),
        ],
        [where, 'named', (store, session) => store.sessions.update(session, { name: 'mine' })],
        [where, 'forked', (store, session) => store.lineage.fork(session, { name: 'mine' })],
        [where, 'moved', (store, session) => store.lineage.link(session, null, { type: 'moved' })],
      ],
    ),
  )('stays where a person used %s s-2: %s it', (where, _, use) => {
    const act = (store: SqliteTapeStore) => use(store, `${where}s-2`);
    const store = take(openStore(), of1, ['s-2', [], agent]);
    const idOf = (session: string) => store.sessions.find(session)?.id ?? '';
    const [id, used] = [idOf('s-2'), idOf(`${where}s-2`)];
    act(store);
    take(store, whole);
    expect([id, used].map((one) => store.sessions.find(one)?.lifecycle)).toEqual(['active', 'active']);
    expect(JSON.stringify(told(store).sessions)).toContain('look in s-2');
  });

  test('stays where the file of the subagent is gone, which nothing could write again', () => {
    const store = take(openStore(), of1, ['s-2', [], agent], ['s-2', main]);
    expect(store.sessions.find('agent-s-2')).toMatchObject({ lifecycle: 'active', parent: 's-2' });
  });
});

test('a session of which what is beside its conversation came first is a fork of its source', () => {
  const aside = { type: 'permission-mode', permissionMode: 'plan', sessionId: 's-2' };
  const copied = [aside, ...of('s-2', [...begun, ...said('3', 'a2', 20)])];
  const store = take(openStore(), ['s-1', source], ['s-2', copied.slice(0, 1)]);
  expect(store.sessions.find('s-2')?.parent).toBeUndefined();
  take(store, ['s-2', copied]);
  expect(told(store)).toEqual(told(take(openStore(), ['s-1', source], ['s-2', copied])));
  expect(store.sessions.find('s-2')?.parent).toBe('s-1');
});

test('a session whose journal says first how a subagent ended is a fork of its source, and gets the report then', () => {
  const store = take(openStore(), ['s-1', source]);
  const linesOf = (records: readonly Raw[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;
  const journal = { key: 'cc:journal:w1:1', value: { type: 'result', agentId: 's-2' } };
  const agent = { id: 's-2', lines: linesOf(agentOf('s-2', 30)), workflow: 'w1' };
  const main = [...of('s-2', begun), ...called('s-2', 'a2', 20)];
  const started = main.map((one) => {
    const { agentId, ...about } = Object(one.toolUseResult);
    return agentId === undefined ? one : { ...one, toolUseResult: { ...about, runId: 'w1' } };
  });
  for (const records of [[], started]) {
    const lines = records.length === 0 ? [] : linesOf(records);
    reconcile(store, planClaudeCode({ name: 's-2', lines, agents: [agent], beside: [journal] }));
    const delivery = records.length === 0 ? {} : { delivery: 'merged' };
    expect(store.sessions.find('agent-s-2')).toMatchObject({ kind: 'subagent', ...delivery });
  }
  expect(told(store).stored).toBe(4);
  expect(store.sessions.find('s-2')?.parent).toBe('s-1');
  expect(store.sessions.find('agent-s-2')).toMatchObject({ parent: 's-2', spawnCall: 's-2-t' });
  expect([...store.verify()]).toEqual([]);
});
