import { writeFileSync } from 'node:fs';
import { drawGraph, drawTree, SessionGraph, toDot } from '@tapedeck/graph';
import { readUsage, trace } from '@tapedeck/runtime';
import {
  derivedIn,
  parseJsonLines,
  planClaudeCode,
  type Reconciled,
  reconcile,
  SourceTable,
} from '@tapedeck/runtime/import';
import { type JsonObject, type SqliteTapeStore, view } from '@tapedeck/tape';
import { isObject, originOf, treeParentOf } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };
type Files = Readonly<{ [agent: string]: readonly Raw[] }>;

const linesOf = (records: readonly Raw[]) =>
  records.length === 0 ? [] : parseJsonLines([Buffer.from(jsonl(records))]).records;

function take(
  store: SqliteTapeStore,
  main: readonly Raw[],
  agents: Files = {},
  metas: Readonly<{ [agent: string]: JsonObject }> = {},
): readonly Reconciled[] {
  return reconcile(
    store,
    planClaudeCode({
      name: 's-1',
      lines: linesOf(main),
      agents: Object.entries(agents).map(([id, records]) => ({
        ...{ id, lines: linesOf(records) },
        ...(metas[id] !== undefined && { meta: metas[id] }),
      })),
    }),
  );
}

const parentOf = (store: SqliteTapeStore, session: string) =>
  treeParentOf(store.sessions.find(session) ?? {}).parent;
const linesAbout = (store: SqliteTapeStore) => [...store.lineage.read()].length;

/** A conversation, `/clear`, and another one. */
const cleared: readonly Raw[] = [
  person({ uuid: 'u1' }, 'one'),
  model({ uuid: 'a1', parent: 'u1' }, [says('first')]),
  person({ uuid: 'u2' }, 'two'),
  model({ uuid: 'a2', parent: 'u2' }, [says('second')]),
];

test('/clear ends one session and begins the next, joined by a derived link that an import makes once', () => {
  const store = openStore();
  expect(take(store, cleared).map(({ session }) => session)).toEqual(['s-1', 's-1-clear-u2']);
  expect(store.sessions.find('s-1-clear-u2')).toMatchObject({
    link: { parent: 's-1', type: 'clear', derived: true, evidence: expect.stringContaining('record 3') },
  });
  const before = linesAbout(store);
  take(store, [...cleared, person({ uuid: 'u3', parent: 'a2' }, 'three')]);
  expect(linesAbout(store)).toBe(before);
});

test('two imports at once into one home count their own edges', async () => {
  using dir = tempDir();
  const store = openStore();
  const table = SourceTable.open(dir.file('home.sources'));
  const counts = ['s-1', 's-2', 's-3'].map(async (session, i) => {
    const records = cleared.slice(0, i === 0 ? 2 : 4).map((one) => ({
      ...JSON.parse(JSON.stringify(one).replace(/"([ua]\d|one|first|two|second)"/g, `"${session}-$1"`)),
      sessionId: session,
    }));
    const file = dir.file(`${session}.jsonl`);
    writeFileSync(file, jsonl(records));
    const { done } = await importFiles(store, [file], { table });
    return done.map(({ brought }) => brought?.derived);
  });
  expect(await Promise.all(counts)).toEqual([[0], [1], [1]]);
});

test('a record that is its own parent follows the one before it in the file, by a derived edge', () => {
  const store = openStore();
  take(store, [...cleared.slice(0, 2), person({ uuid: 'u2', parent: 'u2' }, 'two')]);
  expect(store.sessions.list().map(({ session }) => session)).toEqual(['s-1']);
  expect(view(store.views.entries('s-1')).messages).toHaveLength(3);
  expect(derivedIn(store, 's-1')).toEqual([
    {
      ...{ of: 'cc:u2', from: 'cc:a1', why: 'circle' },
      evidence: expect.stringMatching(
        /^line 3, byte \d+: it is its own parent; record 2 is the one before it$/,
      ),
    },
  ]);
});

test('what a person has moved, made a root or taken back stays so when the source is imported again', () => {
  const grown = [...cleared, person({ uuid: 'u3', parent: 'a2' }, 'three')];
  for (const [act, parent] of [
    [(store: SqliteTapeStore) => store.lineage.link('s-1-clear-u2', 'mine'), 'mine'],
    [(store: SqliteTapeStore) => store.lineage.link('s-1-clear-u2', null), undefined],
    [(store: SqliteTapeStore) => store.lineage.unlink('s-1-clear-u2'), undefined],
  ] as const) {
    const store = openStore();
    store.sessions.open('mine');
    take(store, cleared);
    act(store);
    take(store, grown);
    expect(parentOf(store, 's-1-clear-u2')).toBe(parent);
  }
});

