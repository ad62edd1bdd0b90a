import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { entryLines, scriptedDeck } from '../support/scripted.ts';

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
  expect(entryLines(home.store.read('main')).slice(1)).toEqual(['user: Hi', 'assistant: Hello.']);
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
  expect(entryLines(home.store.read('main')).slice(4)).toEqual([
    'assistant: One.',
    'user: Two?',
    'assistant: Two.',
    'user: Three?',
    'assistant: Three.',
  ]);
});

test('a steering message is seen by the next step of the run', async () => {
  const { wait, entered, open } = gate();
  await using home = await scriptedDeck([askWait, { text: 'One.' }], { tools: { wait } });
  const main = await home.deck.session('main');
  const run = main.run('Go');
  await entered;
  expect(await main.send('Faster', { mode: 'steer' })).toMatchObject({ state: 'steered' });
  open();
  expect(await run).toMatchObject({ steps: 2, text: 'One.' });
  expect(entryLines(home.store.read('main')).slice(3)).toEqual([
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
  expect(entryLines(home.store.read('main')).slice(2)).toEqual([
    'assistant: [wait c1]',
    'event run/aborted',
    'wait c1 → error-text Outcome unknown: the run was aborted.',
    'user: Stop that',
    'assistant: At once.',
  ]);
});

test('a call that needs approval waits, and is run when it is approved', async () => {
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
