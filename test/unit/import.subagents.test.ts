import { drawGraph, SessionGraph } from '@tapedeck/graph';
import { blame } from '@tapedeck/runtime';
import {
  type AgentSource,
  type ImportPlan,
  type JsonLine,
  parseJsonLines,
  planClaudeCode,
  reconcile,
} from '@tapedeck/runtime/import';
import { assistant, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, outline, person, returns, says } from '../support/transcript.ts';

type Records = readonly object[];

const lines = (records: Records): readonly JsonLine[] =>
  parseJsonLines([Buffer.from(jsonl(records))], { growing: true }).records;
const planned = (records: Records, agents: readonly AgentSource[] = []): ImportPlan =>
  planClaudeCode({ name: 's-1', lines: lines(records), agents });

/** The conversations of a plan: kind, call that started it, and what it shows. */
const told = ({ conversations }: ImportPlan) =>
  conversations.map(({ kind, parent, ended, spine }) => [kind, parent?.call, ended, ...outline(spine)]);

const views = (store: SqliteTapeStore, { conversations }: ImportPlan): string[] =>
  conversations.map(({ name }) => JSON.stringify(view(store.views.entries(name)).messages));

/** Imports plans one after the other, and expects the sessions that the last of them alone gives. */
function importedAs(...plans: ImportPlan[]): SqliteTapeStore {
  const last = plans.at(-1) as ImportPlan;
  const [store, once] = [openStore(), openStore()];
  for (const plan of plans) reconcile(store, plan);
  reconcile(once, last);
  expect(views(store, last)).toEqual(views(once, last));
  expect(reconcile(store, last).filter(({ added }) => added > 0)).toEqual([]);
  expect([...store.verify()]).toEqual([]);
  return store;
}

/** The children of a session: name, call, and whether it was merged. */
const childrenOf = (store: SqliteTapeStore, parent: string) =>
  store.sessions.list({ parent }).map(({ session, spawnCall, delivery }) => [session, spawnCall, delivery]);

/** The position of the result of a call. */
const placeOf = (store: SqliteTapeStore, session: string, call: string) =>
  [...store.entries.read(session, { kind: 'tool-result' })].findLast(
    ({ payload }) => isObject(payload) && payload.toolCallId === call,
  )?.seq;

/** The merges: of which session, into which, and what that had there before, by its text. */
const mergesOf = (store: SqliteTapeStore): string[] =>
  [...store.lineage.read({ types: ['merge'] })].map(({ session_id, into = '', received = 0 }) => {
    const [entry] = store.entries.read(into, { from: received, to: received });
    const payload = isObject(entry?.payload) ? entry.payload : {};
    const at = payload.toolCallId ?? JSON.stringify(payload.content);
    return `${session_id} → ${entry?.session}@${at}`;
  });

const asks = person({ uuid: 'u1' }, 'look around');
const delegates = model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [calls('t1', 'Task')]);
const reports = person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'all is well')], {
  toolUseResult: { status: 'completed', agentId: 'x1' },
});
const ends = model({ uuid: 'a2', parent: 'r1', id: 'm2' }, [says('done')]);

const inside = { isSidechain: true, agentId: 'x1' };
const own: Records = [
  person({ uuid: 'su1' }, 'look', inside),
  model({ uuid: 'sa1', parent: 'su1', id: 'sm1' }, [calls('st1')], inside),
  person({ uuid: 'sr1', parent: 'sa1' }, [returns('st1')], inside),
  model({ uuid: 'sa2', parent: 'sr1', id: 'sm2' }, [says('all is well')], inside),
];

const expected = [
  [
    'main',
    undefined,
    undefined,
    'user: look around',
    'assistant: [t1]',
    't1 → all is well',
    'assistant: done',
  ],
  ['subagent', 't1', 'completed', 'user: look', 'assistant: [st1]', 'st1 → ok', 'assistant: all is well'],
];

