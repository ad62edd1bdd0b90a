import { undoSession } from '@tapedeck/runtime';
import {
  cleanerFor,
  type ImportPlan,
  parseJsonLines,
  planClaudeCode,
  type Reconciled,
  reconcile,
} from '@tapedeck/runtime/import';
import { assistant, openTapeStore, type SqliteTapeStore, TapeError, user, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const lines = (records: readonly object[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;
const inside = { isSidechain: true, agentId: 'x1' };
const agents = [
  {
    id: 'x1',
    lines: lines([
      person({ uuid: 'su1' }, 'look', inside),
      model({ uuid: 'sa1', parent: 'su1', id: 'sm1' }, [says('all is well')], inside),
    ]),
  },
];
const title = (customTitle: string) => ({ type: 'custom-title', customTitle, sessionId: 's-1' });
const begun = [
  person({ uuid: 'u1' }, 'look around'),
  model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [calls('t1', 'Task')]),
  person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'all is well')], {
    toolUseResult: { status: 'completed', agentId: 'x1' },
  }),
  model({ uuid: 'a2', parent: 'r1', id: 'm2' }, [says('done')]),
];

/** Imports a transcript with a subagent, lets a person act, and imports what it has got since. */
async function grownAfter(act: (store: SqliteTapeStore) => unknown) {
  const store = openStore();
  reconcile(store, planClaudeCode({ name: 's-1', lines: lines([...begun, title('First')]), agents }));
  await act(store);
  const more = [...begun, person({ uuid: 'u2', parent: 'a2' }, 'and now?'), title('Second')];
  const done = reconcile(store, planClaudeCode({ name: 's-1', lines: lines(more), agents }));
  expect([...store.verify()]).toEqual([]);
  return { store, done };
}

const refusals = (done: readonly Reconciled[]) => done.map(({ added, refused }) => [added, refused?.message]);

test('a merge that a person undid stays undone', async () => {
  const { store, done } = await grownAfter(async (store) => await undoSession(store, 's-1'));
  expect(done[0]?.added).toBe(1 + 1);
  expect(store.sessions.find('agent-x1')).toMatchObject({ undone: true });
  // Until the person makes it again.
  store.lineage.merge('agent-x1');
  expect(store.sessions.find('agent-x1')?.undone).toBeUndefined();
});

test('a name that a person gave stays the title', async () => {
  const { store } = await grownAfter((store) => store.sessions.update('s-1', { name: 'mine' }));
  expect(store.sessions.find('mine')).toMatchObject({ session: 's-1', title: 'mine' });
  expect((await grownAfter(() => {})).store.sessions.find('s-1')?.title).toBe('Second');
});

test.each([false, true])(
  'a session that a person deleted does not come back (purged: %s)',
  async (purges) => {
    const remove = (store: SqliteTapeStore, name: string) => {
      const { id = '' } = store.sessions.find(name) ?? {};
      store.sessions.update(id, { lifecycle: 'destroyed' });
      if (purges) store.sessions.purge(id, 'it names a customer');
    };
    const what = purges ? 'purged' : 'deleted';
    const child = await grownAfter((store) => remove(store, 'agent-x1'));
    expect(refusals(child.done)).toEqual([
      [2, undefined],
      [0, `cannot import into 'agent-x1': it was ${what} here`],
    ]);
    // Whatever it was called then.
    const both = await grownAfter((store) => {
      remove(store, 'agent-x1');
      store.sessions.update('s-1', { name: 'mine' });
      remove(store, 'mine');
    });
    const refused = [0, expect.stringContaining(`: it was ${what} here`)];
    expect(refusals(both.done)).toEqual([refused, refused]);
    expect(both.store.sessions.list({ all: true, deleted: false })).toEqual([]);
    // Who names another session takes it again.
    const plan = planClaudeCode({ name: 's-1', lines: lines(begun) });
    expect(reconcile(both.store, plan, { as: 'again' })[0]).toMatchObject({
      session: 'again',
      created: true,
    });
  },
);

