import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type SqliteTapeStore, user } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { rawDb } from '../support/raw-db.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';
import { tempHome } from '../support/temp-home.ts';

/** A tool that waits until it is let go, so that a test can act in the midst of a run. */
function gate() {
  const entered = Promise.withResolvers<void>();
  const leave = Promise.withResolvers<string>();
  const wait = tool({
    inputSchema: z.object({}),
    execute: async (_, { abortSignal }) => {
      entered.resolve();
      return await Promise.race([
        leave.promise,
        new Promise<never>((_resolve, reject) =>
          abortSignal?.addEventListener('abort', () => reject(abortSignal.reason)),
        ),
      ]);
    },
  });
  return { wait, entered: entered.promise, open: () => leave.resolve('waited') };
}

const askWait = { toolCalls: [{ name: 'wait', input: {}, id: 'c1' }] };

test('a message to an idle session starts a run', async () => {
  await using home = await scriptedDeck([{ text: 'Hello.' }]);
  const main = await home.deck.session('main');
  const sent = await main.send('Hi', { source: 'user' });
  expect(sent.state).toBe('started');
  expect(await sent.run).toMatchObject({ text: 'Hello.', finish: 'stop' });
  expect(entryLines(home.store.entries.read('main')).slice(1)).toEqual(['user: Hi', 'assistant: Hello.']);
});

test('an item that only another version knows stays in the inbox, and stops no run', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'One.' }, { text: 'Two.' }]));
  home.session('main');
  {
    using store = home.open();
    store.inbox.post('main', { body: { type: 'abort', owner: 'missing', reason: 'none' }, key: 'future' });
  }
  {
    using db = rawDb(home.db);
    expect(db.run(`UPDATE inbox SET body = '{"type":"future"}'`)).toBe(1);
  }
  await using deck = await openDeck({ home: home.path, model: `script:${home.file('answers.json')}` });
  const main = await deck.session('main');
  expect(await main.run('Hi')).toMatchObject({ text: 'One.' });
  const { run } = await main.send('And?');
  expect(await run).toMatchObject({ text: 'Two.' });
  expect((await deck.store.inbox.list('main')).map(({ key }) => key)).toEqual(['future']);
});

test('followups run in order after the run, each seeing the answer before it', async () => {
  const { wait, entered, open } = gate();
  await using home = await scriptedDeck([askWait, { text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }], {
    tools: { wait },
  });
  const main = await home.deck.session('main');
  const first = main.run('Go');
  await entered;
  expect(await main.send('Two?', { mode: 'followup' })).toMatchObject({ state: 'queued' });
  expect(await main.send('Three?', { mode: 'followup' })).toMatchObject({ state: 'queued' });
  open();
  expect(await first).toMatchObject({ text: 'One.' });
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(4)).toEqual([
    'assistant: One.',
    'user: Two?',
    'assistant: Two.',
    'user: Three?',
    'assistant: Three.',
  ]);
});

test('the next step of a run sees a steering message', async () => {
  const { wait, entered, open } = gate();
  await using home = await scriptedDeck([askWait, { text: 'One.' }], { tools: { wait } });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered;
  expect(await main.send('Faster', { mode: 'steer' })).toMatchObject({ state: 'steered' });
  open();
  expect(await run).toMatchObject({ steps: 2, text: 'One.' });
  expect(entryLines(home.store.entries.read('main')).slice(3)).toEqual([
    'wait c1 → text waited',
    'user: Faster',
    'assistant: One.',
  ]);
});

test('an interruption stops the run and starts another', async () => {
  const { wait, entered } = gate();
  await using home = await scriptedDeck([askWait, { text: 'At once.' }], { tools: { wait } });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered;
  expect(await main.send('Stop that', { mode: 'interrupt' })).toMatchObject({ state: 'interrupted' });
  expect(await run).toMatchObject({ finish: 'aborted' });
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(2)).toEqual([
    'assistant: [wait c1]',
    'event run/aborted',
    'wait c1 → error-text Outcome unknown: the run was aborted.',
    'user: Stop that',
    'assistant: At once.',
  ]);
});

test('an interruption does not stop the run that it has started, however long that takes to begin', async () => {
  const { wait, entered } = gate();
  const store = openStore();
  const slow = wrapStore(store, ({ method, args: [ref], act }) => {
    // An owner looks into its inbox several times meanwhile.
    const isLate = method === 'live.read' && store.inbox.list(String(ref)).length > 0;
    return isLate ? sleep(400).then(act) : act();
  });
  await using home = await scriptedDeck([askWait, { text: 'At once.' }], { store: slow, tools: { wait } });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered;
  await main.send('Stop that', { mode: 'interrupt' });
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(await run.following).toMatchObject({ finish: 'stop', text: 'At once.' });
});