/** The three ways in which Claude Code has written the records of a subagent. */
const generations: Readonly<Record<string, (n: number) => ImportPlan>> = {
  'between the others': (n) => planned([asks, delegates, ...own, reports, ends].slice(0, n)),
  'in progress records': (n) =>
    planned(
      [
        asks,
        delegates,
        ...own.map((message, i) => ({
          type: 'progress',
          uuid: `p${i}`,
          parentUuid: i === 0 ? 'a1' : `p${i - 1}`,
          parentToolUseID: 't1',
          data: { type: 'agent_progress', agentId: 'x1', message },
        })),
        reports,
        ends,
      ].slice(0, n),
    ),
  'in files of their own': (n) =>
    planned(
      [asks, delegates, reports, ends].slice(0, n < 6 ? Math.min(n, 2) : n - 4),
      n < 3 ? [] : [{ id: 'x1', lines: lines(own.slice(0, n - 2)), meta: { toolUseId: 't1' } }],
    ),
};

describe.each(Object.entries(generations))('a subagent whose records are %s', (_, plan) => {
  test('is a child of the call', () => {
    expect(told(plan(8))).toEqual(expected);
  });

  test('is the same in pieces, and merged once when its result came', () => {
    const pieces = [1, 2, 3, 4, 5, 6, 7, 8].map(plan);
    const before = importedAs(...pieces.slice(0, 6));
    expect(childrenOf(before, 's-1')).toEqual([['agent-x1', 't1', undefined]]);
    const store = importedAs(...pieces);
    expect(childrenOf(store, 's-1')).toEqual([['agent-x1', 't1', 'merged']]);
    expect(mergesOf(store)).toEqual(['agent-x1 → s-1@t1']);
    expect(drawGraph(SessionGraph.fromRecords(store.lineage.read()).list()).join('\n')).toContain(
      `→ s-1@${placeOf(store, 's-1', 't1')}, from s-1`,
    );
  });
});

describe('a message of a subagent that is nested in a record of its session', () => {
  const around = { cwd: '/srv/app', gitBranch: 'fix', version: '2.1.29' };
  const nested = (more: object) =>
    own.map((message, i) => ({
      ...{ type: 'progress', uuid: `p${i}`, parentUuid: i === 0 ? 'a1' : `p${i - 1}`, parentToolUseID: 't1' },
      data: { type: 'agent_progress', agentId: 'x1', message },
      ...more,
    }));
  const read = (more: object) => planned([asks, delegates, ...nested(more), reports, ends]);
  const about = (store: SqliteTapeStore) =>
    [...store.entries.read('agent-x1', { own: true })]
      .filter(({ kind }) => kind === 'message' || kind === 'tool-result')
      .map(({ meta: { place, version } }) => ({ place, version }));
  const said = { place: { cwd: '/srv/app', git: { branch: 'fix' } }, version: '2.1.29' };

  test('was written where and by which version that record says', () => {
    const store = importedAs(read(around));
    expect(about(store)).toEqual(own.map(() => said));
  });

  test('stays as it is where an earlier version imported it without', () => {
    using store = openStore();
    reconcile(store, read({}));
    const before = store.sessions.find('agent-x1')?.headHash;
    expect(reconcile(store, read(around)).filter(({ added }) => added > 0)).toEqual([]);
    expect(store.sessions.find('agent-x1')?.headHash).toBe(before);
  });
});

test('a subagent in the background is merged when a notification says that it ended', async () => {
  const launched = person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'launched')], {
    toolUseResult: { isAsync: true, agentId: 'x1', status: 'async_launched' },
  });
  const agents = [{ id: 'x1', lines: lines(own) }];
  const running = [asks, delegates, launched, ends];
  expect(told(planned(running, agents))[1]?.slice(0, 3)).toEqual(['subagent', 't1', undefined]);
  const prompt =
    '<task-notification>\n<task-id>x1</task-id>\n<status>completed</status>\n</task-notification>';
  const notified = {
    type: 'attachment',
    uuid: 'q1',
    parentUuid: 'a2',
    attachment: { type: 'queued_command', commandMode: 'task-notification', prompt },
  };
  const store = importedAs(planned(running, agents), planned([...running, notified], agents));
  expect(childrenOf(store, 's-1')).toEqual([['agent-x1', 't1', 'merged']]);
  expect(mergesOf(store)).toEqual([expect.stringMatching(/^agent-x1 → s-1@.*<task-id>x1<\/task-id>/)]);
  const { parts } = await blame(store, 's-1');
  expect(parts.find(({ text }) => text.includes('<task-id>x1'))?.from).toMatchObject([
    { session: 'agent-x1', state: 'merged' },
  ]);
});

