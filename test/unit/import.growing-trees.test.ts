import {
  cleanerFor,
  type ImportPlan,
  parseJsonLines,
  planClaudeCode,
  reconcile,
} from '@tapedeck/runtime/import';
import { assistant, type Draft, note, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { titleEvent, treeParentOf } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tokenShapes } from '../support/token-shapes.ts';
import { calls, faults, jsonl, model, outline, person, returns, says } from '../support/transcript.ts';

type Records = readonly object[];

const planned = (records: Records): ImportPlan =>
  planClaudeCode({ name: 's-1', lines: parseJsonLines([Buffer.from(jsonl(records))]).records });

/** Sessions as short texts, by the kinds of their conversations. */
const spines = (records: Records): (readonly [string, ...string[]])[] =>
  planned(records).conversations.map(({ kind, spine }) => [kind, ...outline(spine)]);

/** What the sessions of a plan show to a model. */
const views = (store: SqliteTapeStore, { conversations }: ImportPlan): string[] =>
  conversations.map(({ name }) => JSON.stringify(view(store.views.entries(name)).messages));

/** The texts that a session shows to a model, summaries without their frames. */
const textsIn = (store: SqliteTapeStore, session = 's-1'): string[] =>
  view(store.views.entries(session)).messages.flatMap(({ content }) =>
    content.map(({ text }) => String(text).replace(/^The conversation.*<summary>\n|\n<\/summary>$/gs, '')),
  );

/** How branches are listed: their titles, and when something was last said, where their records tell. */
const listed = (store: SqliteTapeStore, { conversations }: ImportPlan) => {
  const infos = new Map(store.sessions.list({ all: true, titles: true }).map((info) => [info.session, info]));
  return conversations.flatMap(({ kind, name, spine }) => {
    const { title, lastMessageAt } = infos.get(name) ?? {};
    const isTimed = spine.some(({ meta }) => meta?.timestamp !== undefined);
    return kind === 'branch' ? [[name, title, isTimed ? lastMessageAt : undefined]] : [];
  });
};

/** The tokens that a home counts. */
const spent = (store: SqliteTapeStore) =>
  store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);

function imported(...growing: Records[]): { store: SqliteTapeStore; plan: ImportPlan } {
  const store = openStore();
  const plans = growing.map(planned);
  for (const plan of plans) reconcile(store, plan);
  return { store, plan: plans.at(-1) ?? planned(growing[0] ?? []) };
}

/** Imports a file after each of its records, and compares the sessions with those of one import. */
function growsAsOne(records: Records): void {
  using store = openStore();
  for (let n = 1; n <= records.length; n += 1) {
    const plan = planned(records.slice(0, n));
    for (const { spine } of plan.conversations) expect(faults(spine)).toEqual([]);
    reconcile(store, plan);
    using once = openStore();
    reconcile(once, plan);
    expect(views(store, plan)).toEqual(views(once, plan));
    expect(listed(store, plan)).toEqual(listed(once, plan));
    expect(spent(store)).toBe(spent(once));
    expect(reconcile(store, plan).filter(({ added }) => added > 0)).toEqual([]);
    expect([...store.verify()]).toEqual([]);
  }
}

const retyped: Records = [
  person({ uuid: 'u1' }, 'plan it'),
  model({ uuid: 'a1', parent: 'u1' }, [says('a plan')]),
  person({ uuid: 'u2', parent: 'a1' }, 'do it'),
  model({ uuid: 'a2', parent: 'u2' }, [says('done')], { usage: { output_tokens: 7 } }),
  person({ uuid: 'u3', parent: 'a1' }, 'do it in Rust'),
  model({ uuid: 'a3', parent: 'u3' }, [says('done in Rust')]),
];

describe('a prompt that was retyped', () => {
  test('leaves a branch, and the main conversation goes on from before it', () => {
    expect(spines(retyped)).toEqual([
      ['main', 'user: plan it', 'assistant: a plan', 'user: do it in Rust', 'assistant: done in Rust'],
      ['branch', 'user: plan it', 'assistant: a plan', 'user: do it', 'assistant: done'],
    ]);
  });

  test('is a fork of what the session had, which is not stored again', () => {
    const { store, plan } = imported(retyped.slice(0, 4), retyped);
    const branch = plan.conversations[1]?.name ?? '';
    expect(store.sessions.find(branch)).toMatchObject({ parent: 's-1', kind: 'session' });
    expect([...store.entries.read(branch, { own: true, kind: 'message' })]).toEqual([]);
    // It is listed as that which was said there.
    expect(listed(store, plan)).toEqual([[branch, 'do it', Date.parse('2026-03-12T09:00:01.000Z')]]);
    expect([...store.verify()]).toEqual([]);
    expect(store.sessions.calls().map(({ steps, usage }) => [steps, usage.output])).toEqual([[1, 7]]);
  });

  test('gives the same sessions in pieces', () => growsAsOne(retyped));
});

test('a file that is read before a record says of what session it is becomes one session', () => {
  const records = [{ type: 'summary', summary: 'A plan', leafUuid: 'a9' }, ...retyped];
  const named = (name: string, n: number) =>
    planClaudeCode({ name, lines: parseJsonLines([Buffer.from(jsonl(records.slice(0, n)))]).records });
  using store = openStore();
  for (const n of [1, 2, records.length]) reconcile(store, named('a-copy', n));
  const names = store.sessions.list({ all: true }).map(({ session }) => session);
  expect(names).toEqual(expect.arrayContaining(['s-1']));
  expect(names.filter((name) => !name.startsWith('s-1'))).toEqual([]);
  expect([...store.entries.read('s-1', { kind: 'x-claude-code' })]).toHaveLength(1);
  // The program names a file by its session, which may say nothing else.
  const [session] = reconcile(store, named('7d4c1f0e-0000-4000-8000-000000000000', 1));
  expect(session).toMatchObject({ created: true, session: '7d4c1f0e-0000-4000-8000-000000000000' });
});