const child = (id: string, uuid: string, text: string): readonly Raw[] => [
  person({ uuid: `p${uuid}` }, `task of ${id}`, { isSidechain: true, agentId: id }),
  model({ uuid: `m${uuid}`, parent: `p${uuid}` }, [says(text)], { isSidechain: true, agentId: id }),
];

/** A session with a subagent, which has one, too; each result names the subagent that it came from. */
const main: readonly Raw[] = [
  person({ uuid: 'u1' }, 'go'),
  model({ uuid: 'a1', parent: 'u1' }, [calls('t1', 'Task')]),
  person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'done by outer')], {
    toolUseResult: { agentId: 'outer' },
  }),
];
const nested: Files = {
  inner: child('inner', '9', 'done by inner'),
  outer: [
    person({ uuid: 'p1' }, 'task of outer', { isSidechain: true, agentId: 'outer' }),
    model({ uuid: 'm1', parent: 'p1' }, [calls('t2', 'Task')], { isSidechain: true, agentId: 'outer' }),
    person({ uuid: 'q1', parent: 'm1' }, [returns('t2', 'done by inner')], {
      ...{ isSidechain: true, agentId: 'outer', toolUseResult: { agentId: 'inner' } },
    }),
  ],
};

const { inner = [], outer = [] } = nested;
/** The orders in which the files of the two can come. */
const orders: readonly (readonly [readonly Raw[], Files])[][] = [
  [[main, nested]],
  [
    [[], nested],
    [main, nested],
  ],
  [
    [[], { inner }],
    [[], nested],
    [main, nested],
  ],
  [
    [[], { inner }],
    [main, { inner }],
    [main, nested],
  ],
  [
    [main, {}],
    [main, { outer }],
    [main, nested],
  ],
];

/** The merges: of which session, into which, and the call whose result that has there. */
const mergesOf = (store: SqliteTapeStore) =>
  [...store.lineage.read({ types: ['merge'] })]
    .map(({ session_id, into_session_id = '', received = 0 }) => {
      const [at] = store.entries.read(into_session_id, { from: received, to: received });
      return [session_id, into_session_id, isObject(at?.payload) && at.payload.toolCallId];
    })
    .toSorted();

test('a subagent that says whose it is, is forked from that and merged there, in whatever order they come', () => {
  const metas = { inner: { toolUseId: 't2', parentAgentId: 'outer', spawnDepth: 2 } };
  for (const order of orders) {
    const store = openStore();
    for (const [records, agents] of order) take(store, records, agents, metas);
    expect(mergesOf(store)).toEqual([
      ['agent-inner', 'agent-outer', 't2'],
      ['agent-outer', 's-1', 't1'],
    ]);
    const infos = store.sessions.list({ all: true }).toSorted((a, b) => (a.session < b.session ? -1 : 1));
    expect(infos.map(({ session, parent }) => [session, parent])).toEqual([
      ['agent-inner', 'agent-outer'],
      ['agent-outer', 's-1'],
      ['s-1', undefined],
    ]);
    expect(infos.filter(({ link }) => link?.derived === true)).toEqual([]);
    expect(take(store, main, nested, metas).filter(({ added }) => added > 0)).toEqual([]);
    expect([...store.verify()]).toEqual([]);
  }
});

test('subagents whose parents come later end under them, and deliver there, once', () => {
  for (const order of orders) {
    const store = openStore();
    for (const [records, agents] of order) take(store, records, agents);
    for (const [records, agents] of order.slice(-1)) take(store, records, agents);
    expect([parentOf(store, 'agent-outer'), parentOf(store, 'agent-inner')]).toEqual(['s-1', 'agent-outer']);
    expect(mergesOf(store)).toEqual([
      ['agent-inner', 'agent-outer', 't2'],
      ['agent-outer', 's-1', 't1'],
    ]);
    // Records name the calls by now.
    const infos = store.sessions.list({ all: true, deleted: false });
    expect(infos.filter(({ link }) => link?.derived === true)).toEqual([]);
    expect(view(store.views.entries('s-1')).messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
    ]);
    expect([...store.verify()]).toEqual([]);
  }
});