test('a session that a person deletes while it is imported ends no import, at whatever moment', () => {
  using dir = tempDir();
  const grown = [...begun, person({ uuid: 'u2', parent: 'r1' }, 'go on')];
  const plan = (records: readonly object[]) => planClaudeCode({ name: 's-1', lines: lines(records), agents });
  for (let moment = 5, isWithin = true; isWithin; moment += 15) {
    const file = dir.file(`${moment}/tape.db`);
    using store = openTapeStore(file, { durability: 'fast' });
    reconcile(store, plan(begun));
    using other = openTapeStore(file, { durability: 'fast' });
    // Between two transactions of the import, which a person waits for.
    other.lockWaitMs = 20;
    const { id = '' } = store.sessions.find('s-1') ?? {};
    let calls = 0;
    let isDeleted = false;
    const deleting = wrapStore(store, ({ act }) => {
      calls += 1;
      if (calls >= moment && !isDeleted) isDeleted = deletes(other, id);
      return act();
    }) as SqliteTapeStore;
    reconcile(deleting, plan(grown));
    isWithin = calls >= moment;
    const again = reconcile(store, plan(grown));
    expect([moment, again.map(({ added }) => added)]).toEqual([moment, again.map(() => 0)]);
    if (isDeleted) expect(store.sessions.list().map((one) => one.id)).not.toContain(id);
    expect([...store.verify()]).toEqual([]);
  }
});

/** Deletes a session, unless another process writes now. */
function deletes(store: SqliteTapeStore, id: string): boolean {
  try {
    store.sessions.update(id, { lifecycle: 'destroyed' });
    return true;
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_LOCKED') return false;
    throw error;
  }
}

test('a branch that a person went on with, and the user returned to and left again, is in a view with what came then', () => {
  const store = openStore();
  const turn = (n: number, parent: string | null) => [
    person({ uuid: `u${n}`, parent }, `ask ${n}`),
    model({ uuid: `a${n}`, parent: `u${n}` }, [says(`did ${n}`)]),
  ];
  const records = [...turn(1, null), ...turn(2, 'a1'), ...turn(3, 'a1'), ...turn(4, 'a2'), ...turn(5, 'a3')];
  const take = (n: number) =>
    reconcile(store, planClaudeCode({ name: 's-1', lines: lines(records.slice(0, 2 * n)) }));
  take(3);
  store.entries.append('s-1-branch-u2', [user('and here?', { run: 'r-1' }), assistant('Here, too.')]);
  take(4);
  expect(take(5)).toMatchObject([{ session: 's-1' }, { session: 's-1-branch-u2-2', created: true }]);
  const { messages } = view(store.views.entries('s-1-branch-u2-2'));
  expect(JSON.stringify(messages)).toContain('did 4');
  expect(take(5)).toMatchObject([{ added: 0 }, { added: 0 }]);
  expect([...store.verify()]).toEqual([]);
});

test.each([false, true])(
  'a copy that a person deleted keeps its source from nothing (its name is taken: %s)',
  (isTaken) => {
    const store = openStore();
    const source = [
      person({ uuid: 'u1' }, 'look around'),
      model({ uuid: 'a1', parent: 'u1' }, [says('done')]),
    ];
    const forkedFrom = { sessionId: 's-1', messageUuid: 'u1' };
    const copy = [...source, person({ uuid: 'c2', parent: 'a1' }, 'and here?')].map((record) => ({
      ...record,
      ...{ sessionId: 's-2', forkedFrom },
    }));
    const take = (records: readonly object[]) =>
      reconcile(store, planClaudeCode({ name: 'file', lines: lines(records) }));
    const parentOf = (session: string) => {
      const info = store.sessions.find(session);
      return info && treeParentOf(info).parent;
    };
    take(copy);
    const { id = '' } = store.sessions.find('s-2') ?? {};
    store.sessions.update(id, { lifecycle: 'destroyed' });
    if (isTaken) store.sessions.open('s-2');
    expect(take(source)).toMatchObject([{ session: 's-1', created: true }]);
    if (isTaken) {
      expect(parentOf('s-2')).toBeUndefined();
      return;
    }
    // One that is brought back has its place with the next import.
    store.sessions.update(id, { lifecycle: 'active' });
    take(copy);
    expect(parentOf(id)).toBe('s-1');
    expect([...store.verify()]).toEqual([]);
  },
);