test('the head is what descends from the leaf that the tool names', () => {
  const leaf = { type: 'last-prompt', lastPrompt: 'do it', leafUuid: 'u2' };
  expect(spines([...retyped, leaf])[0]).toEqual([
    'main',
    'user: plan it',
    'assistant: a plan',
    'user: do it',
    'assistant: done',
  ]);
  growsAsOne([...retyped, leaf, { ...leaf, leafUuid: 'u3' }, { ...leaf, leafUuid: 'u2' }]);
});

test('a prompt that was left, and is gone on from later, counts each answer once', () => {
  const usage = { output_tokens: 7 };
  const leaf = { type: 'last-prompt', lastPrompt: 'do it' };
  const records = [
    person({ uuid: 'u1' }, 'plan it'),
    model({ uuid: 'a1', parent: 'u1' }, [says('a plan')], { usage }),
    person({ uuid: 'u2', parent: 'a1' }, 'do it'),
    model({ uuid: 'a2', parent: 'u2' }, [says('done')], { usage }),
    person({ uuid: 'u3', parent: 'a1' }, 'do it in Rust'),
    model({ uuid: 'a3', parent: 'u3' }, [says('done in Rust')], { usage }),
    person({ uuid: 'u4', parent: 'a2' }, 'and a test'),
    model({ uuid: 'a4', parent: 'u4' }, [says('tested')], { usage }),
    { ...leaf, leafUuid: 'a3' },
    { ...leaf, leafUuid: 'a4' },
  ];
  for (const steps of [[...records.keys()], [1, 5, 7, 9], [5, 7, 8], [5, 8, 9]]) {
    const { store } = imported(...steps.map((n) => records.slice(0, n + 1)));
    expect([steps, spent(store)]).toEqual([steps, 4 * 7]);
  }
  growsAsOne(records);
});

