import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { ChatAnswer, ChatRequest } from '../support/provider.ts';
import { entryLines, eventsOf } from '../support/scripted.ts';
import { served } from '../support/served.ts';

const busy = { status: 503, message: 'come again' };
const tooLong = { status: 400, message: "This model's maximum context length is 100 tokens." };
const isSummary = ({ messages }: ChatRequest) =>
  JSON.stringify(messages[0]).includes('You summarise a conversation');
/** What there is a point in summarising. */
const at = (text: string) => `${text}. ${'There is more to say of it. '.repeat(20)}`;
const add = tool({ inputSchema: z.object({}), execute: async () => 3 });

test('a retried call is reported to watchers, and recorded on the tape', async () => {
  await using s = await served((_, index) => (index < 2 ? busy : { text: 'Hi.' }));
  const run = s.main.run('Hi');
  const retrying = (await eventsOf(run)).filter(({ type }) => type === 'retrying');
  expect(retrying).toEqual([
    { type: 'retrying', attempt: 1, message: expect.stringContaining('come again'), delayMs: 1 },
    { type: 'retrying', attempt: 2, message: expect.stringContaining('come again'), delayMs: 1 },
  ]);
  expect(s.lines()).toEqual(['user: Hi', 'event run/retrying', 'event run/retrying', 'assistant: Hi.']);
  expect([...s.store.entries.read('main')][2]?.payload).toMatchObject({ attempt: 1, run: run.id });
});

test('a retry waits for the time that the server names, and an abort ends the wait', async () => {
  await using s = await served(() => ({ ...busy, retryAfterMs: 45_000 }));
  const run = s.main.run('Hi');
  for await (const event of run) {
    if (event.type !== 'retrying') continue;
    expect(event.delayMs).toBe(45_000);
    expect(await s.main.status()).toMatchObject({ state: 'retrying', attempt: 1 });
    run.abort('enough');
  }
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(s.provider.requests).toHaveLength(1);
  expect(s.lines()).toEqual(['user: Hi', 'event run/retrying', 'event run/aborted']);
  expect(await s.main.status()).toMatchObject({ state: 'idle' });
});

test('an answer that has partly arrived is not requested again', async () => {
  await using s = await served((_, index) =>
    index === 0 ? { text: ['So ', 'far'], cut: true } : { text: 'Never.' },
  );
  expect(await s.main.run('Hi')).toMatchObject({ finish: 'error' });
  expect(s.provider.requests).toHaveLength(1);
  expect(s.lines()).toEqual(['user: Hi', 'assistant: So far', 'event run/error']);
});

/** Answers, unless the conversation has more messages than this: then it is too long. */
const upTo =
  (most: number, answer: (request: ChatRequest) => ChatAnswer = () => ({ text: 'Fine.' })) =>
  (request: ChatRequest): ChatAnswer => {
    if (isSummary(request)) return { text: 'They talked.' };
    return request.messages.length > most ? tooLong : answer(request);
  };

test('a conversation that is too long is summarised, and the call is repeated once', async () => {
  await using s = await served(upTo(4));
  await s.main.run(at('One'));
  await s.main.run(at('Two'));
  const run = s.main.run('Three');
  const events = await eventsOf(run);
  expect(await run).toMatchObject({ finish: 'stop', text: 'Fine.' });
  expect(events).toContainEqual(
    expect.objectContaining({ type: 'compacted', seq: 7, range: [1, 5], trigger: 'overflow' }),
  );
  expect(s.lines().slice(4)).toEqual(['user: Three', 'compaction compaction', 'assistant: Fine.']);
  const [compacted] = s.store.entries.read('main', { kind: 'compaction' });
  expect(compacted?.payload).toMatchObject({
    state: { summary: 'They talked.', range: [1, 5], trigger: 'overflow' },
  });
  const last = s.provider.requests.at(-1)?.messages;
  expect(JSON.stringify(last)).toContain('They talked.');
  expect(JSON.stringify(last)).toContain('Three');
  expect(JSON.stringify(last)).not.toContain('Two.');
  // Nothing is removed.
  expect(entryLines(s.store.entries.read('main'))[1]).toContain('user: One');
  expect(s.provider.refusals).toEqual([]);
});

test('a turn that has grown too long is summarised up to its last step', async () => {
  await using s = await served(
    upTo(5, ({ messages }) =>
      messages.length < 5 ? { calls: [{ name: 'add', arguments: {} }] } : { text: 'Enough.' },
    ),
    { tools: { add } },
  );
  expect(await s.main.run('Add')).toMatchObject({ finish: 'stop', text: 'Enough.' });
  const t = await served(
    upTo(4, ({ messages }) =>
      JSON.stringify(messages).includes('They talked.')
        ? { text: 'So.' }
        : { calls: [{ name: 'add', arguments: {} }] },
    ),
    { tools: { add } },
  );
  await using _ = t;
  expect(await t.main.run(at('Add'))).toMatchObject({ finish: 'stop', text: 'So.' });
  expect([...t.store.entries.read('main', { kind: 'compaction' })]).toHaveLength(1);
  expect(t.provider.refusals).toEqual([]);
});

test.each([
  { why: 'what is left is still too long', most: 0, before: 2 },
  { why: 'there is nothing to summarise', most: 0, before: 0 },
])('the error of the model is returned when $why', async ({ most, before }) => {
  let limit = 100;
  await using s = await served((request) => upTo(limit)(request));
  for (let i = 0; i < before; i += 1) await s.main.run(at(`Before ${i}`));
  limit = most;
  const result = await s.main.run('Now');
  expect(result).toMatchObject({ finish: 'error', error: { code: 'SESSION_MODEL_FAILED' } });
  expect(result.error?.message).toContain('maximum context length');
  expect([...s.store.entries.read('main', { kind: 'compaction' })]).toHaveLength(before === 0 ? 0 : 1);
  expect(s.lines().at(-1)).toBe('event run/error');
});

test('when no summary can be made the error of the model is returned, and nothing is summarised', async () => {
  let isFull = false;
  await using s = await served((request) =>
    isSummary(request) ? { status: 401, message: 'no key for you' } : isFull ? tooLong : { text: 'Fine.' },
  );
  await s.main.run(at('One'));
  isFull = true;
  const result = await s.main.run('Two');
  expect(result.error?.message).toContain('maximum context length');
  expect(s.lines()).toEqual([
    `user: ${at('One')}`.trimEnd(),
    'assistant: Fine.',
    'user: Two',
    'event run/error',
  ]);
});

test('a separate model writes the summaries, if the deck names one', async () => {
  await using s = await served(upTo(2), { summarizer: 'openai-compatible/small' });
  await s.main.run(at('One'));
  await s.main.run('Two');
  const asked = s.provider.requests.map((request) => [request.model, isSummary(request)]);
  expect(asked.filter(([, summary]) => summary === true)).toEqual([['small', true]]);
  const [compacted] = s.store.entries.read('main', { kind: 'compaction' });
  expect(compacted?.meta).toMatchObject({ model: 'small' });
});
