import type { DeckConfig, DeckTools } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { isObject } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { entryLines, eventsOf, scriptedDeck } from '../support/scripted.ts';

const call = (id: string, name: string, input: object = {}) => ({ id, name, input });
const together = { _parallel: true };

/**
 * A session with tools that note their calls: `pay` needs approval, `ask` is answered by a client, `look` is simply
 * run.
 */
async function shop(toolCalls: NonNullable<ScriptAnswer['toolCalls']>, config: DeckConfig = {}) {
  const ran: string[] = [];
  const inputSchema = z.strictObject({ to: z.string().optional() });
  const execute = async (_: unknown, { toolCallId }: { toolCallId: string }) => {
    ran.push(toolCallId);
    return `did ${toolCallId}`;
  };
  const tools: DeckTools = {
    look: tool({ inputSchema, execute }),
    pay: tool({ inputSchema, needsApproval: true, execute }),
    ask: tool({ inputSchema }),
  };
  const home = await scriptedDeck([{ toolCalls }, { text: 'Done.' }, { text: 'Well.' }], {
    tools,
    ...config,
  });
  const main = await home.deck.session('main');
  return {
    ...home,
    ran,
    main,
    tools,
    /** Everything after the answer that made the calls. */
    lines: () => entryLines(home.store.entries.read('main')).slice(3),
    waiting: async () => (await main.status()).waiting.map((one) => `${one.toolCallId} ${one.for}`),
    models: () =>
      [...home.store.entries.read('main', { kind: 'message' })].filter(
        ({ meta }) => meta.provider === 'script',
      ).length,
  };
}

const noCall = { code: 'SESSION_NO_CALL' };

test('in turn, a pending call blocks those after it, and all run once it is answered', async () => {
  await using s = await shop([call('c1', 'look'), call('c2', 'pay'), call('c3', 'look'), call('c4', 'pay')]);
  const run = s.main.run('Buy');
  expect(await run).toMatchObject({ finish: 'waiting', steps: 1 });
  expect(s.ran).toEqual(['c1']);
  expect(await s.waiting()).toEqual(['c2 approval']);
  expect(await eventsOf(run)).toContainEqual({
    type: 'tool-waiting',
    calls: [
      {
        toolCallId: 'c2',
        name: 'pay',
        input: {},
        for: 'approval',
        claims: ['pay', 'opaque(pay)'],
        offers: ['pay'],
      },
    ],
  });
  await expect(s.main.respond('c4', { approved: true })).rejects.toMatchObject(noCall);
  expect(await (await s.main.respond('c2', { approved: true })).run).toMatchObject({
    finish: 'waiting',
    steps: 0,
  });
  expect(s.ran).toEqual(['c1', 'c2', 'c3']);
  expect(await s.waiting()).toEqual(['c4 approval']);
  expect(await (await s.main.respond('c4', { approved: true })).run).toMatchObject({
    finish: 'stop',
    text: 'Done.',
  });
  expect(s.ran).toEqual(['c1', 'c2', 'c3', 'c4']);
  expect(await s.waiting()).toEqual([]);
});

test('side by side, only calls that need an answer wait, and they are answered in any order', async () => {
  await using s = await shop([
    call('c1', 'pay', together),
    call('c2', 'look'),
    call('c3', 'ask'),
    call('c4', 'pay'),
  ]);
  expect(await s.main.run('Buy')).toMatchObject({ finish: 'waiting' });
  expect(s.ran).toEqual(['c2']);
  expect(await s.waiting()).toEqual(['c1 approval', 'c3 result', 'c4 approval']);
  expect(await (await s.main.respond('c4', { approved: true })).run).toMatchObject({ finish: 'waiting' });
  expect(s.ran).toEqual(['c2', 'c4']);
  expect(await (await s.main.respond('c3', { output: 'blue' })).run).toMatchObject({ finish: 'waiting' });
  expect(await s.waiting()).toEqual(['c1 approval']);
  expect(await (await s.main.respond('c1', { approved: true })).run).toMatchObject({ finish: 'stop' });
  expect(s.ran).toEqual(['c2', 'c4', 'c1']);
  expect(
    s
      .lines()
      .filter((line) => line.includes('→'))
      .sort(),
  ).toEqual(['ask c3 → text blue', 'look c2 → text did c2', 'pay c1 → text did c1', 'pay c4 → text did c4']);
});

test('several concurrent answers all count, and the model is called once', async () => {
  await using s = await shop([call('c1', 'pay', together), call('c2', 'pay'), call('c3', 'ask')]);
  await s.main.run('Buy');
  const sent = await Promise.all([
    s.main.respond('c1', { approved: true }),
    s.main.respond('c2', { approved: true }),
    s.main.respond('c3', { output: { color: 'blue' } }),
  ]);
  expect(sent.map(({ state }) => state).filter((state) => state === 'started').length).toBeGreaterThan(0);
  await s.main.idle();
  expect([...s.ran].sort()).toEqual(['c1', 'c2']);
  expect(s.lines().at(-1)).toBe('assistant: Done.');
  expect(s.models()).toBe(2);
});