describe('a user who returns to a branch that was left', () => {
  const said = (uuid: string, parent: string | null): Records => [
    person({ uuid: `${uuid}p`, parent }, `ask ${uuid}`),
    model({ uuid, parent: `${uuid}p` }, [says(`did ${uuid}`)], { usage: { output_tokens: 7 } }),
  ];
  const begun = [...said('a1', null), ...said('a2', 'a1'), ...said('b2', 'a1')];
  const records = [
    ...begun,
    ...said('a3', 'a2'),
    ...said('b3', 'b2'),
    ...said('c2', 'a1'),
    ...said('a4', 'a3'),
  ];

  /** What a home has: its conversations, their places in the tree, and what they cost. */
  const stateOf = (store: SqliteTapeStore) => {
    const sessions = store.sessions.list({ all: true, deleted: false });
    return {
      sessions: sessions
        .map((info) => [
          info.session,
          treeParentOf(info).parent,
          JSON.stringify(view(store.views.entries(info.session)).messages),
        ])
        .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1)),
      output: spent(store),
    };
  };

  test.each([[[4, 6, 8]], [[4, 6, 8, 10]], [[5, 6, 7, 9, 12, 14]], [[...records.keys()].map((i) => i + 1)]])(
    'has the same sessions, edges and views in pieces as at once: %s',
    (cuts) => {
      const whole = records.slice(0, cuts.at(-1));
      const { store, plan } = imported(...cuts.map((cut) => records.slice(0, cut)));
      expect(stateOf(store)).toEqual(stateOf(imported(whole).store));
      expect(reconcile(store, plan).filter(({ added }) => added > 0)).toEqual([]);
      expect([...store.verify()]).toEqual([]);
    },
  );

  test.each([
    ['with, then without', [undefined, cleanerFor()]],
    ['without, then with', [cleanerFor(), undefined]],
  ] as const)(
    'leaves no session of it where secrets were kept in one import alone: %s them',
    (_, [first, then]) => {
      const secret = tokenShapes.find(([name]) => name === 'aws')?.[1] ?? '';
      const answer = { parent: 'a2p', id: 'm2' };
      const leaf = (leafUuid: string) => ({ type: 'last-prompt', leafUuid, sessionId: 's-1' });
      const left = [
        ...said('a1', null),
        person({ uuid: 'a2p', parent: 'a1' }, `use ${secret}`),
        model({ ...answer, uuid: 'a2' }, [says(`I use ${secret}`)]),
        ...said('b2', 'a1'),
        leaf('b2'),
      ];
      // More of the answer comes with the prompt that follows it.
      const whole = [
        ...left,
        model({ ...answer, uuid: 'a3', parent: 'a2' }, [says('and am done')]),
        ...said('a4', 'a3'),
        leaf('a4'),
      ];
      using store = openStore();
      reconcile(store, planned(left), first && { clean: first });
      expect(store.sessions.list({ all: true, deleted: false })).toHaveLength(2);
      const plan = planned(whole);
      reconcile(store, plan, then && { clean: then });
      const names = store.sessions.list({ all: true, deleted: false }).map(({ session: name }) => name);
      expect(names.toSorted()).toEqual(plan.conversations.map(({ name }) => name).toSorted());
      expect([...store.verify()]).toEqual([]);
    },
  );

  test('stores nothing twice when it goes on', () => {
    const { store } = imported(...[4, 6, 8, 10].map((cut) => records.slice(0, cut)));
    const stored = store.sessions
      .list({ all: true })
      .flatMap(({ id }) => [...store.entries.read(id, { own: true, kind: 'message' })]);
    expect(stored).toHaveLength(10);
  });

  test.each([[[6, 9]], [[7, 9]], [[6, 7, 9]]])(
    'leaves no session of an answer that was arriving: %s',
    (cuts) => {
      const answer = { parent: 'b2p', id: 'm2' };
      const leaf = (leafUuid: string) => ({ type: 'last-prompt', leafUuid, sessionId: 's-1' });
      const growing = [
        ...[...said('a1', null), ...said('a2', 'a1').slice(0, 1), leaf('a2p')],
        ...said('b2', 'a1').slice(0, 1),
        model({ ...answer, uuid: 'b2' }, [says('I look')], { usage: { output_tokens: 3 } }),
        model({ ...answer, uuid: 'b3', parent: 'b2' }, [calls('t1')], { usage: { output_tokens: 7 } }),
        person({ uuid: 'r1', parent: 'b3' }, [returns('t1')]),
        leaf('r1'),
      ];
      const { store } = imported(...cuts.map((cut) => growing.slice(0, cut)));
      expect(stateOf(store)).toEqual(stateOf(imported(growing).store));
      expect([...store.verify()]).toEqual([]);
    },
  );

  test.each([[[6, 10]], [[7, 10]], [[8, 10]], [[6, 7, 8, 9, 10]]])(
    'leaves no session of an answer that was arriving while its first call had its result: %s',
    (cuts) => {
      const answer = { id: 'm2' };
      const usage = { output_tokens: 7 };
      const leaf = (leafUuid: string) => ({ type: 'last-prompt', leafUuid, sessionId: 's-1' });
      const growing = [
        ...[...said('a1', null), ...said('a2', 'a1').slice(0, 1), leaf('a2p')],
        model({ ...answer, uuid: 'b1', parent: 'a1' }, [calls('t1')], { usage }),
        person({ uuid: 'r1', parent: 'b1' }, [returns('t1')]),
        model({ ...answer, uuid: 'b2', parent: 'r1' }, [calls('t2')], { usage }),
        person({ uuid: 'r2', parent: 'b2' }, [returns('t2')]),
        ...[model({ uuid: 'b3', parent: 'r2' }, [says('done')], { usage }), leaf('b3')],
      ];
      const { store } = imported(...cuts.map((cut) => growing.slice(0, cut)));
      expect(stateOf(store)).toEqual(stateOf(imported(growing).store));
      expect([...store.verify()]).toEqual([]);
    },
  );

  const compacted = (uuid: string, of: string) => ({
    ...{ type: 'system', subtype: 'compact_boundary', uuid, parentUuid: null, sessionId: 's-1' },
    ...{ logicalParentUuid: of, compactMetadata: { trigger: 'manual' } },
  });

  test('leaves no session of a branch, and none of the branch behind it that was left with it', () => {
    const growing = [
      person({ uuid: 'u1' }, 'ask'),
      model({ uuid: 'a1', parent: 'u1' }, [says('did')]),
      compacted('c1', 'a1'),
      model({ uuid: 'a2', parent: 'a1' }, [calls('t1')]),
      compacted('c2', 'u1'),
      person({ uuid: 'u2', parent: 'c1' }, 'go on'),
    ];
    const { store } = imported(...[4, 5, 6].map((cut) => growing.slice(0, cut)));
    expect(stateOf(store)).toEqual(stateOf(imported(growing).store));
    expect([...store.verify()]).toEqual([]);
  });

  test('leaves no session of a branch from which that of another one was forked when it had more', () => {
    const leaf = (leafUuid: string) => ({ type: 'last-prompt', leafUuid, sessionId: 's-1' });
    const growing = [
      person({ uuid: 'u1' }, 'ask'),
      model({ uuid: 'a1', parent: 'u1' }, [says('did')]),
      model({ uuid: 'b1', parent: 'u1' }, [calls('t1')]),
      leaf('a1'),
      person({ uuid: 'r1', parent: 'b1' }, [returns('t1')]),
      model({ uuid: 'b2', parent: 'r1' }, [says('done')]),
      compacted('c1', 'r1'),
      leaf('r1'),
    ];
    const { store } = imported(...[3, 5, 6, 8].map((cut) => growing.slice(0, cut)));
    expect(stateOf(store)).toEqual(stateOf(imported(growing).store));
    expect([...store.verify()]).toEqual([]);
  });

  test.each([
    ['beside a result', [], ['r1', 'r2']],
    ['while the tool named another leaf', ['a2p'], ['r1', 'r2']],
    ['without a result', ['a2p'], []],
  ])(
    'leaves no session of a prompt that waited within an answer that was arriving: %s',
    (_, others, results) => {
      const answer = { id: 'm2' };
      const attachment = { type: 'queued_command', commandMode: 'prompt', prompt: 'and the tests' };
      const leaf = (leafUuid: string) => ({ type: 'last-prompt', leafUuid, sessionId: 's-1' });
      const growing = [
        ...said('a1', null),
        ...others.flatMap((one) => [person({ uuid: one, parent: 'a1' }, 'Elsewhere.'), leaf(one)]),
        model({ ...answer, uuid: 'b1', parent: 'a1' }, [calls('t1')]),
        { ...person({ uuid: 'q1', parent: 'b1' }, ''), type: 'attachment', attachment },
        model({ ...answer, uuid: 'b2', parent: 'q1' }, [calls('t2')]),
        ...results.map((uuid, i) => person({ uuid, parent: `b${i + 1}` }, [returns(`t${i + 1}`)])),
        leaf(results.at(-1) ?? 'b2'),
      ];
      for (let cut = 1; cut < growing.length; cut += 1) {
        const { store } = imported(growing.slice(0, cut), growing);
        expect(stateOf(store)).toEqual(stateOf(imported(growing).store));
        expect([...store.verify()]).toEqual([]);
      }
    },
  );

  test('leaves no session of an answer that was arriving where the conversation has more before that', () => {
    const answer = { id: 'm2' };
    const leaf = (leafUuid: string) => ({ type: 'last-prompt', leafUuid, sessionId: 's-1' });
    const output = { content: '<local-command-stdout>cost</local-command-stdout>' };
    const growing = [
      ...said('a1', null),
      { ...person({ uuid: 'c1', parent: 'a1' }, ''), type: 'system', subtype: 'local_command', ...output },
      leaf('c1'),
      model({ ...answer, uuid: 'b1', parent: 'a1' }, [says('I look')]),
      model({ ...answer, uuid: 'b2', parent: 'b1' }, [says('and see')]),
      leaf('b2'),
    ];
    const { store } = imported(growing.slice(0, 5), growing);
    expect(stateOf(store)).toEqual(stateOf(imported(growing).store));
    expect([...store.verify()]).toEqual([]);
  });

  test('keeps the session of the branch where a person has used that', () => {
    const branch = 's-1-branch-a2p';
    for (const use of [
      (store: SqliteTapeStore) => store.entries.append(branch, [user('and here?'), assistant('Here, too.')]),
      (store: SqliteTapeStore) => store.lineage.fork(branch, { name: 'mine' }),
      (store: SqliteTapeStore) => store.sessions.update(branch, { name: 'mine' }),
    ]) {
      const { store } = imported(records.slice(0, 4), begun);
      use(store);
      reconcile(store, planned(records.slice(0, 8)));
      expect(store.sessions.find(branch)).toMatchObject({ lifecycle: 'active' });
    }
    const { store } = imported(records.slice(0, 4), begun, records.slice(0, 8));
    const [deleted] = store.sessions.list({ deleted: true });
    store.sessions.update(deleted?.id ?? '', { lifecycle: 'active' });
    reconcile(store, planned(records.slice(0, 9)));
    expect(store.sessions.find(branch)).toMatchObject({ lifecycle: 'active' });
  });
});