test('a merge has the time at which the result came back, and so has the session that got it', () => {
  const at = (record: object, time: string) => ({ ...record, timestamp: `2026-03-12T${time}:00.000Z` });
  const agents = [{ id: 'x1', lines: lines(own.map((one) => at(one, '09:30'))), meta: { toolUseId: 't1' } }];
  const records = [asks, delegates, at(reports, '10:00'), at(ends, '11:00')];
  const store = importedAs(planned(records, agents));
  const entries = [...store.entries.read('s-1')].filter(({ meta }) => meta.source === 'merge');
  const came = Date.parse('2026-03-12T10:00:00.000Z');
  expect(entries.map(({ kind, sourceAt }) => [kind, sourceAt])).toEqual([
    ['anchor', came],
    ['message', came],
  ]);
  expect(store.sessions.find('s-1')?.lastMessageAt).toBe(Date.parse('2026-03-12T11:00:00.000Z'));
});

test('a subagent of a subagent is a child of the one that called it', () => {
  const nested = (record: object) => ({ ...record, isSidechain: true, agentId: 'x2' });
  const second = [
    person({ uuid: 'nu1' }, 'look closer'),
    model({ uuid: 'na1', parent: 'nu1' }, [says('closer')]),
  ].map(nested);
  const agents = [
    { id: 'x2', lines: lines(second), meta: { toolUseId: 'st1', spawnDepth: 2, parentAgentId: 'x1' } },
    { id: 'x1', lines: lines(own), meta: { toolUseId: 't1' } },
  ];
  const store = importedAs(planned([asks, delegates, reports, ends], agents));
  expect(childrenOf(store, 's-1')).toEqual([['agent-x1', 't1', 'merged']]);
  expect(childrenOf(store, 'agent-x1')).toEqual([['agent-x2', 'st1', 'merged']]);
  expect(mergesOf(store)).toEqual(['agent-x2 → agent-x1@st1', 'agent-x1 → s-1@t1']);
});

test('a subagent that knows what its parent knew begins with it', () => {
  const forked: Records = [
    { type: 'fork-context-ref', agentId: 'x1', parentSessionId: 's-1', parentLastUuid: 'u1' },
    model({ uuid: 'fa1', id: 'fm1' }, [says('I know')], inside),
  ];
  const agents = [{ id: 'x1', lines: lines(forked), meta: { toolUseId: 't1', isFork: true } }];
  const plan = planned([asks, delegates, reports, ends], agents);
  expect(told(plan)[1]).toEqual(['subagent', 't1', 'completed', 'user: look around', 'assistant: I know']);
  const store = importedAs(plan);
  expect([...store.entries.read('agent-x1', { own: true, kind: 'message' })]).toHaveLength(1);
});

test('a subagent that knows what its parent knew begins with it also where its file came first', () => {
  const forked: Records = [
    { type: 'fork-context-ref', agentId: 'x1', parentSessionId: 's-1', parentLastUuid: 'u1' },
    model({ uuid: 'fa1', id: 'fm1' }, [says('I know')], { ...inside, usage: { output_tokens: 3 } }),
  ];
  const agents = [{ id: 'x1', lines: lines(forked), meta: { toolUseId: 't1', isFork: true } }];
  const whole = planned([asks, delegates, reports, ends], agents);
  for (const first of [planned([], agents), planned([asks], agents)]) {
    const store = importedAs(first, whole);
    expect([...store.entries.read('agent-x1', { own: true, kind: 'message' })]).toHaveLength(1);
    expect(childrenOf(store, 's-1')).toEqual([['agent-x1', 't1', 'merged']]);
    expect(store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0)).toBe(3);
  }
  // One that a person used stays.
  const used = openStore();
  reconcile(used, planned([], agents));
  used.entries.append('agent-x1', [user('and here?'), assistant('Here, too.')]);
  const { id } = used.sessions.find('agent-x1') ?? {};
  reconcile(used, whole);
  expect(used.sessions.find(id ?? '')?.lifecycle).toBe('active');
});