test('a denied call does not run, and the model receives the reason', async () => {
  await using s = await shop([call('c1', 'pay', together), call('c2', 'ask')]);
  await s.main.run('Buy');
  await (await s.main.respond('c1', { approved: false, reason: 'too dear' })).run;
  await (await s.main.respond('c2', { approved: false, reason: 'no time' })).run;
  expect(s.ran).toEqual([]);
  const denied = [...s.store.entries.read('main', { kind: 'tool-result' })].map(({ payload, meta }) => [
    isObject(payload) && payload.output,
    meta.paths ?? null,
  ]);
  expect(denied).toEqual([
    [
      { type: 'execution-denied', reason: 'too dear' },
      { read: [], write: [] },
    ],
    [
      { type: 'execution-denied', reason: 'no time' },
      { read: [], write: [] },
    ],
  ]);
  expect(s.lines().at(-1)).toBe('assistant: Done.');
});

test('a call is answered once: a second answer, one of the wrong kind and one to no call are refused', async () => {
  await using s = await shop([call('c1', 'pay', together), call('c2', 'ask')]);
  await s.main.run('Buy');
  await expect(s.main.respond('c9', { approved: true })).rejects.toMatchObject(noCall);
  await expect(s.main.respond('c1', { output: 'paid' })).rejects.toMatchObject(noCall);
  const first = s.main.respond('c1', { approved: true });
  const second = s.main.respond('c1', { approved: false });
  expect((await Promise.allSettled([first, second])).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
  ]);
  await expect(second).rejects.toMatchObject(noCall);
  await s.main.idle();
  await expect(s.main.respond('c1', { approved: true })).rejects.toMatchObject(noCall);
  expect(s.ran).toEqual(['c1']);
  // A call that a client answers cannot be approved: it lacks a result.
  await expect(s.main.respond('c2', { approved: true })).rejects.toMatchObject(noCall);
  expect(await s.waiting()).toEqual(['c2 result']);
  expect(await (await s.main.respond('c2', { output: null })).run).toMatchObject({ text: 'Done.' });
  expect(s.lines()).toContain('ask c2 → json null');
});

test('other input closes pending calls, which no one else will answer', async () => {
  await using s = await shop([call('c1', 'pay', together), call('c2', 'ask'), call('c3', 'look')]);
  await s.main.run('Buy');
  const events = await Array.fromAsync(s.main.run('Never mind'));
  expect(events.at(-1)).toMatchObject({ type: 'session-completed', finish: 'stop' });
  expect(events.slice(0, 2)).toEqual([
    expect.objectContaining({ type: 'run-started' }),
    {
      type: 'superseded',
      calls: [
        { toolCallId: 'c1', name: 'pay' },
        { toolCallId: 'c2', name: 'ask' },
      ],
    },
  ]);
  expect(s.ran).toEqual(['c3']);
  const outputs = [...s.store.entries.read('main', { kind: 'tool-result' })].map(({ payload, meta }) => [
    isObject(payload) && payload.toolCallId,
    isObject(payload) && isObject(payload.output) && payload.output.reason,
    meta.source,
  ]);
  expect(outputs.slice(1)).toEqual([
    ['c1', 'superseded', 'repair'],
    ['c2', 'superseded', 'repair'],
  ]);
  expect(s.lines().slice(-2)).toEqual(['user: Never mind', 'assistant: Done.']);
  await expect(s.main.respond('c1', { approved: true })).rejects.toMatchObject(noCall);
});

test('a run with pending calls makes no model call', async () => {
  await using s = await shop([call('c1', 'pay')]);
  await s.main.run('Buy');
  expect(await s.main.run()).toMatchObject({ finish: 'waiting', steps: 0 });
  expect(s.models()).toBe(1);
  expect(await s.waiting()).toEqual(['c1 approval']);
});

test('invalid arguments are an error for the model, and need no approval', async () => {
  const asked: unknown[] = [];
  await using s = await shop(
    [call('c1', 'pay', { to: 7 }), call('c2', 'ask', { to: 7 })].map((c) => ({
      ...c,
      input: { ...c.input, ...together },
    })),
    {
      onApproval: (request) => {
        asked.push(request);
        return { approved: true };
      },
    },
  );
  expect(await s.main.run('Buy')).toMatchObject({ finish: 'stop', text: 'Done.' });
  expect([asked, s.ran]).toEqual([[], []]);
  expect(s.lines().filter((line) => line.includes('error-text'))).toHaveLength(2);
});