test('a missing parent does not cut the history off, and is reported', () => {
  const records = [
    person({ uuid: 'u1' }, 'hi'),
    model({ uuid: 'a1', parent: 'u1' }, [says('hello')]),
    person({ uuid: 'u2', parent: 'gone' }, 'go on'),
  ];
  expect(spines(records)).toEqual([['main', 'user: hi', 'assistant: hello', 'user: go on']]);
  expect(planned(records).derived).toEqual([
    {
      ...{ conversation: 'claude-code:s-1', of: 'cc:u2', from: 'cc:a1', why: 'parent-missing' },
      evidence: 'its parent gone is not in the file; record 2 is the one before it',
    },
  ]);
});

describe('parents that lead in a circle', () => {
  const begun = [person({ uuid: 'u1' }, 'hi'), model({ uuid: 'a1', parent: 'u1' }, [says('hello')])];
  const derivedOf = (records: Records) =>
    planned(records).derived.map(({ of, from, why }) => [of, from, why]);

  test('in the middle of a file cut nothing off', () => {
    const records = [
      ...begun,
      person({ uuid: 'u2', parent: 'a3' }, 'go on'),
      model({ uuid: 'a2', parent: 'u2' }, [says('on')]),
      model({ uuid: 'a3', parent: 'a2' }, [says('and on')]),
      person({ uuid: 'u3', parent: 'a3' }, 'thanks'),
    ];
    const said = ['user: hi', 'assistant: hello', 'user: go on', 'assistant: on', 'assistant: and on'];
    expect(spines(records)).toEqual([['main', ...said, 'user: thanks']]);
    expect(derivedOf(records)).toEqual([['cc:u2', 'cc:a1', 'circle']]);
    growsAsOne(records);
  });

  test('follow what is before them, and not what follows them', () => {
    const records = [
      ...begun,
      person({ uuid: 'early', parent: 'a2' }, 'early'),
      person({ uuid: 'u2', parent: 'a2' }, 'go on'),
      model({ uuid: 'a2', parent: 'u2' }, [says('on')]),
    ];
    expect(derivedOf(records)).toEqual([['cc:u2', 'cc:a1', 'circle']]);
    expect(spines(records).map(([kind, ...said]) => [kind, said.at(-1), said.length])).toEqual([
      ['main', 'assistant: on', 4],
      ['branch', 'user: early', 5],
    ]);
    growsAsOne(records);
  });
});

test('what names a record that comes later as its parent follows that', () => {
  const records = [
    person({ uuid: 'u1' }, 'hi'),
    person({ uuid: 'early', parent: 'a1' }, 'early'),
    person({ uuid: 'gone', parent: 'lost' }, 'go on'),
    model({ uuid: 'a1', parent: 'gone' }, [says('on')]),
  ];
  expect(planned(records).derived.map(({ of, from }) => [of, from])).toEqual([['cc:gone', 'cc:u1']]);
  growsAsOne(records);
});

test('after /clear another session begins', () => {
  const records = [
    ...retyped.slice(0, 2),
    { type: 'progress', uuid: 'p1', parentUuid: null, data: { type: 'hook_progress' } },
    person({ uuid: 'u9', parent: 'p1' }, 'something else'),
  ];
  expect(spines(records)).toEqual([
    ['main', 'user: plan it', 'assistant: a plan'],
    ['cleared', 'user: something else'],
  ]);
  growsAsOne(records);
});

test('a first prompt that was typed anew leaves a branch, and the session is what is in its place', () => {
  const nothing = { type: 'last-prompt', leafUuid: '00000000-0000-0000-0000-000000000000', explicit: true };
  const turn = (n: number, prompt: string): Records => [
    person({ uuid: `u${n}` }, prompt, n === 3 ? {} : { promptSource: 'typed' }),
    ...(n === 1 ? [] : [nothing]),
    model({ uuid: `a${n}`, parent: `u${n}` }, [says(`answer ${n}`)], { usage: { output_tokens: n } }),
    { type: 'last-prompt', leafUuid: `a${n}` },
  ];
  const records = [...turn(1, 'plan ti'), ...turn(2, 'plan it'), ...turn(3, '<bash-input>ls</bash-input>')];
  expect(spines(records)).toEqual([
    ['main', 'user: <bash-input>ls</bash-input>', 'assistant: answer 3'],
    ['branch', 'user: plan it', 'assistant: answer 2'],
    ['branch', 'user: plan ti', 'assistant: answer 1'],
  ]);
  expect(planned(records).derived).toEqual([]);
  growsAsOne(records);
});

test('a result that comes late replaces the one that says that there was none', () => {
  const records = [
    person({ uuid: 'u1' }, 'read it'),
    model({ uuid: 'a1', parent: 'u1', id: 'm' }, [calls('t1')], { usage: { output_tokens: 1 } }),
    model({ uuid: 'a2', parent: 'a1', id: 'm' }, [calls('t2')], { usage: { output_tokens: 9 } }),
    person({ uuid: 'r2', parent: 'a2' }, [returns('t2', 'two')]),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'one')]),
    person({ uuid: 'u2', parent: 'r2' }, 'thanks'),
  ];
  growsAsOne(records);
  const { store } = imported(...records.map((_, i) => records.slice(0, i + 1)));
  const shown = JSON.stringify(view(store.views.entries('s-1')).messages);
  expect(shown).toContain('one');
  expect(shown).not.toContain('interrupted');
  expect(store.sessions.calls().map(({ steps, usage }) => [steps, usage.output])).toEqual([[1, 9]]);
});

