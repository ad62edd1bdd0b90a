import { type DeckConfig, delegationTools } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { note, type SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { entryLines, eventsOf, scriptedDeck } from '../support/scripted.ts';

/** The call of a parent that delegates these tasks, and what it says when it has their results. */
const delegating = (tasks: readonly object[], session = 'main', more: object = {}): ScriptAnswer[] => [
  { toolCalls: [{ name: 'delegate', input: { tasks, ...more }, id: 'd1' }], when: { session } },
  { text: `${session} has it.`, when: { session } },
];

/** A child that pays under a call id, and then says what it did. */
const paying = (text: string, id: string): ScriptAnswer[] => [
  { toolCalls: [{ name: 'pay', input: { to: text }, id }], when: { session: 'main-*', text } },
  { text: `${text} is done.`, when: { session: 'main-*', text } },
];

async function shop(answers: readonly ScriptAnswer[], config: DeckConfig = {}) {
  const paid: string[] = [];
  const pay = tool({
    inputSchema: z.object({ to: z.string() }),
    needsApproval: true,
    execute: async ({ to }) => {
      paid.push(to);
      return 'paid';
    },
  });
  const home = await scriptedDeck(answers, { tools: { ...delegationTools(), pay }, ...config });
  const main = await home.deck.session('main');
  const waits = async () => {
    const { waiting, children = [] } = await main.status();
    return [
      ...waiting.map((call) => `${call.toolCallId} ${call.for}`),
      ...children.flatMap((child) => child.waiting.map((call) => `${call.toolCallId} ${call.for}`)),
    ];
  };
  return { ...home, main, paid, waits, pay };
}

const childrenOf = (store: SqliteTapeStore, parent = 'main') => store.sessions.list({ parent, all: true });

const resultsOf = (store: SqliteTapeStore, session = 'main') =>
  [...store.entries.read(session, { kind: 'tool-result', own: true })].map(({ payload }) =>
    isObject(payload) && isObject(payload.output) ? (payload.output.value ?? payload.output) : undefined,
  );

const mergesOf = (store: SqliteTapeStore, session = 'main') =>
  entryLines(store.entries.read(session)).filter((line) => line.startsWith('anchor merge/'));

const noCall = { code: 'SESSION_NO_CALL' };

test('a call waits for a child that waits, and gets its result after the answer', async () => {
  await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
  const run = s.main.run('Go');
  expect(await run).toMatchObject({ finish: 'waiting', steps: 1 });
  const [child] = childrenOf(s.store);
  expect(resultsOf(s.store)).toEqual([]);
  expect(await s.main.status()).toMatchObject({
    state: 'waiting',
    waiting: [{ toolCallId: 'd1', name: 'delegate', for: 'children' }],
    children: [{ session: child?.session, waiting: [{ toolCallId: 'p1', for: 'approval' }] }],
  });
  expect((await eventsOf(run)).filter(({ type }) => type === 'tool-waiting')).toEqual([
    {
      type: 'tool-waiting',
      calls: [
        { toolCallId: 'd1', name: 'delegate', input: { tasks: [{ task: 'Pay rent' }] }, for: 'children' },
        {
          toolCallId: `${child?.session}/p1`,
          name: 'pay',
          input: { to: 'Pay rent' },
          for: 'approval',
          session: child?.session,
          claims: ['pay', 'opaque(pay)'],
          offers: ['pay'],
        },
      ],
    },
  ]);
  const { run: goesOn } = await s.main.respond('p1', { approved: true });
  expect(await goesOn).toMatchObject({ session: child?.session, finish: 'stop' });
  await s.deck.idle();
  expect(s.paid).toEqual(['Pay rent']);
  expect(resultsOf(s.store)).toEqual([
    { results: [{ session: child?.session, status: 'completed', text: 'Pay rent is done.' }] },
  ]);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
  expect(mergesOf(s.store)).toHaveLength(1);
  expect(await s.main.status()).toMatchObject({ state: 'idle', waiting: [] });
});

test.each(['parent', 'child'])('a denial that is given at the %s lets the child go on', async (where) => {
  await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
  await s.main.run('Go');
  const [child] = childrenOf(s.store);
  const kid = await s.deck.session(child?.session ?? '');
  const at = where === 'parent' ? s.main : kid;
  await (await at.respond('p1', { approved: false, reason: 'too dear' })).run;
  await s.deck.idle();
  expect(s.paid).toEqual([]);
  expect(resultsOf(s.store, kid.name)).toEqual([{ type: 'execution-denied', reason: 'too dear' }]);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
  expect(mergesOf(s.store)).toHaveLength(1);
});

test('of several children of a parallel step, each gets its own answer, and the parent goes on after the last', async () => {
  await using s = await shop([
    ...delegating([{ task: 'Read mail' }, { task: 'Pay rent' }, { task: 'Pay tax' }]),
    { text: 'Mail is read.', when: { session: 'main-*', text: 'Read mail' } },
    // The provider gives both calls one id.
    ...paying('Pay rent', 'p1'),
    ...paying('Pay tax', 'p1'),
  ]);
  expect(await s.main.run('Go')).toMatchObject({ finish: 'waiting' });
  const [, rent, tax] = childrenOf(s.store).map(({ session }) => session);
  await expect(s.main.respond('p1', { approved: true })).rejects.toMatchObject(noCall);
  await (await s.main.respond(`${tax}/p1`, { approved: true })).run;
  await s.deck.idle();
  expect(s.paid).toEqual(['Pay tax']);
  expect(resultsOf(s.store)).toEqual([]);
  expect(await s.waits()).toEqual(['d1 children', 'p1 approval']);
  await (await s.main.respond('p1', { approved: false })).run;
  await s.deck.idle();
  expect(s.paid).toEqual(['Pay tax']);
  expect(resultsOf(s.store, rent)).toEqual([{ type: 'execution-denied', reason: 'denied' }]);
  expect(resultsOf(s.store)).toMatchObject([
    { results: ['Mail is read.', 'Pay rent is done.', 'Pay tax is done.'].map((text) => ({ text })) },
  ]);
  expect(mergesOf(s.store)).toHaveLength(3);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
});

test('an approval of a grandchild goes through two generations', async () => {
  await using s = await shop([
    ...delegating([{ task: 'Plan it' }]),
    {
      toolCalls: [
        { name: 'delegate', input: { tasks: [{ task: 'Pay rent' }], inherit: 'nothing' }, id: 'd2' },
      ],
      when: { session: 'main-*', text: 'Plan it' },
    },
    { text: 'It is planned.', when: { session: 'main-*', text: 'Plan it' } },
    ...paying('Pay rent', 'p1'),
  ]);
  expect(await s.main.run('Go')).toMatchObject({ finish: 'waiting' });
  const [child] = childrenOf(s.store);
  const [grandchild] = childrenOf(s.store, child?.session);
  expect(await s.waits()).toEqual(['d1 children', 'd2 children', 'p1 approval']);
  await (await s.main.respond(`${grandchild?.session}/p1`, { approved: true })).run;
  await s.deck.idle();
  expect(s.paid).toEqual(['Pay rent']);
  expect(resultsOf(s.store, child?.session)).toMatchObject([{ results: [{ text: 'Pay rent is done.' }] }]);
  expect(resultsOf(s.store)).toMatchObject([{ results: [{ text: 'It is planned.' }] }]);
  expect([mergesOf(s.store), mergesOf(s.store, child?.session)].map((merges) => merges.length)).toEqual([
    1, 1,
  ]);
});

test('answers to calls that do not wait, or not below the session, are refused', async () => {
  await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
  await s.main.run('Go');
  const [child] = childrenOf(s.store);
  const other = await s.deck.session('other');
  for (const [session, call] of [
    [s.main, 'd1'],
    [s.main, 'p2'],
    [s.main, 'other/p1'],
    [other, 'p1'],
    [other, `${child?.session}/p1`],
    [await s.deck.session(child?.session ?? ''), 'd1'],
  ] as const)
    await expect(session.respond(call, { approved: true })).rejects.toMatchObject(noCall);
  await expect(s.main.respond('p1', { output: 1 })).rejects.toMatchObject(noCall);
  await (await s.main.respond('p1', { approved: true })).run;
  await s.deck.idle();
  await expect(s.main.respond('p1', { approved: true })).rejects.toMatchObject(noCall);
  expect(s.paid).toEqual(['Pay rent']);
});

test('a message does not wait: the call gets what has come of the children, and the rest is merged later', async () => {
  await using s = await shop([
    ...delegating([{ task: 'Read mail' }, { task: 'Pay rent' }]),
    { text: 'Mail is read.', when: { session: 'main-*', text: 'Read mail' } },
    ...paying('Pay rent', 'p1'),
  ]);
  await s.main.run('Go');
  expect(await s.main.run('How is it?')).toMatchObject({ finish: 'stop', text: 'main has it.' });
  expect(resultsOf(s.store)).toMatchObject([{ results: [{ text: 'Mail is read.' }, { status: 'running' }] }]);
  await (await s.main.respond('p1', { approved: true })).run;
  await s.deck.idle();
  const shown = JSON.stringify(
    [...s.store.views.entries('main')].filter(({ meta }) => meta.context !== false),
  );
  expect(shown).toContain('Pay rent is done.');
  expect(shown.split('Mail is read.')).toHaveLength(2);
  expect(mergesOf(s.store)).toHaveLength(2);
});

test('a child that is resumed takes its task once, and its parent waits for it', async () => {
  await using s = await shop([
    { text: 'First.', when: { session: 'kid' } },
    { toolCalls: [{ name: 'pay', input: { to: 'all' }, id: 'p1' }], when: { session: 'kid' } },
    { text: 'Second.', when: { session: 'kid' } },
    ...delegating([{ task: 'Go on', resume: 'kid' }]),
  ]);
  await s.main.delegate({ task: 'Begin', name: 'kid' });
  expect(await s.main.run('Go')).toMatchObject({ finish: 'waiting' });
  await (await s.main.respond('p1', { approved: true })).run;
  await s.deck.idle();
  expect(
    entryLines(s.store.entries.read('kid', { own: true })).filter((line) => line.startsWith('user')),
  ).toEqual(['user: Go on']);
  expect(resultsOf(s.store)).toMatchObject([{ results: [{ session: 'kid', text: 'Second.' }] }]);
  expect(mergesOf(s.store)).toHaveLength(2);
});

test('the options of an answer reach the run of the child and that of the parent, up to the session that has it', async () => {
  await using s = await shop(
    [
      ...delegating([{ task: 'Plan it' }]),
      { toolCalls: [{ name: 'delegate', input: { tasks: [{ task: 'Pay it' }] }, id: 'd2' }] },
      { toolCalls: [{ name: 'pay', input: { to: 'it' }, id: 'p1' }], when: { session: 'main-*-*' } },
    ],
    { tools: {} },
  );
  const tools = { ...delegationTools(), pay: s.pay };
  expect(await s.main.run('Go', { tools })).toMatchObject({ finish: 'waiting' });
  const [middle] = childrenOf(s.store);
  const [last] = childrenOf(s.store, middle?.session);
  const model = s.script([{ text: 'By the other.' }, { text: 'By the other.' }, { text: 'By the other.' }]);
  const seen: string[] = [];
  const settings = { temperature: 0.5 };
  const options = { tools, model, settings, instructions: 'Be short.' };
  // At the session in the middle: the root has none of it, and the tool of its own call is missing there.
  await (await (await s.deck.session(middle?.session ?? '')).respond('p1', { approved: true }, options)).run;
  await s.deck.idle();
  expect(s.paid).toEqual(['it']);
  for (const { session = '' } of [middle ?? {}, last ?? {}])
    seen.push(entryLines(s.store.entries.read(session)).at(-1) ?? '');
  expect(seen).toEqual(['assistant: By the other.', 'assistant: By the other.']);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
  await expect(
    s.main.respond('p1', { approved: true }, { tools: { pay: 1 } } as never),
  ).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
});

test('an answer that comes while a sibling still works is taken at once, and the parent goes on by itself', async () => {
  const gate = Promise.withResolvers<string>();
  const slow = tool({ inputSchema: z.object({}), execute: async () => await gate.promise });
  await using s = await shop([
    ...delegating([{ task: 'Pay rent' }, { task: 'Walk slowly' }]),
    ...paying('Pay rent', 'p1'),
    { toolCalls: [{ name: 'slow', input: {}, id: 's1' }], when: { session: 'main-*', text: 'Walk slowly' } },
    { text: 'I arrived.', when: { session: 'main-*', text: 'Walk slowly' } },
  ]);
  const main = await s.deck.session('main');
  const run = main.run('Go', { tools: { ...delegationTools(), pay: s.pay, slow } });
  await expect.poll(s.waits).toContain('p1 approval');
  expect(await (await main.respond('p1', { approved: false })).run).toMatchObject({ finish: 'stop' });
  expect(main.attach()).toBeDefined();
  gate.resolve('there');
  await run;
  await s.deck.idle();
  expect(resultsOf(s.store)).toMatchObject([
    { results: [{ text: 'Pay rent is done.' }, { text: 'I arrived.' }] },
  ]);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
  expect(mergesOf(s.store)).toHaveLength(2);
});

test('a deck without the tool of the call gives it the outcomes of its children', async () => {
  await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
  await s.main.run('Go');
  await s.deck.close();
  await using bare = await scriptedDeck([], { store: s.store, model: s.spec });
  const main = await bare.deck.session('main');
  await (await main.respond('p1', { approved: false })).run;
  await bare.deck.idle();
  expect(resultsOf(s.store)).toMatchObject([
    { results: [{ status: 'completed', text: 'Pay rent is done.' }] },
  ]);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
  expect(mergesOf(s.store)).toHaveLength(1);
});

test('a child whose model fails after the answer is the failure that its parent gets', async () => {
  const [asks] = paying('Pay rent', 'p1');
  await using s = await shop([
    ...delegating([{ task: 'Pay rent' }]),
    ...(asks === undefined ? [] : [asks]),
    { error: 'no such model', when: { session: 'main-*' } },
  ]);
  await s.main.run('Go');
  await (await s.main.respond('p1', { approved: true })).run;
  await s.deck.idle();
  expect(resultsOf(s.store)).toMatchObject([{ results: [{ status: 'failed' }] }]);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
});

test.each(['main', 'child'])(
  'recover --abort of the %s ends what waits, and merges it once',
  async (which) => {
    await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
    await s.main.run('Go');
    const [child] = childrenOf(s.store);
    const session = which === 'main' ? 'main' : (child?.session ?? '');
    expect(await s.deck.recover({ session, abort: true, dryRun: true })).toMatchObject({
      aborted: which === 'main' ? [child?.session, 'main'] : [session],
    });
    await s.deck.recover({ session, abort: true });
    await s.deck.idle();
    expect(childrenOf(s.store)).toMatchObject([{ task: 'aborted' }]);
    if (which === 'child') await s.deck.recover();
    expect(childrenOf(s.store)).toMatchObject([{ delivery: 'merged' }]);
    expect(resultsOf(s.store)).toMatchObject([{ results: [{ session: child?.session, status: 'aborted' }] }]);
    expect(mergesOf(s.store)).toHaveLength(1);
    expect(await s.main.status()).toMatchObject({ state: 'idle', waiting: [] });
    const lines = entryLines(s.store.entries.read('main'));
    if (which === 'child') expect(lines.at(-1)).toBe('assistant: main has it.');
    else expect(lines).toContain('event run/aborted');
  },
);

test('a recovery leaves what waits, and continues a parent whose children have ended', async () => {
  await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
  await s.main.run('Go');
  const [child] = childrenOf(s.store);
  const head = s.store.sessions.find('main')?.head;
  expect(await s.deck.recover()).toMatchObject({
    waiting: [child?.session, 'main'],
    resumed: [],
    merged: [],
  });
  expect(s.store.sessions.find('main')?.head).toBe(head);
  // The answer is in the inbox, and no process takes it up.
  await s.main.respond('p1', { approved: true }, { start: false });
  expect(await s.deck.recover()).toMatchObject({
    waiting: [],
    resumed: [child?.session, 'main'],
    merged: [child?.session],
  });
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
  expect(mergesOf(s.store)).toHaveLength(1);
  expect((await s.deck.recover()).sessions).toEqual([]);
});

test('a recovery continues a root whose call was approved where its tool is not, in a deck that has it', async () => {
  await using s = await shop([
    { toolCalls: [{ name: 'pay', input: { to: 'all' }, id: 'p1' }] },
    { text: 'All is paid.' },
  ]);
  await s.main.run('Go');
  // A call that waits for a person is no work of a recovery.
  expect((await s.deck.recover()).sessions).toEqual([]);
  await using bare = await openDeck({ store: s.store, model: s.spec });
  await (await (await bare.session('main')).respond('p1', { approved: true })).run;
  const head = s.store.sessions.find('main')?.head;
  expect(await bare.recover()).toMatchObject({ waiting: ['main'], resumed: [], failed: [] });
  expect(s.store.sessions.find('main')?.head).toBe(head);
  expect(await s.deck.recover()).toMatchObject({ resumed: ['main'], waiting: [], failed: [] });
  expect(s.paid).toEqual(['all']);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: All is paid.');
  expect((await s.deck.recover()).sessions).toEqual([]);
});

test('a run of the parent finds an answer that no process has taken up', async () => {
  await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
  await s.main.run('Go');
  await s.main.respond('p1', { approved: true }, { start: false });
  expect(await s.main.run()).toMatchObject({ finish: 'stop', text: 'main has it.' });
  expect(mergesOf(s.store)).toHaveLength(1);
  expect(s.paid).toEqual(['Pay rent']);
});

test('a rewind over the call lets the child report by itself', async () => {
  await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
  await s.main.run('Go');
  const asked = [...s.store.entries.read('main', { kind: 'message' })][0]?.seq ?? 0;
  await s.main.rewind(asked);
  expect((await s.main.status()).waiting).toEqual([]);
  await (await s.main.respond('p1', { approved: true })).run;
  await s.deck.idle();
  expect(childrenOf(s.store)).toMatchObject([{ task: 'completed', delivery: 'merged' }]);
  expect(mergesOf(s.store)).toHaveLength(1);
});

test('a child that waits and is discarded ends as aborted, and its parent goes on', async () => {
  await using s = await shop([
    ...delegating([{ task: 'Pay rent' }, { task: 'Pay tax' }]),
    ...paying('Pay rent', 'p1'),
    ...paying('Pay tax', 'p1'),
  ]);
  await s.main.run('Go');
  const [rent = '', tax = ''] = childrenOf(s.store).map(({ session }) => session);
  const discarded = s.main.merge(rent, { strategy: 'discard', reason: 'too dear' });
  await expect.poll(() => s.waits()).toEqual(['d1 children', 'p1 approval']);
  // The other child still waits, and so does its parent.
  expect(resultsOf(s.store)).toEqual([]);
  await (await s.main.respond('p1', { approved: true })).run;
  expect(await discarded).toMatchObject({ state: 'discarded', child: rent });
  await s.deck.idle();
  expect(resultsOf(s.store)).toMatchObject([
    {
      results: [
        { session: rent, status: 'aborted', error: 'discarded: too dear' },
        { session: tax, status: 'completed', text: 'Pay tax is done.' },
      ],
    },
  ]);
  expect(s.paid).toEqual(['Pay tax']);
  expect(mergesOf(s.store)).toHaveLength(2);
  expect(childrenOf(s.store).map(({ task, delivery }) => `${task} ${delivery}`)).toEqual([
    'aborted discarded',
    'completed merged',
  ]);
  expect(entryLines(s.store.entries.read('main'))).toContain('assistant: main has it.');
  await expect(s.main.respond(`${rent}/p1`, { approved: true })).rejects.toMatchObject(noCall);
});

/** The store as another process has it that is late: before its first call of `method`, all of `first` is done. */
function late(store: SqliteTapeStore, method: string, first: () => Promise<void>): SqliteTapeStore {
  let done: Promise<void> | undefined;
  return wrapStore(store, (call) => {
    if (call.method !== method) return call.act();
    done ??= first();
    return done.then(call.act);
  });
}

test('a child that two processes approve is merged once, also when the second comes after its end', async () => {
  await using s = await shop([...delegating([{ task: 'Pay rent' }]), ...paying('Pay rent', 'p1')]);
  await s.main.run('Go');
  const store = late(s.store, 'inbox.post', async () => {
    await (await s.main.respond('p1', { approved: true })).run;
    await s.deck.idle();
  });
  await using other = await openDeck({ store, model: s.spec, tools: { ...delegationTools(), pay: s.pay } });
  await (await (await other.session('main')).respond('p1', { approved: true })).run;
  await other.idle();
  const [child] = childrenOf(s.store);
  expect(entryLines(s.store.entries.read(child?.id ?? ''))).toContain('event inbox/refused');
  expect(s.paid).toEqual(['Pay rent']);
  expect(mergesOf(s.store)).toHaveLength(1);
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main has it.');
});

test.each(['lineage.merge', 'inbox.post'])(
  'a child that grew after another process had merged it is not merged again by %s',
  async (method) => {
    await using s = await shop([{ text: 'Done.', when: { session: 'kid' } }]);
    await s.main.fork({ name: 'kid', deliver: 'merge', task: 'Work.', onUnmerged: 'keep' });
    const isBusy = method === 'inbox.post';
    const lease = isBusy ? s.store.leases.acquire('main', { id: 'runner' }) : undefined;
    const store = late(s.store, method, async () => {
      s.store.lineage.merge('kid', {}, lease === undefined ? {} : { lease });
      s.store.entries.append('kid', [note('inbox/refused', {})]);
    });
    await using other = await openDeck({ store, model: s.spec });
    await (await other.session('kid')).run();
    await other.idle();
    if (lease !== undefined) {
      s.store.inbox.drain(lease);
      s.store.leases.release(lease);
    }
    expect(s.store.inbox.list('main')).toEqual([]);
    expect(mergesOf(s.store)).toHaveLength(1);
    // What the child does afterwards is another delivery.
    await using script = await openDeck({ store: s.store, model: s.script([{ text: 'More.' }]) });
    await (await script.session('kid')).run('And?');
    await script.idle();
    expect(mergesOf(s.store)).toHaveLength(2);
  },
);