test('the deck’s approval function decides, and its decision is recorded before the call runs', async () => {
  const asked: unknown[] = [];
  await using s = await shop([call('c1', 'pay', { to: 'ann' }), call('c2', 'pay')], {
    onApproval: async (request) => {
      asked.push(request);
      return request.toolCallId === 'c1' ? { approved: true, reason: 'it is ann' } : { approved: false };
    },
  });
  expect(await s.main.run('Buy')).toMatchObject({ finish: 'stop' });
  expect(s.ran).toEqual(['c1']);
  expect(asked[0]).toEqual({
    session: 'main',
    toolCallId: 'c1',
    toolName: 'pay',
    input: { to: 'ann' },
    claims: ['pay', 'opaque(pay)'],
    offers: ['pay'],
  });
  expect(s.lines()).toEqual([
    'event call/answered',
    'pay c1 → text did c1',
    'event call/answered',
    'pay c2 → execution-denied undefined',
    'assistant: Done.',
  ]);
  const decisions = [...s.store.entries.read('main', { kind: 'event' })].map(({ payload }) => payload);
  expect(decisions).toEqual([
    { toolCallId: 'c1', approved: true, reason: 'it is ann' },
    { toolCallId: 'c2', approved: false },
  ]);
});

test.each([
  {
    who: 'throws',
    reason: 'no person is there',
    onApproval: () => Promise.reject(new Error('no person is there')),
  },
  { who: 'answers nonsense', reason: 'denied', onApproval: () => 'sure' as never },
])('a call is not run when the approval function $who', async ({ reason, onApproval }) => {
  await using s = await shop([call('c1', 'pay')], { onApproval });
  expect(await s.main.run('Buy')).toMatchObject({ finish: 'stop' });
  expect(s.ran).toEqual([]);
  const [result] = s.store.entries.read('main', { kind: 'tool-result' });
  expect(result?.payload).toMatchObject({ output: { type: 'execution-denied', reason } });
});

test('an approval without a decision leaves the call pending, and an abort does not wait for it', async () => {
  await using s = await shop([call('c1', 'pay')], { onApproval: () => undefined });
  expect(await s.main.run('Buy')).toMatchObject({ finish: 'waiting' });
  const asked = Promise.withResolvers<void>();
  await using t = await shop([call('c1', 'pay')], {
    onApproval: () => {
      asked.resolve();
      return new Promise<never>(() => {});
    },
  });
  const run = t.main.run('Buy');
  await asked.promise;
  run.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect([t.ran, [...t.store.entries.read('main')].at(-1)?.payload]).toMatchObject([[], { unbegun: ['c1'] }]);
});

test('a child with a pending call is still running, and is merged after the answer', async () => {
  await using s = await shop([call('c1', 'pay')]);
  const [outcome] = await s.main.delegate({ task: 'Buy', name: 'kid' });
  expect(outcome).toMatchObject({ session: 'kid', status: 'running', merged: undefined });
  expect(s.store.sessions.find('kid')).toMatchObject({ task: 'running' });
  const kid = await s.deck.session('kid');
  expect(await kid.status()).toMatchObject({ state: 'waiting', task: 'running' });
  const { run } = await kid.respond('c1', { approved: true });
  expect(await run).toMatchObject({ finish: 'stop', text: 'Done.' });
  await expect.poll(() => s.store.sessions.find('kid')?.delivery).toBe('merged');
  expect(await s.deck.recover()).toMatchObject({ merged: [], resumed: [], failed: [] });
  expect(s.store.sessions.find('kid')).toMatchObject({ task: 'completed', delivery: 'merged' });
  expect(s.ran).toEqual(['c1']);
});

test('an answer that comes when no call waits is refused, and calls no model', async () => {
  await using s = await shop([call('c1', 'pay')]);
  await s.main.run('Buy');
  await (await s.main.respond('c1', { approved: true })).run;
  const models = s.models();
  const body = { type: 'answer', toolCallId: 'c1', answer: { approved: true } } as const;
  s.store.inbox.post('main', { body, key: 'another process' });
  expect(await s.main.run()).toMatchObject({ finish: 'stop', steps: 0, nothingToContinue: true });
  expect(s.models()).toBe(models);
  expect(s.lines().at(-1)).toBe('event inbox/refused');
  expect(s.store.inbox.list('main')).toEqual([]);
});

test.each([
  ['a denial after an approval', { approved: false }, false],
  ['another reason', { approved: true, reason: 'sure' }, false],
  ['the same approval again', { approved: true }, true],
])(
  'an answer that another one overtakes is refused, unless it is the same: %s',
  async (_, answer, isTaken) => {
    await using s = await shop([call('c1', 'pay')]);
    await s.main.run('Buy');
    const late = wrapStore(s.store, ({ method, act }) => {
      if (method !== 'inbox.post') return act();
      return (async () => {
        await (await s.main.respond('c1', { approved: true })).run;
        return act();
      })();
    });
    await using other = await openDeck({ store: late, model: s.spec, tools: s.tools });
    const responding = (await other.session('main')).respond('c1', answer, { start: false });
    if (isTaken) expect(await responding).toMatchObject({ state: 'queued' });
    else
      await expect(responding).rejects.toMatchObject({
        ...noCall,
        message: expect.stringContaining('different'),
      });
    expect(s.ran).toEqual(['c1']);
    expect(s.models()).toBe(2);
    expect(s.store.inbox.list('main')).toHaveLength(isTaken ? 1 : 0);
  },
);