test('an answer that the tool wrote itself is no call of a model', () => {
  const content = [says('No response requested.')];
  const usage = { input_tokens: 0, output_tokens: 0 };
  const { store } = imported([
    person({ uuid: 'u1' }, 'read it'),
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [says('read')], { usage: { output_tokens: 9 } }),
    person({ uuid: 'u2', parent: 'a1' }, 'and then?'),
    {
      ...model({ uuid: 'a2', parent: 'u2' }, content),
      message: { id: 'm2', role: 'assistant', model: '<synthetic>', content, usage },
    },
  ]);
  expect(view(store.views.entries('s-1')).messages).toHaveLength(4);
  expect(store.sessions.calls().map(({ steps, usage }) => [steps, usage.output])).toEqual([[1, 9]]);
});

test('a prompt that waited while the model worked is in the view', () => {
  const queued = { type: 'queued_command', commandMode: 'prompt', prompt: 'and the tests' };
  const records = [
    person({ uuid: 'u1' }, 'fix it'),
    model({ uuid: 'a1', parent: 'u1', id: 'm' }, [says('I fix'), calls('t1')]),
    { type: 'attachment', uuid: 'q1', parentUuid: 'a1', attachment: queued },
    model({ uuid: 'a2', parent: 'q1', id: 'm' }, [calls('t2')]),
    person({ uuid: 'r1', parent: 'a2' }, [returns('t1'), returns('t2')]),
  ];
  expect(spines(records)).toEqual([
    ['main', 'user: fix it', 'assistant: I fix [t1] [t2]', 't1 → ok', 't2 → ok', 'user: and the tests'],
  ]);
  growsAsOne(records);
});