test('a purged session that had no message, and no time, is no damage', () => {
  const store = openStore();
  const compaction = {
    ...{ type: 'system', subtype: 'compact_boundary', uuid: 'c1', parentUuid: null, logicalParentUuid: 'u1' },
    ...{ sessionId: 's-1', compactMetadata: { trigger: 'manual' } },
  };
  const records = [
    person({ uuid: 'u1' }, 'look around'),
    compaction,
    person({ uuid: 'c2', parent: 'c1' }, 'what was said', { isCompactSummary: true }),
    person({ uuid: 'u2', parent: 'u1' }, 'look again'),
  ];
  reconcile(store, planClaudeCode({ name: 's-1', lines: lines(records) }));
  const { id = '' } = store.sessions.find('s-1-branch-c1') ?? {};
  store.sessions.update(id, { lifecycle: 'destroyed' });
  store.sessions.purge(id, 'it names a customer');
  expect([...store.verify()]).toEqual([]);
});

describe('a session that a person went on with', () => {
  const snapshot = (n: number) => ({ type: 'file-history-snapshot', messageId: `x${n}`, snapshot: {} });
  const second = person({ uuid: 'u2', parent: 'a2' }, 'once more');
  const asksAgain = model({ uuid: 'a3', parent: 'u2', id: 'm3' }, [calls('t2', 'Task')]);
  const another = {
    ...{ id: 'x2', meta: { toolUseId: 't2' } },
    lines: lines([person({ uuid: 'su2' }, 'look closer', { isSidechain: true, agentId: 'x2' })]),
  };
  const reports = (call: string, parent: string, agentId: string) =>
    person({ uuid: `r${call}`, parent }, [returns(call, 'well')], {
      toolUseResult: { status: 'completed', agentId },
    });
  const take = (store: SqliteTapeStore, records: readonly object[], of = [...agents, another]) => {
    const done = reconcile(store, planClaudeCode({ name: 's-1', lines: lines(records), agents: of }));
    expect([...store.verify()]).toEqual([]);
    return done;
  };
  const goesOn = (store: SqliteTapeStore) =>
    store.entries.append('s-1', [user('and here?', { run: 'r-1' }), assistant('Here, too.')]);
  const placeOf = (store: SqliteTapeStore, session: string) => {
    const info = store.sessions.find(session);
    const merges = [...store.lineage.read({ session, types: ['merge'] })];
    const into = merges.map(({ into = '', received }) => `${store.sessions.find(into)?.session}@${received}`);
    return [info && treeParentOf(info).parent, ...into];
  };
  const keysOf = (store: SqliteTapeStore, session: string) =>
    [...store.entries.read(session, { own: true, kind: 'x-claude-code' })].map(({ key }) => key);

  test('keeps its subagents and its records; what its file gets later is in a session beside it', () => {
    const store = openStore();
    const start = [...begun, snapshot(1), snapshot(2)];
    take(store, start, agents);
    goesOn(store);
    const before = placeOf(store, 'agent-x1');
    const links = () => [...store.lineage.read({ types: ['link'] })].length;
    const more = [...start, second, asksAgain, reports('t2', 'a3', 'x2'), snapshot(3)];
    for (const records of [more, more]) {
      take(store, records);
      expect(placeOf(store, 'agent-x1')).toEqual(before);
      expect(placeOf(store, 'agent-x2')[0]).toBe('s-1-2');
      expect([keysOf(store, 's-1').length, keysOf(store, 's-1-2').length]).toEqual([2, 1]);
      expect(links()).toBe(0);
    }
    // An older copy of the file is behind what is here, and no third session.
    expect(take(store, more.slice(0, -1))).toMatchObject([{ added: 0 }, { added: 0 }, { added: 0 }]);
    expect(take(store, start, agents)).toMatchObject([{ added: 0 }, { added: 0 }]);
    expect(store.sessions.list({ all: true })).toHaveLength(4);
  });
});

test('a subagent whose session a person deleted is that of the one which has its call by now', () => {
  const usage = { output_tokens: 1 };
  const left = [person({ uuid: 'u0' }, 'hi'), { ...begun[0], parentUuid: 'u0' }, ...begun.slice(1, 3)];
  const records = [...left, model({ uuid: 'a9', parent: 'u0', id: 'm9' }, [says('else')], { usage })];
  const back = [...records, model({ uuid: 'a8', parent: 'r1', id: 'm8' }, [says('done')], { usage })];
  const store = openStore();
  const take = (all: readonly object[]) =>
    reconcile(store, planClaudeCode({ name: 's-1', lines: lines(all), agents }));
  take(records);
  const branch = store.sessions.find('s-1-branch-u1')?.id ?? '';
  expect(store.sessions.find('agent-x1')?.parentId).toBe(branch);
  store.sessions.update(branch, { lifecycle: 'destroyed' });
  take(back);
  const info = store.sessions.find('agent-x1');
  expect(info && treeParentOf(info).parent).toBe('s-1');
  expect([...store.verify()]).toEqual([]);
});