/** What the home says of its tree, each place by the key of what is there: a session that came first has other positions. */
async function toldOf(store: SqliteTapeStore): Promise<object> {
  const infos = store.sessions.list({ all: true }).toSorted((a, b) => (a.session < b.session ? -1 : 1));
  const keyAt = (session: string | undefined, seq = 0) =>
    session && [...store.entries.read(session, { from: seq, to: seq })][0]?.key;
  const graph = SessionGraph.fromRecords(store.lineage.read());
  const drawn = [...drawGraph(graph.list()), ...drawTree(graph), toDot(graph.list())].join('\n');
  const sessions = infos.map(async (info) => {
    const { parent, fromAnchor, at } = originOf(info);
    const results = [...store.entries.read(info.id, { own: true, kind: 'tool-result' })];
    const traced = await Promise.all(results.map(({ seq }) => trace(store, info.id, seq)));
    const { total } = (await readUsage(store, info, { tree: true })).tree;
    return {
      ...{ session: info.session, parent, call: info.spawnCall, before: keyAt(parent, at + 1), total },
      isPlaced: fromAnchor !== undefined,
      left: store.sessions.list({ parent: info.id, leftFrom: 0 }).map(({ session }) => session),
      from: traced.flatMap(({ from }) => from.map(({ session, state }) => [session, state])),
      messages: view(store.views.entries(info.id)).messages,
    };
  });
  return { drawn: drawn.replace(/\d+/g, '#'), sessions: await Promise.all(sessions) };
}

test('a subagent that came before its session is shown at the call that started it, as if both had come at once', async () => {
  const metas = {
    inner: { toolUseId: 't2', parentAgentId: 'outer' },
    outer: { toolUseId: 't1' },
  };
  // Without them nothing says whose it is, as long as the one that called it is not there: its result goes to the session.
  const named = orders.filter((order) =>
    order.every(([, agents]) => !('inner' in agents) || 'outer' in agents),
  );
  for (const [known, all] of [
    [metas, orders],
    [{}, named],
  ] as const) {
    const once = openStore();
    take(once, main, nested, known);
    const wanted = await toldOf(once);
    for (const order of all) {
      const store = openStore();
      for (const [records, agents] of order) take(store, records, agents, known);
      const told = await toldOf(store);
      expect(told).toEqual(wanted);
      expect(told).toMatchObject({
        sessions: [
          { session: 'agent-inner', call: 't2', before: 'u:cc:m1', isPlaced: true, from: [] },
          { session: 'agent-outer', call: 't1', before: 'u:cc:a1', left: ['agent-inner'] },
          { session: 's-1', left: ['agent-outer'], from: [['agent-outer', 'merged']] },
        ],
      });
      const lines = linesAbout(store);
      take(store, main, nested, known);
      expect([linesAbout(store), [...store.verify()]]).toEqual([lines, []]);
    }
  }
});

test('a session has the title that its source has at the end, whether that came in pieces or at once', () => {
  const long = `Plan the\nrelease ${'and all that follows from it '.repeat(9)}`;
  const titled = (...titles: readonly string[]) => [
    ...[person({ uuid: 'u1' }, 'ask'), model({ uuid: 'a1', parent: 'u1' }, [says('done')])],
    ...titles.map((customTitle) => ({ type: 'custom-title', customTitle, sessionId: 's-1' })),
  ];
  const titleOf = (...files: readonly (readonly string[])[]) => {
    using store = openStore();
    for (const file of files) take(store, titled(...file));
    return store.sessions.find('s-1')?.title;
  };
  for (const last of [long, 'Short', ' ']) {
    const title = titleOf(['First', last]);
    expect([last, titleOf(['First'], ['First', last])]).toEqual([last, title]);
    expect([last, titleOf([], ['First'], ['First', last])]).toEqual([last, title]);
  }
  expect(titleOf([long])).toMatch(/^Plan the release and all .*…$/);
});

test('a title that changes in the source changes that of the session, unless a person renamed it', () => {
  const store = openStore();
  const titled = (title: string) => [
    ...cleared.slice(0, 2),
    { type: 'ai-title', aiTitle: title, sessionId: 's-1' },
  ];
  const title = () => store.sessions.find('s-1')?.title;
  take(store, titled('Plan'));
  expect(title()).toBe('Plan');
  take(store, titled('Plan and do'));
  expect(title()).toBe('Plan and do');
  const { head = 0 } = store.sessions.find('s-1') ?? {};
  take(store, titled('Plan and do'));
  expect(store.sessions.find('s-1')?.head).toBe(head);
  store.sessions.update('s-1', { name: 'mine' });
  take(store, titled('Something else'));
  expect(title()).toBe('mine');
});