describe('a compaction', () => {
  const before: Records = [
    person({ uuid: 'u1' }, 'read it'),
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [calls('t1')], { usage: { output_tokens: 5 } }),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1')]),
    model({ uuid: 'a2', parent: 'r1', id: 'm2' }, [says('read')]),
  ];
  const boundary = (compactMetadata: object): Records => [
    {
      type: 'system',
      subtype: 'compact_boundary',
      uuid: 'b1',
      parentUuid: null,
      logicalParentUuid: 'a2',
      timestamp: '2026-03-12T10:00:00.000Z',
      compactMetadata,
    },
    person({ uuid: 's1', parent: 'b1' }, 'It was read.', {
      isCompactSummary: true,
      timestamp: '2026-03-12T10:00:00.000Z',
    }),
  ];
  const late = { timestamp: '2026-03-12T11:00:00.000Z' };
  const details = { trigger: 'auto', preTokens: 1234 };

  test('shows its summary and no more of its record', () => {
    const { store } = imported([...before, ...boundary(details)]);
    expect(view(store.views.entries('s-1')).messages.map(({ content }) => content.at(-1)?.text)).toEqual([
      expect.stringMatching(/<summary>\nIt was read\.\n<\/summary>$/),
    ]);
  });

  test('that an earlier version imported, with its details in the state, stays, and what comes later follows', () => {
    using store = openStore();
    const records = [...before, ...boundary(details), person({ uuid: 'u2', parent: 's1' }, 'go on', late)];
    const written = (draft: Draft): Draft =>
      draft.mark !== 'boundary'
        ? draft
        : {
            ...draft,
            payload: { state: { summary: 'It was read.', trigger: 'auto', pre_tokens: 1234 } },
            meta: { source: 'import', uuid: 'b1', timestamp: '2026-03-12T10:00:00.000Z' },
          };
    const plan = planned(records.slice(0, -1));
    const conversations = plan.conversations.map((one) => ({ ...one, spine: one.spine.map(written) }));
    reconcile(store, { ...plan, conversations });
    expect(reconcile(store, plan)).toMatchObject([{ added: 0, rewound: false }]);
    expect(reconcile(store, planned(records))).toMatchObject([{ added: 1, rewound: false }]);
    expect(store.sessions.list({ all: true })).toHaveLength(1);
  });

  test('is followed by what the tool wrote anew behind it, calls with their results', () => {
    const records = [
      ...before,
      ...boundary({ preservedMessages: { anchorUuid: 's1', uuids: ['k1', 'k2'] } }),
      model({ uuid: 'k1', parent: 's1', id: 'm1' }, [calls('t1')], { usage: { output_tokens: 5 } }),
      person({ uuid: 'k2', parent: 'k1' }, [returns('t1')]),
      person({ uuid: 'u2', parent: 'k2' }, 'go on', late),
    ];
    expect(spines(records)[0]?.slice(5)).toEqual([
      '# compact/1 It was read.',
      'assistant: [t1]',
      't1 → ok',
      'user: go on',
    ]);
    growsAsOne(records);
    const { store } = imported(records);
    expect(store.sessions.calls().map(({ steps, usage }) => [steps, usage.output])).toEqual([[1, 5]]);
  });

  test('is followed by what the tool kept also where that begins with a file that is attached again behind it', () => {
    const file = (uuid: string, parentUuid: string, second: string): Records[number] => ({
      ...{ type: 'attachment', uuid, parentUuid, attachment: { type: 'file' } },
      ...{ rendered: [{ content: 'the file' }], timestamp: `2026-03-12T09:59:${second}.000Z` },
    });
    const uuids = ['f1', 'u2', 'a3'];
    const [begins = {}, summary = {}] = boundary({
      ...{ trigger: 'manual', preservedSegment: { headUuid: 'f1', anchorUuid: 's1', tailUuid: 'a3' } },
      preservedMessages: { anchorUuid: 's1', uuids },
    });
    const records = [
      ...before,
      file('f1', 'a2', '01'),
      person({ uuid: 'u2', parent: 'f1' }, 'and then?', { timestamp: '2026-03-12T09:59:02.000Z' }),
      model({ uuid: 'a3', parent: 'u2', id: 'm3' }, [says('so it is')]),
      ...[{ ...begins, logicalParentUuid: 'a2' }, summary],
      file('f2', 's1', '59'),
      person({ uuid: 'u3', parent: 'f2' }, 'go on', late),
    ];
    growsAsOne(records);
    const { store } = imported(records);
    expect(textsIn(store)).toEqual([
      expect.stringContaining('It was read.'),
      ...['the file', 'and then?', 'so it is', 'the file', 'go on'],
    ]);
  });

  test('is followed by what the tool kept also where an attachment comes before its summary', () => {
    const [begins = {}, summary = {}] = boundary({
      ...{ trigger: 'auto', preservedSegment: { headUuid: 'a2', anchorUuid: 's1', tailUuid: 'u2' } },
      preservedMessages: { anchorUuid: 's1', uuids: ['a2', 'u2'] },
    });
    const date = { type: 'attachment', uuid: 'd1', parentUuid: 'b1', attachment: { type: 'date' } };
    const records = [
      ...before,
      person({ uuid: 'u2', parent: 'a2' }, 'and then?', { timestamp: '2026-03-12T09:59:00.000Z' }),
      { ...begins, logicalParentUuid: 'u2' },
      { ...date, rendered: [{ content: 'a new day' }], timestamp: '2026-03-12T10:00:00.000Z' },
      { ...summary, parentUuid: 'd1' },
      model({ uuid: 'a3', parent: 's1', id: 'm3' }, [says('so it is')]),
    ];
    growsAsOne(records);
    const { store } = imported(records);
    expect(textsIn(store)).toEqual([
      expect.stringContaining('It was read.'),
      ...['read', 'and then?', 'a new day', 'so it is'],
    ]);
  });

  describe('comes again before what was typed anew within what it kept', () => {
    const turn = (uuid: string, parent: string, time: string): Records =>
      [
        person({ uuid, parent }, uuid),
        model({ uuid: `${uuid}-a`, parent: uuid, id: uuid }, [says(`did ${uuid}`)]),
      ].map((one, i) => ({ ...one, timestamp: `2026-03-12T${time}:0${i}.000Z` }));
    const kept = {
      preservedSegment: { headUuid: 'a2', anchorUuid: 's1', tailUuid: 'three' },
      preservedMessages: { anchorUuid: 's1', uuids: ['a2', 'two', 'two-a', 'three'] },
    };
    const asked = [
      ...before.map((one, i) => ({ ...one, timestamp: `2026-03-12T09:40:0${i}.000Z` })),
      ...turn('two', 'a2', '09:50'),
    ];
    const [three = {}, answer = {}] = turn('three', 'two-a', '09:59');
    const compaction = [three, ...boundary(kept), { ...answer, parentUuid: 's1' }];
    const compacted = [...asked, ...compaction];
    /** What each session shows. */
    const shownIn = (records: Records) => {
      growsAsOne(records);
      const { store } = imported(records);
      expect([...store.verify()]).toEqual([]);
      return store.sessions
        .list({ all: true })
        .map(({ session }) => textsIn(store, session))
        .toSorted((a, b) => a.length - b.length || (a.join() < b.join() ? -1 : 1));
    };

    test('in place of the prompt that it preceded', () => {
      const records = [...compacted, ...turn('four', 'two-a', '11:01'), ...turn('five', 'four-a', '11:02')];
      expect(shownIn(records)).toEqual([
        ['It was read.', 'read', 'two', 'did two', 'three', 'did three'],
        ['It was read.', 'read', 'two', 'did two', 'four', 'did four', 'five', 'did five'],
      ]);
    });

    test('in several places', () => {
      const others = [...turn('four', 'two-a', '11:01'), ...turn('five', 'a2', '11:02')];
      expect(shownIn([...compacted, ...others, ...turn('six', 'two-a', '11:03')])).toEqual([
        ['It was read.', 'read', 'five', 'did five'],
        ['It was read.', 'read', 'two', 'did two', 'four', 'did four'],
        ['It was read.', 'read', 'two', 'did two', 'six', 'did six'],
        ['It was read.', 'read', 'two', 'did two', 'three', 'did three'],
      ]);
    });

    test('unless that was typed before it, or behind what it summed up', () => {
      const earlier = [...asked, ...turn('four', 'two-a', '09:55'), ...compaction];
      expect(shownIn(earlier)).toContainEqual(
        expect.arrayContaining(['read it', 'read', 'two', 'did two', 'four', 'did four']),
      );
      const behind = [...compacted, ...turn('four', 'r1', '11:01')];
      expect(shownIn(behind)).toContainEqual(expect.arrayContaining(['read it', 'four', 'did four']));
    });
  });

  test('is followed by what the tool kept where it was', () => {
    const records = [
      ...before,
      ...boundary({ preservedSegment: { headUuid: 'a2', anchorUuid: 's1', tailUuid: 'a2' } }),
      person({ uuid: 'u2', parent: 's1' }, 'go on', late),
    ];
    growsAsOne(records);
    const { store } = imported(records);
    const texts = view(store.views.entries('s-1')).messages.map(({ content }) => content.at(-1)?.text);
    expect(texts).toEqual([expect.stringContaining('It was read.'), 'read', 'go on']);
  });
});