test('a subagent that repeats the answer that called it knows the prompt of that, and its tokens count once', () => {
  const usage = { output_tokens: 7 };
  const calling = [calls('t1', 'Agent')];
  const said = { type: 'text', text: 'the tokens left' };
  const parent = [
    person({ uuid: 'u1' }, 'look around'),
    // What is attached to a prompt is sent before it.
    {
      ...{ ...person({ uuid: 'n1', parent: 'u1' }, ''), type: 'attachment', message: undefined },
      attachment: { type: 'total_tokens_reminder' },
      rendered: [{ role: 'user', content: [said] }],
    },
    model({ uuid: 'a1', parent: 'n1', id: 'm1' }, calling, { usage }),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1')], {
      toolUseResult: { isAsync: true, status: 'async_launched', agentId: 'x1' },
    }),
  ];
  const forked: Records = [
    { type: 'fork-context-ref', agentId: 'x1', parentSessionId: 's-1', parentLastUuid: 'n1' },
    model({ uuid: 'fa0', id: 'm1' }, calling, { ...inside, usage }),
    person({ uuid: 'fr0', parent: 'fa0' }, [returns('t1', 'that is you'), says('look left')], inside),
    model({ uuid: 'fa1', parent: 'fr0', id: 'fm1' }, [says('I know')], { ...inside, usage }),
  ];
  const agents = [{ id: 'x1', lines: lines(forked), meta: { toolUseId: 't1', isFork: true } }];
  const whole = planned(parent, agents);
  expect(told(whole)[1]?.slice(3)).toEqual([
    ...['user: the tokens left', 'user: look around', 'assistant: [t1]', 't1 → that is you'],
    ...['user: look left', 'assistant: I know'],
  ]);
  for (const before of [[], ...[0, 1, 2, 3].map((count) => [planned(parent.slice(0, count), agents)])]) {
    const store = importedAs(...before, whole);
    expect(store.sessions.calls().reduce((sum, { usage: { output } }) => sum + output, 0)).toBe(2 * 7);
  }
});

test('a subagent that knows what its parent knew is open until it reports, since its own result for its call says only that it began', () => {
  const calling = [calls('t1', 'Agent')];
  const parent = [
    person({ uuid: 'u1' }, 'look around'),
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, calling),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1')], {
      toolUseResult: { isAsync: true, status: 'async_launched', agentId: 'x1' },
    }),
  ];
  const reported = person(
    { uuid: 'n1', parent: 'r1' },
    '<task-notification>\n<task-id>x1</task-id>\n<status>completed</status>\n</task-notification>',
  );
  const forked: Records = [
    { type: 'fork-context-ref', agentId: 'x1', parentSessionId: 's-1', parentLastUuid: 'u1' },
    model({ uuid: 'fa0', id: 'm1' }, calling, inside),
    person({ uuid: 'fr0', parent: 'fa0' }, [returns('t1', 'that is you'), says('look left')], inside),
    model({ uuid: 'fa1', parent: 'fr0', id: 'fm1' }, [says('I know')], inside),
  ];
  const agents = [{ id: 'x1', lines: lines(forked), meta: { toolUseId: 't1', isFork: true } }];
  for (const count of [2, 3]) {
    const begun = planned(parent.slice(0, count), agents);
    expect(childrenOf(importedAs(begun), 's-1')).toEqual([['agent-x1', 't1', undefined]]);
    const store = importedAs(begun, planned([...parent, reported], agents));
    expect(childrenOf(store, 's-1')).toEqual([['agent-x1', 't1', 'merged']]);
  }
});

