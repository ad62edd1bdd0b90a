import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { assistant, type SqliteTapeStore, user } from '@tapedeck/tape';
import { isObject, treeParentOf } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { calls as asks, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Records = readonly object[];

const lines = (records: Records) =>
  records.length === 0 ? [] : parseJsonLines([Buffer.from(jsonl(records))]).records;
const usage = { output_tokens: 7 };
const inside = { isSidechain: true, agentId: 'x1' };
const agents = [
  {
    ...{ id: 'x1', meta: { toolUseId: 't1' } },
    lines: lines([
      person({ uuid: 'su1' }, 'look', inside),
      model({ uuid: 'sa1', parent: 'su1', id: 'sm1' }, [says('all is well')], { ...inside, usage }),
    ]),
  },
];
const begins = person({ uuid: 'u0' }, 'plan it');
const called: Records = [
  begins,
  person({ uuid: 'u1', parent: 'u0' }, 'look around'),
  model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [asks('t1', 'Task')], { usage }),
];
const reports = person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'all is well')], {
  toolUseResult: { status: 'completed', agentId: 'x1' },
});
const rewinds: Records = [
  person({ uuid: 'u5', parent: 'u0' }, 'something else'),
  model({ uuid: 'a5', parent: 'u5', id: 'm5' }, [says('fine')], { usage }),
];
const comesBack: Records = [
  person({ uuid: 'u7', parent: 'r1' }, 'and now?'),
  model({ uuid: 'a7', parent: 'u7', id: 'm7' }, [says('done')], { usage }),
];

const goesOnBefore = person({ uuid: 'u9', parent: 'u1' }, 'there, too');
const leavesAgain: Records = [
  person({ uuid: 'u8', parent: 'u0' }, 'something else again'),
  model({ uuid: 'a8', parent: 'u8', id: 'm8' }, [says('fine, too')], { usage }),
];

function take(store: SqliteTapeStore, ...growing: Records[]): SqliteTapeStore {
  for (const records of growing)
    reconcile(store, planClaudeCode({ name: 's-1', lines: lines(records), agents }));
  expect([...store.verify()]).toEqual([]);
  return store;
}

/** The sessions, each with its place, and where it was merged last: into which session, and the call that had its result there. */
function told(store: SqliteTapeStore) {
  const merges = [...store.lineage.read({ types: ['merge'] })];
  const sessions = store.sessions.list({ all: true, deleted: false }).map((info) => {
    const { into, received = 0 } = merges.findLast((merge) => merge.session === info.id) ?? {};
    const [entry] = into === undefined ? [] : store.entries.read(into, { from: received, to: received });
    const call = isObject(entry?.payload) ? entry.payload.toolCallId : undefined;
    const { session, spawnCall, delivery, undone } = info;
    const merged = into && { delivery, into: store.sessions.find(into)?.session, call, undone };
    return [session, treeParentOf(info).parent, spawnCall, merged] as const;
  });
  const calls = store.sessions.calls({ session: 's-1', tree: true });
  const tokens = calls.reduce((sum, one) => sum + one.usage.output, 0);
  return { sessions: sessions.toSorted(([a], [b]) => (a < b ? -1 : 1)), tokens };
}

test('a branch to whose end the user returns goes, and the subagent that was called in it is that of the session', () => {
  const left = [...called, reports, ...rewinds];
  const store = take(openStore(), left);
  expect(told(store).sessions).toContainEqual([
    'agent-x1',
    's-1-branch-u1',
    't1',
    { delivery: 'merged', into: 's-1-branch-u1', call: 't1', undone: undefined },
  ]);
  const back = [...left, ...comesBack];
  take(store, back);
  const once = told(take(openStore(), back));
  expect(once.sessions.map(([session]) => session)).toEqual(['agent-x1', 's-1', 's-1-branch-u5']);
  expect(told(store)).toEqual(once);
  take(store, back);
  expect(told(store)).toEqual(once);
});

describe('a subagent whose call was rewound is in the branch that has the call, merged there where its result is', () => {
  const all = [...called, reports, ...rewinds];
  const once = told(take(openStore(), all));

  test('in one import', () => {
    expect(once.sessions).toEqual([
      [
        ...['agent-x1', 's-1-branch-u1', 't1'],
        { delivery: 'merged', into: 's-1-branch-u1', call: 't1', undone: undefined },
      ],
      ['s-1', undefined, undefined, undefined],
      ['s-1-branch-u1', 's-1', undefined, undefined],
    ]);
  });

  test.each([
    ['behind the result', [called, [...called, reports], all]],
    ['with the result', [called, all]],
    ['before the result', [called, [...called, ...rewinds], all]],
    ['after its file was read alone', [[], called, all]],
    ['before its branch began elsewhere', [all, [...all, goesOnBefore]]],
    [
      'again after the user had returned',
      [
        [...all, ...comesBack],
        [...all, ...comesBack, ...leavesAgain],
      ],
    ],
  ])('%s', (_, steps) => {
    const last = steps.at(-1) ?? [];
    const store = take(openStore(), ...steps);
    const expected = told(take(openStore(), last));
    expect(told(store)).toEqual(expected);
    expect(told(take(store, last))).toEqual(expected);
  });

  test('but stays where a person has used it', () => {
    const store = take(openStore(), called);
    store.entries.append('agent-x1', [user('and here?', { run: 'r-1' }), assistant('Here, too.')]);
    take(store, all, all);
    expect(store.sessions.find('agent-x1')).toMatchObject({ parent: 's-1', delivery: 'merged' });
    expect(told(store).sessions.map(([session]) => session)).toEqual(['agent-x1', 's-1', 's-1-branch-u1']);
  });
});

test('what a subagent called is forked anew with it, and its tokens count once', () => {
  const deep = { isSidechain: true, agentId: 'x2' };
  const [first] = agents;
  const caller = {
    ...first,
    lines: lines([
      person({ uuid: 'su1' }, 'look', inside),
      model({ uuid: 'sa1', parent: 'su1', id: 'sm1' }, [asks('st1', 'Task')], { ...inside, usage }),
      person({ uuid: 'sr1', parent: 'sa1' }, [returns('st1', 'seen')], {
        ...{ ...inside, toolUseResult: { status: 'completed', agentId: 'x2' } },
      }),
    ]),
  };
  const nested = {
    ...{ id: 'x2', meta: { toolUseId: 'st1', spawnDepth: 2, parentAgentId: 'x1' } },
    lines: lines([
      person({ uuid: 'nu1' }, 'look closer', deep),
      model({ uuid: 'na1', parent: 'nu1', id: 'nm1' }, [says('seen')], { ...deep, usage }),
    ]),
  };
  const of = [caller, nested].map((one) => ({ ...one, id: one.id ?? '' }));
  const take = (...growing: Records[]) => {
    const store = openStore();
    for (const records of growing)
      reconcile(store, planClaudeCode({ name: 's-1', lines: lines(records), agents: of }));
    expect([...store.verify()]).toEqual([]);
    return told(store);
  };
  const all = [...called, reports, ...rewinds];
  const once = take(all);
  expect(once.sessions.map(([session, parent]) => [session, parent])).toContainEqual([
    'agent-x2',
    'agent-x1',
  ]);
  expect(take(called, [...called, reports], all)).toEqual(once);
  expect(take(called, all, all)).toEqual(once);
});