describe('a part of a conversation that the user had summed up', () => {
  const said = (name: string, parent: string | null, minute: number): Records => {
    const at = (second: number) => ({ timestamp: `2026-03-12T09:${minute}:0${second}.000Z` });
    const reminder = {
      type: 'attachment',
      uuid: `${name}-r`,
      parentUuid: `${name}-u`,
      attachment: { type: 'date' },
    };
    return [
      person({ uuid: `${name}-u`, parent }, `ask ${name}`, at(1)),
      { ...reminder, sessionId: 's-1', ...at(1), rendered: [{ content: `reminder of ${name}` }] },
      { ...model({ uuid: `${name}-a`, parent: `${name}-r`, id: name }, [says(`did ${name}`)]), ...at(2) },
    ];
  };
  const three = [...said('one', null, 10), ...said('two', 'one-a', 11), ...said('three', 'two-a', 12)];
  const summed = (
    kept: { head: string; tail: string; anchor: string; uuids: readonly string[] },
    direction: string,
  ): Records => [
    {
      ...{ type: 'system', subtype: 'compact_boundary', uuid: 'b1', parentUuid: null, sessionId: 's-1' },
      logicalParentUuid: 'one-a',
      timestamp: '2026-03-12T10:00:00.000Z',
      compactMetadata: {
        trigger: 'manual',
        preservedSegment: { headUuid: kept.head, anchorUuid: kept.anchor, tailUuid: kept.tail },
        preservedMessages: { anchorUuid: kept.anchor, uuids: kept.uuids },
      },
    },
    person({ uuid: 's1', parent: 'b1' }, 'It was done.', {
      ...{ isCompactSummary: true, summarizeMetadata: { direction } },
      timestamp: '2026-03-12T10:00:01.000Z',
    }),
    {
      ...{
        type: 'attachment',
        uuid: 'f1',
        parentUuid: 's1',
        sessionId: 's-1',
        attachment: { type: 'model' },
      },
      // Claude Code made this reminder while it wrote the summary.
      timestamp: '2026-03-12T09:59:59.000Z',
      rendered: [{ content: 'a model' }],
    },
    person({ uuid: 'u9', parent: 'f1' }, 'go on', { timestamp: '2026-03-12T10:01:00.000Z' }),
  ];
  const uuidsOf = (...names: readonly string[]) =>
    names.flatMap((one) => [`${one}-u`, `${one}-r`, `${one}-a`]);

  test('up to a prompt: the summary is followed by all from that prompt on, which is no branch', () => {
    const kept = { head: 'two-u', tail: 'three-a', anchor: 's1', uuids: uuidsOf('two', 'three') };
    const records = [...three, ...summed(kept, 'up_to')];
    growsAsOne(records);
    const { store, plan } = imported(records);
    expect(plan.conversations).toHaveLength(1);
    expect(textsIn(store)).toEqual([
      ...[
        'It was done.',
        'reminder of two',
        'ask two',
        'did two',
        'reminder of three',
        'ask three',
        'did three',
      ],
      ...['a model', 'go on'],
    ]);
  });

  test('from a prompt on: the summary is a prompt behind all that precedes it, and the rest is a branch', () => {
    const kept = { head: 'one-u', tail: 'one-a', anchor: 'b1', uuids: uuidsOf('one') };
    const records = [...three, ...summed(kept, 'from')];
    growsAsOne(records);
    const { store, plan } = imported(records);
    expect(plan.conversations.map(({ kind }) => kind)).toEqual(['main', 'branch']);
    expect(textsIn(store)).toEqual([
      ...['reminder of one', 'ask one', 'did one', 'a model', 'It was done.', 'go on'],
    ]);
  });
});

describe('a session that went on here', () => {
  const asks = (text: string) => user(text, { run: 'r-1' });

  test('keeps what it has; what its source has now is a session beside it, which grows with it', () => {
    const store = openStore();
    reconcile(store, planned(retyped.slice(0, 2)));
    store.entries.append('s-1', [asks('and here?'), assistant('Here, too.')]);
    const before = view(store.views.entries('s-1')).messages;

    const written = reconcile(store, planned(retyped.slice(0, 4)));
    expect(written.map(({ session, created }) => [session, created])).toEqual([['s-1-2', true]]);
    expect(store.sessions.find('s-1-2')).toMatchObject({ parent: 's-1', kind: 'session' });
    expect(view(store.views.entries('s-1')).messages).toEqual(before);

    const again = reconcile(store, planned(retyped));
    expect(again[0]).toMatchObject({ session: 's-1-2', created: false });
    expect(JSON.stringify(view(store.views.entries('s-1-2')).messages)).toContain('done in Rust');
    expect(reconcile(store, planned(retyped)).filter(({ added }) => added > 0)).toEqual([]);
  });

  test('drops nothing of an answer of which only a part had come', () => {
    const records = [
      person({ uuid: 'u1' }, 'plan it'),
      model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [says('I think')]),
      model({ uuid: 'a2', parent: 'a1', id: 'm1' }, [says('a plan')]),
    ];
    const store = openStore();
    reconcile(store, planned(records.slice(0, 2)));
    store.entries.append('s-1', [asks('and here?'), assistant('Here, too.')]);
    const before = view(store.views.entries('s-1')).messages;
    // A part of it again, as in an older copy of the file, adds nothing.
    for (const n of [3, 3, 2]) reconcile(store, planned(records.slice(0, n)));
    expect(view(store.views.entries('s-1')).messages).toEqual(before);
    const [, answer] = view(store.views.entries('s-1-2')).messages;
    expect(answer?.content).toEqual([says('I think'), says('a plan')]);
    expect(store.sessions.list({ all: true })).toHaveLength(2);
  });

  test('drops nothing of an answer of which a person had rewound a part', () => {
    const records = [
      person({ uuid: 'u1' }, 'plan it'),
      model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [says('I think')], { usage: { output_tokens: 3 } }),
      model({ uuid: 'a2', parent: 'a1', id: 'm1' }, [says('a plan')], { usage: { output_tokens: 7 } }),
    ];
    const store = openStore();
    reconcile(store, planned(records.slice(0, 2)));
    const [prompt] = store.entries.read('s-1', { kind: 'message' });
    store.history.rewind('s-1', prompt?.seq ?? 0);
    for (const n of [2, 3, 3]) reconcile(store, planned(records.slice(0, n)));
    expect(view(store.views.entries('s-1')).messages).toHaveLength(1);
    const [, answer] = view(store.views.entries('s-1-2')).messages;
    expect(answer?.content).toEqual([says('I think'), says('a plan')]);
    expect(store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0)).toBe(7);
    expect(store.sessions.list({ all: true })).toHaveLength(2);
  });

  test('gets nothing new when its source has nothing new', () => {
    const store = openStore();
    reconcile(store, planned(retyped));
    store.entries.append('s-1', [asks('and here?'), assistant('Here, too.')]);
    const { head } = store.sessions.find('s-1') ?? {};
    reconcile(store, planned(retyped));
    expect(store.sessions.find('s-1')?.head).toBe(head);
  });
});