test('a subagent that knows what a compaction of its parent kept is forked behind that, and counts none of it again', () => {
  const usage = { output_tokens: 7 };
  const preservedSegment = { headUuid: 'a1', tailUuid: 'a1', anchorUuid: 's1' };
  const parent = [
    person({ uuid: 'u1' }, 'look around'),
    model({ uuid: 'a1', parent: 'u1' }, [says('I look')], { usage }),
    {
      ...{ ...person({ uuid: 'c1' }, ''), type: 'system', subtype: 'compact_boundary' },
      ...{ logicalParentUuid: 'a1', compactMetadata: { preservedSegment } },
    },
    person({ uuid: 's1', parent: 'c1' }, 'looked around', { isCompactSummary: true }),
    person({ uuid: 'u2', parent: 's1' }, 'look closer'),
    model({ uuid: 'a2', parent: 'u2' }, [calls('t1', 'Task')], { usage }),
    person({ uuid: 'r1', parent: 'a2' }, [returns('t1')], {
      toolUseResult: { status: 'completed', agentId: 'x1' },
    }),
  ];
  const forked: Records = [
    { type: 'fork-context-ref', agentId: 'x1', parentSessionId: 's-1', parentLastUuid: 'u2' },
    model({ uuid: 'fa1', id: 'fm1' }, [says('I know')], { ...inside, usage }),
  ];
  const store = importedAs(planned(parent, [{ id: 'x1', lines: lines(forked), meta: { toolUseId: 't1' } }]));
  expect([...store.entries.read('agent-x1', { own: true, kind: 'message' })]).toHaveLength(1);
  expect(store.sessions.calls().reduce((sum, { usage: { output } }) => sum + output, 0)).toBe(3 * 7);
});

test('a subagent that knows what its parent knew begins before a call that was open there, until a record names its own', () => {
  const usage = { output_tokens: 7 };
  const asked = [
    person({ uuid: 'u1' }, 'look around'),
    model({ uuid: 'a1', parent: 'u1' }, [calls('t1', 'Task')], { usage }),
  ];
  const forked: Records = [
    { type: 'fork-context-ref', agentId: 'x1', parentSessionId: 's-1', parentLastUuid: 'a1' },
    model({ uuid: 'fa1', id: 'fm1' }, [says('I know')], { ...inside, usage }),
  ];
  const unnamed = planned(asked, [{ id: 'x1', lines: lines(forked) }]);
  const named = planned(asked, [{ id: 'x1', lines: lines(forked), meta: { toolUseId: 't1' } }]);
  for (const plans of [[unnamed], [unnamed, named], [named]]) {
    const store = importedAs(...plans);
    expect([...store.entries.read('agent-x1', { own: true, kind: 'message' })]).toHaveLength(1);
    expect(store.sessions.calls().reduce((sum, { usage: { output } }) => sum + output, 0)).toBe(2 * 7);
  }
});