test('what is concluded inside of a session is listed with its evidence, once, and no more when a record names it', () => {
  const store = openStore();
  const records = [
    ...cleared.slice(0, 2),
    person({ uuid: 'u2', parent: 'late' }, 'go on'),
    model({ uuid: 'a2', parent: 'u2' }, [says('second')]),
  ];
  for (const times of [1, 2]) {
    take(store, records);
    expect([times, derivedIn(store, 's-1')]).toEqual([
      times,
      [
        {
          ...{ of: 'cc:u2', from: 'cc:a1', why: 'parent-missing' },
          evidence: 'its parent late is not in the file; record 2 is the one before it',
        },
      ],
    ]);
  }
  const entries = () => [...store.entries.read('s-1', { kind: 'x-derived' })].length;
  expect(entries()).toBe(1);
  take(store, [...records, model({ uuid: 'late', parent: 'a1' }, [says('late')])]);
  expect([derivedIn(store, 's-1'), entries()]).toEqual([[], 2]);
});

test('a subagent that is imported without the file of its session hides nothing of that', () => {
  const store = openStore();
  const asked = person({ uuid: 'x1' }, 'look', { isSidechain: true, agentId: 'x' });
  const said = model({ uuid: 'x2', parent: 'x1' }, [says('seen')], { isSidechain: true, agentId: 'x' });
  take(store, cleared.slice(0, 2), { x: [asked] });
  const before = view(store.views.entries('s-1')).messages;
  expect(before).not.toEqual([]);
  take(store, [], { x: [asked, said] });
  expect(view(store.views.entries('s-1')).messages).toEqual(before);
  expect(view(store.views.entries('agent-x')).messages).toHaveLength(2);
});

test('an older copy of a source in which prompts were typed anew since adds nothing', () => {
  const whole = [
    ...cleared.slice(0, 2),
    person({ uuid: 'u2', parent: 'a1' }, 'do it'),
    model({ uuid: 'a2', parent: 'u2' }, [calls('t1')]),
    person({ uuid: 'r1', parent: 'a2' }, [returns('t1')]),
    model({ uuid: 'a3', parent: 'r1' }, [says('done')]),
    person({ uuid: 'u3', parent: 'a1' }, 'do it in Rust'),
    model({ uuid: 'a4', parent: 'u3' }, [says('done in Rust')]),
    person({ uuid: 'u4', parent: 'a1' }, 'leave it'),
  ];
  const plan = (records: readonly Raw[]) => planClaudeCode({ name: 's-1', lines: linesOf(records) });
  for (let n = 1; n <= whole.length; n += 1) {
    const store = openStore();
    reconcile(store, plan(whole));
    const before = store.sessions.list({ all: true });
    for (const [i, { added }] of reconcile(store, plan(whole.slice(0, n)), { rewritten: true }).entries())
      expect([n, i, added]).toEqual([n, i, 0]);
    expect([n, store.sessions.list({ all: true })]).toEqual([n, before]);
    // What it goes on with in another way is told apart.
    const more = person({ uuid: 'z1', parent: String(whole[n - 1]?.uuid) }, 'in another way');
    reconcile(store, plan([...whole.slice(0, n), more]), { rewritten: true });
    const texts = store.sessions
      .list()
      .map(({ id }) => JSON.stringify(view(store.views.entries(id)).messages.at(-1)));
    expect([n, texts.some((text) => text.includes('in another way'))]).toEqual([n, true]);
    expect(texts.some((text) => text.includes('leave it'))).toBe(true);
  }
});

test('an older copy of a source, with an answer that was arriving, adds nothing behind the newer one', () => {
  const whole = [
    ...cleared.slice(0, 2),
    person({ uuid: 'u2', parent: 'a1' }, 'read it'),
    model({ uuid: 'a2', parent: 'u2', id: 'm' }, [says('I read')]),
    model({ uuid: 'a3', parent: 'a2', id: 'm' }, [calls('t1')]),
    person({ uuid: 'r1', parent: 'a3' }, [returns('t1')]),
    model({ uuid: 'a4', parent: 'r1' }, [says('done')]),
  ];
  const plan = (records: readonly Raw[]) => planClaudeCode({ name: 's-1', lines: linesOf(records) });
  for (let n = 1; n <= whole.length; n += 1) {
    const store = openStore();
    reconcile(store, plan(whole));
    const before = store.sessions.list({ all: true });
    reconcile(store, plan(whole.slice(0, n)), { rewritten: true });
    expect([n, store.sessions.list({ all: true })]).toEqual([n, before]);
  }
});