describe('a source that was rewritten', () => {
  const rewritten = [...retyped.slice(0, 2), person({ uuid: 'u9', parent: 'a1' }, 'something else')];

  test('becomes a session that is forked where the two differ', () => {
    const store = openStore();
    reconcile(store, planned(retyped.slice(0, 4)));
    const before = view(store.views.entries('s-1')).messages;
    const [written] = reconcile(store, planned(rewritten), { rewritten: true });
    expect(written).toMatchObject({ session: 's-1-2', created: true });
    expect(view(store.views.entries('s-1')).messages).toEqual(before);
    expect(view(store.views.entries('s-1-2')).messages.at(-1)?.content[0]?.text).toBe('something else');
  });

  test('changes nothing when it only lacks its end', () => {
    const store = openStore();
    reconcile(store, planned(retyped.slice(0, 4)));
    expect(reconcile(store, planned(retyped.slice(0, 2)), { rewritten: true })).toMatchObject([{ added: 0 }]);
    expect(view(store.views.entries('s-1')).messages).toHaveLength(4);
  });
});

test('a fork that was killed before it had an entry is continued', () => {
  const store = openStore();
  reconcile(store, planned(retyped.slice(0, 4)));
  const [, branch] = planned(retyped).conversations;
  store.lineage.fork('s-1', { name: branch?.name ?? '', key: branch?.key ?? '', kind: 'session' });
  reconcile(store, planned(retyped));
  expect(store.sessions.list({ parent: 's-1' }).map(({ session }) => session)).toEqual([branch?.name]);
  expect(reconcile(store, planned(retyped)).filter(({ added }) => added > 0)).toEqual([]);
});

describe('a branch of which a later record changes what it shares with the main conversation', () => {
  const attached = (uuid: string, parent: string, attachment: object, more = {}) => ({
    ...{ ...person({ uuid, parent }, ''), type: 'attachment', message: undefined, attachment },
    ...more,
  });
  const date = { rendered: [{ role: 'user', content: 'It is Monday.' }], renderedRole: 'system' };
  const begun = [person({ uuid: 'u1' }, 'ask'), attached('s1', 'u1', { type: 'date_change' }, date)];
  const answered = model({ uuid: 'a1', parent: 's1' }, [says('an answer')]);
  // From this one on, the date is behind the prompt.
  const snapshot = attached('p1', 'a2', { type: 'prompt_snapshot', tools: [], systemTurns: true });
  const anew = [
    person({ uuid: 'u2', parent: 's1' }, 'anew'),
    model({ uuid: 'a2', parent: 'u2' }, [says('two')]),
  ];

  test.each([
    ['an answer alone', [answered]],
    ['a prompt', [answered, person({ uuid: 'u3', parent: 'a1' }, 'and more')]],
  ])('is listed as where the file comes at once: it has %s', (_, own) => {
    growsAsOne([...begun, ...own, ...anew, snapshot]);
    growsAsOne([...begun, ...anew, ...own, snapshot]);
    growsAsOne([...begun, ...anew, snapshot, ...own]);
  });

  test('counts each answer once that both have and that comes with that record', () => {
    const usage = { output_tokens: 7 };
    const records = [
      ...begun,
      model({ uuid: 'a1', parent: 's1' }, [says('an answer')], { usage }),
      model({ uuid: 'b1', parent: 'a1' }, [calls('t1')], { usage }),
      attached('p1', 'a1', { type: 'prompt_snapshot', tools: [], systemTurns: true }),
    ];
    const { store } = imported(begun, records);
    expect(spent(store)).toBe(2 * 7);
    expect([...store.verify()]).toEqual([]);
    growsAsOne(records);
  });

  test('keeps the title that a model wrote for it here', () => {
    const all = [...begun, answered, ...anew];
    const { store, plan } = imported(all);
    const branch = plan.conversations.find(({ kind }) => kind === 'branch')?.name ?? '';
    store.entries.append(branch, [note(titleEvent, { title: 'Days' })]);
    reconcile(store, planned([...all, snapshot]));
    expect(store.sessions.find(branch)?.title).toBe('Days');
  });
});

test('what has the form of a secret is replaced before anything is compared', () => {
  const clean = {
    draft: (draft: Draft): Draft =>
      JSON.parse(JSON.stringify(draft).replaceAll('a plan', '[redacted]')) as Draft,
    text: (text: string): string => text.replaceAll('a plan', '[redacted]'),
  };
  const store = openStore();
  reconcile(store, planned(retyped.slice(0, 2)), { clean });
  reconcile(store, planned(retyped.slice(0, 4)), { clean });
  const [, answer] = view(store.views.entries('s-1')).messages;
  expect(answer?.content).toEqual([{ type: 'text', text: '[redacted]' }]);
  expect([...store.entries.read('s-1', { kind: 'rewind' })]).toEqual([]);
});

test('a conversation behind a /clear stays the same session where the one before it turns out to be another one', () => {
  const late = model({ uuid: 'a1', parent: 'b1' }, [says('of what the compaction left')]);
  const boundary = { type: 'system', subtype: 'compact_boundary', uuid: 'b1', sessionId: 's-1' };
  growsAsOne([
    person({ uuid: 'u1' }, 'plan it'),
    { type: 'system', uuid: 's1', sessionId: 's-1' },
    late,
    model({ uuid: 'a2' }, [says('of its own')]),
    boundary,
  ]);
});

test('records with any links and contents give the same sessions in pieces', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g');
  const block = fc.oneof(
    fc.record({ type: fc.constant('tool_use'), id: name, name }),
    fc.record({ type: fc.constant('tool_result'), tool_use_id: name, content: name }),
    fc.record({ type: fc.constant('text'), text: name }),
  );
  const record = fc.record(
    {
      type: fc.constantFrom('user', 'user', 'assistant', 'assistant', 'system', 'progress', 'last-prompt'),
      uuid: name,
      parentUuid: fc.option(name),
      leafUuid: name,
      logicalParentUuid: name,
      subtype: fc.constantFrom('compact_boundary', 'other'),
      isSidechain: fc.constantFrom(false, false, false, true),
      isMeta: fc.boolean(),
      isCompactSummary: fc.constantFrom(false, false, true),
      message: fc.record({ id: name, content: fc.oneof(name, fc.array(block, { maxLength: 3 })) }),
    },
    { requiredKeys: ['type', 'message'] },
  );
  fc.assert(fc.property(fc.array(record, { minLength: 1, maxLength: 12 }), growsAsOne), {
    numRuns: sized(3, 5, 2_000),
    // A soak draws other records each time.
    ...sized({ seed: 1 }, { seed: 1 }, {}),
    interruptAfterTimeLimit: 300_000,
  });
});