describe('what a person rewound', () => {
  const chain = (n: number) => [
    person({ uuid: `u${n}`, parent: n === 0 ? null : `a${n - 1}` }, `ask ${n}`),
    model({ uuid: `a${n}`, parent: `u${n}` }, [says(`answer ${n}`)], { usage: { output_tokens: 7 } }),
  ];
  const upTo = (n: number) => Array.from({ length: n }, (_, i) => chain(i)).flat();
  const planned = (records: readonly object[]) => planClaudeCode({ name: 's-1', lines: lines(records) });
  const textsOf = (store: SqliteTapeStore, session: string) =>
    view(store.views.entries(session)).messages.map(({ content }) => JSON.stringify(content));
  const rewound = () => {
    const store = openStore();
    reconcile(store, planned(upTo(3)));
    const [second] = [...store.entries.read('s-1', { key: 'u:cc:a0' })];
    store.history.rewind('s-1', second?.seq ?? 0);
    return store;
  };

  test('stays so when the source is read again, and when it has only records that no view shows', () => {
    const store = rewound();
    const seen = textsOf(store, 's-1');
    expect(seen).toHaveLength(2);
    expect(reconcile(store, planned(upTo(3)))).toMatchObject([{ added: 0, rewound: false }]);
    const aside = { type: 'file-history-snapshot', messageId: 'x', snapshot: {} };
    expect(reconcile(store, planned([...upTo(3), aside]))).toMatchObject([{ added: 1, rewound: false }]);
    expect(textsOf(store, 's-1')).toEqual(seen);
    expect(store.sessions.list({ all: true })).toHaveLength(1);
  });

  test('stays so when the source goes on: that becomes a session beside it, and nothing is stored again', () => {
    const store = rewound();
    const seen = textsOf(store, 's-1');
    for (const n of [4, 5]) {
      const [done] = reconcile(store, planned(upTo(n)));
      expect(done).toMatchObject({ session: 's-1-2', created: n === 4, rewound: false });
      expect(textsOf(store, 's-1')).toEqual(seen);
      expect(textsOf(store, 's-1-2')).toHaveLength(2 * n);
      expect([...store.entries.read('s-1-2', { own: true, kind: 'message' })]).toHaveLength(2 * (n - 3));
      const tokens = store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);
      expect(tokens).toBe(7 * n);
    }
    expect([...store.verify()]).toEqual([]);
  });

  const renamed = (records: readonly object[], prefix: string, more: object) =>
    records.map((one) => {
      const { uuid, parentUuid } = one as { uuid: string; parentUuid: string | null };
      const named = { uuid: `${prefix}${uuid}`, parentUuid: parentUuid && `${prefix}${parentUuid}` };
      return { ...one, ...named, ...more };
    });
  const agentOf = (n: number) => [{ id: 'x1', lines: lines(renamed(upTo(n), 'g-', inside)) }];

  test.each<[string, string, (n: number) => ImportPlan]>([
    [
      'of a session that was resumed under other ids',
      's-2',
      (n) => planClaudeCode({ name: 's-2', lines: lines(renamed(upTo(n), 'r-', { sessionId: 's-2' })) }),
    ],
    [
      'of what begins behind a /clear',
      's-1-clear-u0',
      (n) => planned([person({ uuid: 'p0' }, 'before'), ...upTo(n)]),
    ],
    [
      'of a subagent',
      'agent-x1',
      (n) => planClaudeCode({ name: 's-1', lines: lines(upTo(1)), agents: agentOf(n) }),
    ],
  ])('is stored once %s whose source goes on, too', (_, session, planOf) => {
    for (const back of [1, 2, 4, 6]) {
      const store = openStore();
      if (session === 's-2') reconcile(store, planned(upTo(2)));
      reconcile(store, planOf(4));
      const { head = 0 } = store.sessions.find(session) ?? {};
      store.history.rewind(session, head - back);
      const seen = textsOf(store, session);
      for (const n of [5, 6]) {
        reconcile(store, planOf(n));
        expect(textsOf(store, session)).toEqual(seen);
        expect(textsOf(store, `${session}-2`)).toHaveLength(2 * n);
        const own = [...store.entries.read(`${session}-2`, { own: true, kind: 'message' })];
        expect([back, n, own.length]).toEqual([back, n, 2 * (n - 4)]);
      }
      expect([...store.verify()]).toEqual([]);
    }
  });

  test('stays so in a subagent that was rewound to where it began: it goes on in a session beside it', () => {
    const store = openStore();
    const called = begun.slice(0, 2);
    const first = [person({ uuid: 'su1' }, 'look', inside)];
    const planOf = (records: readonly object[]) =>
      planClaudeCode({ name: 's-1', lines: lines(called), agents: [{ id: 'x1', lines: lines(records) }] });
    reconcile(store, planOf(first));
    const { base = 0 } = store.sessions.find('agent-x1') ?? {};
    store.history.rewind('agent-x1', base + 1);
    const more = [...first, model({ uuid: 'sa1', parent: 'su1' }, [says('all is well')], inside)];
    for (const created of [true, false])
      expect(reconcile(store, planOf(more))).toMatchObject([{}, { session: 'agent-x1-2', created }]);
    expect(textsOf(store, 'agent-x1')).toEqual([]);
    expect(textsOf(store, 'agent-x1-2')).toHaveLength(2);
    expect([...store.verify()]).toEqual([]);
  });

  test('counts its tokens once in a subagent, too, which goes on in a session beside it, or in the first again', () => {
    const store = openStore();
    const answers = (uuid: string, parent: string) =>
      model({ uuid, parent }, [says(uuid)], { ...inside, usage: { output_tokens: 7 } });
    const asked = [
      person({ uuid: 'su1' }, 'look', inside),
      answers('sa1', 'su1'),
      person({ uuid: 'su2', parent: 'sa1' }, 'closer', inside),
      answers('sa2', 'su2'),
      person({ uuid: 'su3', parent: 'sa2' }, 'again', inside),
      answers('sa3', 'su3'),
    ];
    const take = (n: number) => {
      const agents = [{ id: 'x1', lines: lines(asked.slice(0, 2 * n)) }];
      const done = reconcile(store, planClaudeCode({ name: 's-1', lines: lines(begun.slice(0, 2)), agents }));
      const tokens = store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);
      return [done[1]?.session, tokens];
    };
    expect(take(1)).toEqual(['agent-x1', 7]);
    const { head = 0 } = store.sessions.find('agent-x1') ?? {};
    store.history.rewind('agent-x1', head - 1);
    expect(take(2)).toEqual(['agent-x1-2', 14]);
    store.history.unrewind('agent-x1');
    store.sessions.update('agent-x1-2', { lifecycle: 'archived' });
    expect(take(3)[1]).toBe(21);
    expect([...store.verify()]).toEqual([]);
  });

  test('is taken up again where the person takes the rewind back', () => {
    const store = rewound();
    store.history.unrewind('s-1');
    expect(reconcile(store, planned(upTo(4)))).toMatchObject([{ session: 's-1', added: 2 }]);
    expect(textsOf(store, 's-1')).toHaveLength(8);
  });
});

test('what was imported with its secrets keeps them; what comes later has none, unless it is imported so, too', () => {
  const key = `sk-ant-api03-${'A'.repeat(95)}`;
  const asked = (n: number) => person({ uuid: `u${n}`, parent: n === 0 ? null : `u${n - 1}` }, `${n} ${key}`);
  const planned = (n: number) =>
    planClaudeCode({ name: 's-1', lines: lines(Array.from({ length: n }, (_, i) => asked(i))) });
  const store = openStore(':memory:', { redact: false });
  const shown = () => JSON.stringify(view(store.views.entries('s-1')).messages).split(key).length - 1;
  const clean = cleanerFor();
  reconcile(store, planned(2));
  expect(shown()).toBe(2);
  expect(reconcile(store, planned(2), clean && { clean })).toMatchObject([{ added: 0, rewound: false }]);
  expect(reconcile(store, planned(3), clean && { clean })).toMatchObject([
    { added: 1, rewound: false, redacted: 1 },
  ]);
  expect(shown()).toBe(2);
  reconcile(store, planned(3));
  expect(shown()).toBe(3);
});