test('an interruption that waits for a run is what the next run begins with, however long that takes to begin', async () => {
  const store = openStore();
  const methods: string[] = [];
  const slow = wrapStore(store, ({ method, act }) => {
    methods.push(method);
    // An owner looks into its inbox several times before it knows the session.
    return methods.at(-2) === 'leases.acquire' ? sleep(400).then(act) : act();
  });
  await using home = await scriptedDeck([{ text: 'Hello.' }], { store: slow });
  const main = await home.deck.session('main');
  store.inbox.post('main', { body: { type: 'input', drafts: [user('Hi')] }, mode: 'interrupt' });
  expect(await main.run()).toMatchObject({ finish: 'stop', text: 'Hello.' });
  expect(entryLines(store.entries.read('main')).slice(1)).toEqual(['user: Hi', 'assistant: Hello.']);
});

test('a call that needs approval waits, and runs when it is approved', async () => {
  let paid = 0;
  const pay = tool({
    inputSchema: z.object({}),
    needsApproval: true,
    execute: async () => {
      paid += 1;
      return 'paid';
    },
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'pay', input: {}, id: 'c1' }] }, { text: 'Done.' }],
    { tools: { pay } },
  );
  const main = await home.deck.session('main');
  expect(await main.run('Pay')).toMatchObject({ finish: 'waiting' });
  expect(await main.status()).toMatchObject({
    state: 'waiting',
    waiting: [{ toolCallId: 'c1', for: 'approval' }],
  });
  expect(await main.run()).toMatchObject({ finish: 'waiting', steps: 0 });
  expect(paid).toBe(0);
  const { run } = await main.respond('c1', { approved: true });
  expect(await run).toMatchObject({ finish: 'stop', text: 'Done.' });
  expect(paid).toBe(1);
  expect(await main.status()).toMatchObject({ state: 'idle', waiting: [] });
});

test('two messages sent at once are two turns, and the second sees the answer to the first', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }, { text: 'Two.' }]);
  const main = await home.deck.session('main');
  const [first, second] = await Promise.all([main.send('One?'), main.send('Two?')]);
  expect([first.state, second.state]).toEqual(['started', 'queued']);
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(1)).toEqual([
    'user: One?',
    'assistant: One.',
    'user: Two?',
    'assistant: Two.',
  ]);
});

test('messages in mode collect share one turn after the run', async () => {
  const { wait, entered, open } = gate();
  await using home = await scriptedDeck([askWait, { text: 'One.' }, { text: 'All three.' }], {
    tools: { wait },
  });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered;
  const ids: string[] = [];
  for (const text of ['a', 'b', 'c']) ids.push((await main.send(text, { mode: 'collect' })).id);
  open();
  expect(await run).toMatchObject({ text: 'One.' });
  expect(run.following?.took).toEqual(ids);
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(4)).toEqual([
    'assistant: One.',
    'user: a',
    'user: b',
    'user: c',
    'assistant: All three.',
  ]);
});

test('a steering message at the step limit starts its own run', async () => {
  const { wait, entered, open } = gate();
  await using home = await scriptedDeck([askWait, { text: 'Done.' }], {
    tools: { wait },
    limits: { maxSteps: 1 },
  });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered;
  await main.send('Hurry', { mode: 'steer' });
  open();
  expect(await run).toMatchObject({ finish: 'halted' });
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(4)).toEqual([
    'event run/halted',
    'user: Hurry',
    'assistant: Done.',
  ]);
});

test('interruptions that wait for the same run to stop are answered together', async () => {
  const entered = Promise.withResolvers<void>();
  const leave = Promise.withResolvers<string>();
  const stubborn = tool({
    inputSchema: z.object({}),
    execute: async () => {
      entered.resolve();
      return await leave.promise;
    },
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'stubborn', input: {}, id: 'c1' }] }, { text: 'At once.' }],
    { tools: { stubborn }, limits: { abortGraceMs: 60_000 } },
  );
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered.promise;
  await main.send('Stop', { mode: 'interrupt' });
  await main.send('And think', { mode: 'interrupt' });
  leave.resolve('late');
  expect(await run).toMatchObject({ finish: 'aborted' });
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(-3)).toEqual([
    'user: Stop',
    'user: And think',
    'assistant: At once.',
  ]);
});