test.each([
  ['behind what the copy says itself', ['u2', 'a2'], 2, false],
  ['where the copy has said nothing itself', ['a2'], 1, false],
  ['where its file came before its call', ['u2', 'a2'], 2, true],
])(
  'a subagent that knows what a copy under other ids knew counts nothing of its source again: %s',
  (_, uuids, count, isFirst) => {
    const usage = { output_tokens: 7 };
    const begun = [
      person({ uuid: 'u1' }, 'look around'),
      model({ uuid: 'a1', parent: 'u1' }, [says('I look')], { usage }),
    ];
    const renamed = (id: unknown) => (typeof id === 'string' ? `r-${id}` : id);
    const copied = begun.map((one) => ({
      ...{ ...one, uuid: renamed(one.uuid), parentUuid: renamed(one.parentUuid), sessionId: 's-2' },
    }));
    const own = [
      person({ uuid: 'u2', parent: 'r-a1' }, 'look closer', { sessionId: 's-2' }),
      model({ uuid: 'a2', parent: uuids.includes('u2') ? 'u2' : 'r-a1' }, [calls('t1', 'Task')], {
        ...{ sessionId: 's-2', usage },
      }),
    ].filter(({ uuid }) => uuids.includes(String(uuid)));
    const forked: Records = [
      { type: 'fork-context-ref', agentId: 'x1', parentSessionId: 's-2', parentLastUuid: 'a2' },
      model({ uuid: 'fa1', id: 'fm1' }, [says('I know')], { ...inside, sessionId: 's-2', usage }),
    ];
    const agents = [{ id: 'x1', lines: lines(forked), meta: { toolUseId: 't1' } }];
    const copy = planClaudeCode({ name: 's-2', lines: lines([...copied, ...own]), agents });
    // Its file may come before its call.
    const uncalled = planClaudeCode({
      ...{ name: 's-2', lines: lines([...copied, ...own.slice(0, -1)]) },
      agents: [{ id: 'x1', lines: lines(forked) }],
    });
    const store = importedAs(planned(begun), ...(isFirst ? [uncalled] : []), copy);
    reconcile(store, copy);
    expect([...store.entries.read('agent-x1', { own: true, kind: 'message' })]).toHaveLength(1);
    expect(childrenOf(store, 's-2')).toEqual([['agent-x1', 't1', undefined]]);
    expect(store.sessions.find('agent-x1')?.kind).toBe('subagent');
    expect([...store.entries.read('agent-x1', { kind: 'message' })]).toHaveLength(count + 2);
    expect(store.sessions.calls().reduce((sum, { usage: { output } }) => sum + output, 0)).toBe(3 * 7);
  },
);

test('an id of a subagent that is a path names no session', () => {
  const plan = planned([asks], [{ id: '../../x', lines: lines(own) }]);
  expect(plan.conversations[1]?.name).toMatch(/^agent-[0-9a-f]{12}$/);
  importedAs(plan);
});

describe('subagents of calls that ran at once, between the records of their session', () => {
  const side = { isSidechain: true };
  const task = (id: string, prompt: string) => calls(id, 'Task', { prompt });
  const records: Records = [
    asks,
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [
      task('t1', 'look'),
      task('t2', 'read'),
      task('t3', 'look'),
    ]),
    person({ uuid: 'x1' }, 'look', side),
    person({ uuid: 'y1' }, 'read', side),
    person({ uuid: 'z1' }, 'look', side),
    model({ uuid: 'y2', parent: 'y1', id: 'm2' }, [says('read it')], side),
    model({ uuid: 'x2', parent: 'x1', id: 'm3' }, [says('saw it')], side),
    model({ uuid: 'z2', parent: 'z1', id: 'm4' }, [says('saw it, too')], side),
    person({ uuid: 'r2', parent: 'a1' }, [returns('t2', 'read it')]),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'saw it')]),
    person({ uuid: 'r3', parent: 'a1' }, [returns('t3', 'saw it, too')]),
    model({ uuid: 'a2', parent: 'r3', id: 'm5' }, [says('done')]),
  ];
  const merged = ['agent-x1 → s-1@t1', 'agent-y1 → s-1@t2', 'agent-z1 → s-1@t3'];

  test('are each merged where the result of the call came that has their prompt, in pieces as at once', () => {
    const plans = records.map((_, i) => planned(records.slice(0, i + 1)));
    for (const store of [importedAs(...plans), importedAs(planned(records))])
      expect([...new Set(mergesOf(store))].toSorted()).toEqual(merged);
    expect(planned(records).derived.map(({ evidence }) => evidence)).toEqual([
      't1 has its prompt',
      't2 has its prompt',
      't3 has its prompt',
    ]);
  });

  test('one whose prompt no waiting call has belongs to the last call before it', () => {
    const plan = planned(records.with(3, person({ uuid: 'y1' }, 'something else', side)));
    expect(told(plan).map(([, call]) => call)).toEqual([undefined, 't1', 't3', 't3']);
    expect(plan.derived[1]?.evidence).toBe('t3 is the last call before it that starts subagents');
  });
});