test.each(['send', 'run'] as const)(
  'messages behind a failed run wait for the next %s, and keep their order',
  async (how) => {
    const { wait, entered, open } = gate();
    await using home = await scriptedDeck(
      [askWait, { error: 'no luck' }, { text: 'Two.' }, { text: 'Three.' }],
      { tools: { wait } },
    );
    const main = await home.deck.session('main');
    const run = main.run('Go');
    await entered;
    await main.send('Two?');
    open();
    expect(await run).toMatchObject({ finish: 'error' });
    expect(run.following).toBeUndefined();
    await main.idle();
    expect(await main.status()).toMatchObject({ state: 'error', queued: 1 });
    if (how === 'send') expect(await main.send('Three?')).toMatchObject({ state: 'queued' });
    else expect(await main.run()).toMatchObject({ text: 'Two.' });
    await main.idle();
    const expected = ['user: Two?', 'assistant: Two.', 'user: Three?', 'assistant: Three.'];
    expect(entryLines(home.store.entries.read('main')).slice(5)).toEqual(
      how === 'send' ? expected : expected.slice(0, 2),
    );
    expect(await main.status()).toMatchObject({ state: 'idle', queued: 0 });
  },
);

test('the same key sent twice is one message, waiting or on the tape', async () => {
  const { wait, entered, open } = gate();
  await using home = await scriptedDeck([askWait, { text: 'One.' }, { text: 'Two.' }], { tools: { wait } });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered;
  const first = await main.send('Two?', { key: 'k' });
  expect(await main.send('Two?', { key: 'k' })).toEqual(first);
  await expect(main.send('Three?', { key: 'k' })).rejects.toMatchObject({ code: 'TAPE_KEY_CONFLICT' });
  open();
  await run;
  await main.idle();
  expect(await main.send('Two?', { key: 'k' })).toEqual({ id: 'k', state: 'started' });
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(4)).toEqual([
    'assistant: One.',
    'user: Two?',
    'assistant: Two.',
  ]);
});

test('user messages interrupt a manager, those of agents and timers wait for their turn', async () => {
  const { wait, entered } = gate();
  await using home = await scriptedDeck([askWait, { text: 'At once.' }, { text: 'b.' }, { text: 'c.' }], {
    tools: { wait },
  });
  const main = await home.deck.session('main', { kind: 'manager' });
  const run = main.run('Go');
  await entered;
  expect(await main.send('b?', { source: 'agent' })).toMatchObject({ state: 'queued' });
  expect(await main.send('c?', { source: 'timer' })).toMatchObject({ state: 'queued' });
  expect(await main.send('Now', { source: 'user' })).toMatchObject({ state: 'interrupted' });
  expect(await run).toMatchObject({ finish: 'aborted' });
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(-6)).toEqual([
    'user: Now',
    'assistant: At once.',
    'user: b?',
    'assistant: b.',
    'user: c?',
    'assistant: c.',
  ]);
});

test('a run is refused during another run, by whatever handle and deck', async () => {
  const { wait, entered, open } = gate();
  await using home = await scriptedDeck([askWait, { text: 'One.' }], { tools: { wait } });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered;
  const same = await home.deck.session('main');
  await expect(same.run('Me too')).rejects.toMatchObject({ code: 'SESSION_BUSY', data: { run: run.id } });
  await using other = await scriptedDeck([], { store: home.store });
  await expect((await other.deck.session('main')).run('Me too')).rejects.toMatchObject({
    code: 'SESSION_BUSY',
    data: { owner: { pid: process.pid } },
  });
  open();
  expect(await run).toMatchObject({ finish: 'stop' });
  expect(entryLines(home.store.entries.read('main'))).not.toContain('user: Me too');
});

test('without a model a message waits, whatever its mode, and a run without input takes it', async () => {
  await using home = await scriptedDeck([{ text: 'Hello.' }]);
  const without = await openDeck({ store: home.store });
  const sent = await (await without.session('main')).send('Hi', { mode: 'steer' });
  expect(sent.state).toBe('queued');
  const main = await home.deck.session('main');
  expect(await main.status()).toMatchObject({ state: 'idle', queued: 1 });
  const run = main.run();
  expect(await run).toMatchObject({ text: 'Hello.', steps: 1 });
  expect(run.took).toEqual([sent.id]);
  expect(entryLines(home.store.entries.read('main')).slice(1)).toEqual(['user: Hi', 'assistant: Hello.']);
});

test('closing a deck stops its run, and leaves the inbox as it is', async () => {
  const { wait, entered } = gate();
  await using home = await scriptedDeck([askWait, { text: 'One.' }], { tools: { wait } });
  const deck = await openDeck({ store: home.store, model: home.spec, tools: { wait } });
  const main = await deck.session('main');
  const run = main.run('Go');
  await entered;
  await main.send('Later');
  await deck[Symbol.asyncDispose]();
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(home.store.inbox.list('main')).toHaveLength(1);
  expect(home.store.leases.list()).toEqual([]);
});

test('a closed deck runs nothing, and a message sent through it waits for another', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }]);
  const deck = await openDeck({ store: home.store, model: home.spec });
  const main = await deck.session('main');
  await deck[Symbol.asyncDispose]();
  for (const session of [main, await deck.session('other')]) {
    await expect(session.run('Now')).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
    expect(await session.send('Later')).toMatchObject({ state: 'queued' });
  }
  expect(home.store.leases.list()).toEqual([]);
  expect(await (await home.deck.session('main')).run()).toMatchObject({ text: 'One.' });
});

/** A store that does something once, right before or right after the first lease is given back. */
function aroundRelease(store: SqliteTapeStore, when: 'before' | 'after', act: () => void): SqliteTapeStore {
  let armed = true;
  const once = (now: 'before' | 'after') => {
    if (!armed || now !== when) return;
    armed = false;
    act();
  };
  return wrapStore(store, ({ method, act }) => {
    if (method === 'leases.release') once('before');
    const answer = act();
    if (method === 'leases.release') once('after');
    return answer;
  });
}

test.each([
  { ending: 'well', mode: 'queue' },
  { ending: 'well', mode: 'interrupt' },
  { ending: 'badly', mode: 'interrupt' },
] as const)(
  'a message ($mode) that another process posts while a run that ended $ending releases its lease is answered',
  async ({ ending, mode }) => {
    await using inner = await scriptedDeck([]);
    const post = () =>
      void inner.store.inbox.post('main', {
        body: { type: 'input', drafts: [user('Now')] },
        mode,
        source: 'user',
      });
    const model = inner.script([
      ending === 'well' ? { text: 'One.' } : { error: 'no luck' },
      { text: 'Two.' },
    ]);
    await using deck = await openDeck({ store: aroundRelease(inner.store, 'before', post), model });
    const main = await deck.session('main');
    await main.run('Go');
    await main.idle();
    expect(entryLines(inner.store.entries.read('main')).slice(-2)).toEqual(['user: Now', 'assistant: Two.']);
    expect(inner.store.leases.list()).toEqual([]);
  },
);

test.each(['well', 'badly'])(
  'a message sent in this process after a run that ended %s released its lease is answered',
  async (ending) => {
    await using inner = await scriptedDeck([]);
    const model = inner.script([
      ending === 'well' ? { text: 'One.' } : { error: 'no luck' },
      { text: 'Two.' },
    ]);
    let sent: Promise<unknown> | undefined;
    const store = aroundRelease(inner.store, 'after', () => {
      sent = main.send('Now');
    });
    await using deck = await openDeck({ store, model });
    const main = await deck.session('main');
    await main.run('Go');
    await sent;
    await main.idle();
    expect(entryLines(inner.store.entries.read('main')).slice(-2)).toEqual(['user: Now', 'assistant: Two.']);
    expect(inner.store.inbox.list('main')).toEqual([]);
  },
);

test('a session can be run again as soon as its run has resolved', async () => {
  const rounds = 50;
  await using home = await scriptedDeck(Array.from({ length: rounds }, (_, i) => ({ text: `${i}.` })));
  const main = await home.deck.session('main');
  for (let i = 0; i < rounds; i += 1) expect(await main.run('On')).toMatchObject({ text: `${i}.` });
  expect(await main.status()).toMatchObject({ state: 'idle' });
});

test('a deck that lacks the tool answers a denied call, and leaves a pending call pending', async () => {
  const pay = tool({ inputSchema: z.object({}), needsApproval: true, execute: async () => 'paid' });
  const ask = { toolCalls: [{ name: 'pay', input: {}, id: 'c1' }] };
  await using home = await scriptedDeck([ask, { text: 'Then not.' }], { tools: { pay } });
  await (await home.deck.session('main')).run('Pay');
  await using bare = await openDeck({ store: home.store, model: home.spec });
  const main = await bare.session('main');
  expect(await main.run()).toMatchObject({ finish: 'waiting', steps: 0 });
  const { run } = await main.respond('c1', { approved: false, reason: 'too much' });
  expect(await run).toMatchObject({ finish: 'stop', text: 'Then not.' });
  expect(entryLines(home.store.entries.read('main')).at(-2)).toBe('pay c1 → execution-denied undefined');
});
