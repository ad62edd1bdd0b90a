import { audit, type CompactionPolicy, type Usage } from '@tapedeck/runtime';
import { compaction, type JsonObject, type SessionInfo, TapeError, user } from '@tapedeck/tape';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import { isObject } from '@tapedeck/tape/internal';
import { afterEach, describe, expect, test } from 'vitest';
import type { ChatAnswer, ChatRequest } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import type { Served } from '../support/served.ts';
import { atFullSize } from '../support/size.ts';
import { form, long, serving, stateOf, summaries, talk, windows } from '../support/summarised.ts';

afterEach(() => onCrashPoint(undefined));

/** The sessions in which summaries were written, the oldest first. */
const summarizers = ({ store }: Served, of = 'main'): readonly SessionInfo[] =>
  store.sessions.list({ parent: of, kind: 'summarizer', all: true });
/** The n-th of them, from 0. */
const summarizer = (s: Served, n = 0, of = 'main'): SessionInfo => {
  const found = summarizers(s, of)[n];
  if (found === undefined) throw new Error(`'${of}' has no summarizer ${n}`);
  return found;
};
const own = ({ store }: Served, { id }: SessionInfo) => entryLines(store.entries.read(id, { own: true }));
const payloads = ({ store }: Served, { id }: SessionInfo, name: string): JsonObject[] =>
  [...store.entries.read(id, { own: true, name })].flatMap(({ payload }) =>
    isObject(payload) ? [payload] : [],
  );
const tokens = (input: number, output: number): Usage => ({
  input,
  output,
  reasoning: 0,
  cacheRead: 0,
  cacheWrite: 0,
});
const took = { usage: [700, 50] as const };
const full = { windows, answer: () => ({ text: 'Fine.', usage: [95_000, 10] as const }) };

test('a summary has its own session, which inherits the text and contains request and answer', async () => {
  await using s = await serving({
    summarizer: 'openai-compatible/small',
    summary: (_, i) => ({ text: `${form}\nSummary ${i + 1}.`, ...took }),
    cost: ({ output }) => output / 100,
  });
  talk(s);
  const before = [...s.store.entries.read('main')];
  const made = await s.main.compact({ focus: 'the failing test' });
  const first = summarizer(s);
  expect(first).toMatchObject({
    session: made?.summarizer,
    kind: 'summarizer',
    ephemeral: true,
    task: 'completed',
    title: 'Summary of main@1-3',
    floor: 0,
    base: 3,
    settled: first.head,
  });
  // Nothing of the session is copied, or changed.
  expect([...s.store.entries.read('main')].slice(0, before.length)).toEqual(before);
  expect(own(s, first)).toEqual([
    'anchor fork/start',
    'anchor intention',
    'event summary/asked',
    `assistant: ${form}\nSummary 1.`,
  ]);
  const [asked] = payloads(s, first, 'summary/asked');
  const prompt = expect.stringMatching(/^[0-9a-f]{64}$/);
  expect(asked).toEqual({
    trigger: 'manual',
    focus: 'the failing test',
    view: expect.objectContaining({ policy: 'last-boundary', head: 7, in: [[1, 7]], out: [] }),
    reduction: 'none',
    calls: [{ prompt, reduction: 'none' }],
  });
  const [answer] = s.store.entries.read(first.id, { own: true, kind: 'message' });
  expect(answer?.meta).toMatchObject({
    provider: 'openai-compatible.chat',
    model: 'small',
    response: expect.any(String),
    usage: tokens(700, 50),
    cost: 0.5,
  });
  // The entry cites it, and has no usage of its own that would be counted twice.
  const [entry] = summaries(s);
  expect(stateOf(entry).summarizer).toEqual({ session: first.session, id: first.id, head: first.headHash });
  expect(entry?.meta).toEqual({
    provider: 'openai-compatible.chat',
    model: 'small',
    response: answer?.meta.response,
  });
  const shown = (await (await s.deck.find(first.id))?.view())?.messages.map(({ role }) => role);
  expect(shown).toEqual(['user', 'assistant', 'user', 'assistant']);
  const lines = [...s.store.lineage.read({ session: first.id })];
  expect(lines).toMatchObject([{ type: 'fork', range: [1, 3], status: 'completed', task: 'completed' }]);

  // The next one reads what came after, and brings this one up to date.
  talk(s);
  await s.main.compact();
  const second = summarizer(s, 1);
  expect(payloads(s, second, 'summary/asked')).toMatchObject([{ trigger: 'manual', previous: entry?.seq }]);
  expect(stateOf(summaries(s)[1]).range).toEqual([1, second.base]);
  expect([second.floor, second.base]).toEqual([3, stateOf(summaries(s)[1]).summarized_through]);
  const seen = JSON.stringify((await (await s.deck.find(second.id))?.view())?.messages);
  expect(seen).toContain('Summary 1.');
  expect(seen).toContain('Summary 2.');
  expect(seen).not.toContain('Question 1 and so on and so on and so on. ');
});

test('a summary in a run names the run; a summary without a model call has no session', async () => {
  await using s = await serving(full);
  talk(s, 4);
  await s.main.run('Hi');
  expect(summarizers(s)).toEqual([]);
  const { run } = await s.main.run('Go');
  const written = summarizer(s);
  const [start] = s.store.entries.read(written.id, { own: true });
  expect(start?.payload).toMatchObject({ terms: { run }, range: [1, 9] });
  expect(payloads(s, written, 'summary/asked')).toMatchObject([{ trigger: 'threshold' }]);
  await s.main.compact({ prune: true });
  s.store.entries.append('main', [compaction({ summary: 'My own.', range: [1, 2] })]);
  expect(summarizers(s)).toHaveLength(1);
});

test('a compaction that makes no request records nothing', async () => {
  await using s = await serving({
    windows: { 'test-model': { window: 300 } },
    compaction: { smartRecovery: false },
  });
  talk(s);
  await expect(s.main.compact()).rejects.toMatchObject({ code: 'SESSION_COMPACTION_FAILED' });
  expect(s.provider.requests).toEqual([]);
  expect(summarizers(s)).toEqual([]);
});

test('audit, recovery, status, limits and rewind ignore the session of a summary', async () => {
  await using s = await serving({ ...full, limits: { maxChildren: 1, maxDepth: 1 } });
  talk(s);
  await s.main.run('Hi');
  await s.main.run('Go');
  const [written] = summarizers(s);
  expect(await audit(s.store)).toEqual({ sessions: 2, findings: [] });
  expect(await s.deck.recover()).toMatchObject({ resumed: [], merged: [], failed: [] });
  expect(await s.main.status()).not.toHaveProperty('children');
  expect(s.store.sessions.list().map(({ session: name }) => name)).toEqual(['main']);
  await using child = await s.main.fork({ onUnmerged: 'keep' });
  expect(child.name).not.toBe(written?.session);
  expect((await s.main.rewind(2)).forks).toEqual([child.name]);
  expect([...s.store.verify()]).toEqual([]);
});

describe('usage of a summary', () => {
  test("counts once: in the run, beside the session's own calls, and in its tree", async () => {
    await using s = await serving({ ...full, summary: () => ({ text: form, ...took }), cost: () => 1 });
    talk(s);
    const first = await s.main.run('Hi');
    const second = await s.main.run('Go');
    expect(first.usage).toEqual(tokens(95_000, 10));
    expect(second).toMatchObject({ steps: 1, usage: tokens(95_700, 60) });
    const usage = await s.main.usage({ tree: true });
    expect(usage).toMatchObject({
      steps: 2,
      total: 190_020,
      cost: 2,
      models: [{ model: 'test-model', steps: 2 }],
      summaries: { steps: 1, usage: tokens(700, 50), total: 750, cost: 1 },
      children: [{ session: summarizers(s)[0]?.session, steps: 1, total: 750, cost: 1 }],
      tree: { steps: 3, total: 190_770, cost: 3 },
    });
  });

  test('is recorded for each answer of a summary in pieces', async () => {
    await using s = await serving({
      compaction: { smartRecovery: { pruneToolOutputs: false, dropMiddle: false } },
      summary: (request, i) =>
        JSON.stringify(request.messages).length > 25_000
          ? { overflow: true }
          : { text: `${form}\nPart ${i}.`, ...took },
    });
    talk(s, 12);
    await s.main.compact();
    const written = summarizer(s);
    const answers = [...s.store.entries.read(written.id, { own: true, kind: 'message' })];
    expect(answers.length).toBeGreaterThan(1);
    const [asked] = payloads(s, written, 'summary/asked');
    expect(asked).toMatchObject({
      reduction: 'chunked',
      calls: [
        { reduction: 'none', failure: expect.any(String) },
        ...answers.map(() => ({ reduction: 'chunked' })),
      ],
    });
    expect((await s.main.usage()).summaries).toMatchObject({
      steps: answers.length,
      total: 750 * answers.length,
    });
    expect(stateOf(summaries(s)[0])).toMatchObject({
      summarization_input_tokens: 700 * answers.length,
      summarization_output_tokens: 50 * answers.length,
    });
  });

  test('counts toward the budget of the session, and toward that of its tree, once', async () => {
    for (const budgets of [{ budget: { steps: 3 } }, { treeBudget: { steps: 3 } }]) {
      await using s = await serving(full);
      talk(s);
      await using child = await s.main.fork({ name: 'kid', onUnmerged: 'keep', ...budgets });
      expect(await child.run('Hi')).toMatchObject({ finish: 'stop' });
      expect(await child.run('Go')).toMatchObject({ finish: 'stop' });
      expect(summarizers(s, 'kid')).toHaveLength(1);
      expect(await child.run('More')).toMatchObject({ finish: 'halted' });
      const [halted] = [...s.store.entries.read('kid', { own: true, name: 'run/halted' })];
      expect(halted?.payload).toMatchObject({ message: expect.stringContaining('are used up: 3 of 3') });
    }
  });

  test('before a run with a smaller model counts, also when that model is still too small', async () => {
    const answer = ({ messages }: ChatRequest): ChatAnswer => ({
      text: 'Fine.',
      usage: [Math.ceil(JSON.stringify(messages).length / 4), 5],
    });
    await using s = await serving({
      answer,
      summary: () => ({ text: form, ...took }),
      model: 'openai-compatible/large',
      windows: {
        large: { window: 100_000 },
        small: { window: 8_000, maxOutput: 1_000 },
        tiny: { window: 30 },
      },
    });
    talk(s, 20);
    await s.main.run('Hi');
    const { run } = await s.main.send('Go', { model: 'openai-compatible/tiny' });
    expect(await run).toMatchObject({ finish: 'error', steps: 0, usage: tokens(700, 50) });
    expect(summarizers(s)).toMatchObject([{ task: 'failed' }]);
    const fitted = await s.main.run('Go', { model: 'openai-compatible/small' });
    expect(fitted).toMatchObject({ finish: 'stop', steps: 1 });
    expect(fitted.usage.output).toBe(55);
    expect(summarizers(s)).toMatchObject([{ task: 'failed' }, { task: 'completed' }]);
  });
});

describe('a summarizer that fails', () => {
  const none = { steps: 0, total: 0 };
  const once = { steps: 1, total: 750 };

  test.each<{
    what: string;
    summary: ChatAnswer;
    policy?: CompactionPolicy;
    why: string;
    answers: number;
    usage: object;
  }>([
    {
      what: 'says nothing',
      summary: { text: ' \n', ...took },
      why: 'returned no text',
      answers: 1,
      usage: once,
    },
    {
      what: 'says more than there was',
      summary: { text: long('More', 20_000), ...took },
      why: 'is not smaller',
      answers: 1,
      usage: once,
    },
    {
      what: 'never answers',
      summary: { text: 'So', hang: true },
      policy: { summary: { timeoutMs: 100 } },
      why: 'no answer within 100 ms',
      answers: 0,
      usage: none,
    },
    {
      what: 'stays busy',
      summary: { status: 503, message: 'come again' },
      why: 'come again',
      answers: 0,
      usage: none,
    },
    {
      what: 'calls tools that it was not given',
      summary: { calls: [{ id: 'c1', name: 'add', arguments: {} }], ...took },
      why: 'returned no text',
      answers: 1,
      usage: once,
    },
  ])('and $what: the error says so, and its usage counts', async ({ summary, policy = {}, ...expected }) => {
    await using s = await serving({ ...full, summary: () => summary, compaction: policy });
    talk(s);
    const before = s.lines();
    const failing = s.main.compact();
    await expect(failing).rejects.toMatchObject({
      code: 'SESSION_COMPACTION_FAILED',
      message: expect.stringContaining(expected.why),
      data: { session: 'main', summarizer: expect.any(String) },
    });
    expect(s.lines()).toEqual(before);
    const byHand = summarizer(s);
    expect(byHand).toMatchObject({ task: 'failed', settled: byHand.head });
    expect([...s.store.entries.read(byHand.id, { own: true, kind: 'message' })]).toHaveLength(
      expected.answers,
    );
    expect(payloads(s, byHand, 'summary/failed')).toEqual([
      { message: expect.stringContaining(expected.why) },
    ]);
    expect((await s.main.usage()).summaries).toMatchObject(expected.usage);
    // A run continues without a summary, and counts the tokens of the failed attempt.
    await s.main.run('Hi');
    const run = await s.main.run('Go');
    expect(run).toMatchObject({ finish: 'stop', text: 'Fine.' });
    expect(run.usage).toEqual(expected.answers === 0 ? tokens(95_000, 10) : tokens(95_700, 60));
    const inRun = summarizers(s)[1];
    expect(
      [...s.store.entries.read('main', { name: 'context/not-compacted' })].at(-1)?.payload,
    ).toMatchObject({
      summarizer: { session: inRun?.session, id: inRun?.id, head: inRun?.headHash },
    });
    expect(inRun?.task).toBe('failed');
    expect((await audit(s.store)).findings).toEqual([]);
  });

  test('by writing prose is accepted, and its task completed', async () => {
    await using s = await serving({ summary: () => ({ text: 'They talked.', ...took }) });
    talk(s);
    await s.main.compact();
    expect(summarizers(s)).toMatchObject([{ task: 'completed' }]);
    expect((await s.main.usage()).summaries).toMatchObject(once);
  });

  test('and answers after one refusal: both requests are recorded', async () => {
    const summary = (_: ChatRequest, i: number): ChatAnswer =>
      i === 0 ? { status: 503, message: 'come again' } : { text: form, ...took };
    await using s = await serving({ summary });
    talk(s);
    await s.main.compact();
    const written = summarizer(s);
    const [asked] = payloads(s, written, 'summary/asked');
    const prompt = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(asked?.calls).toEqual([
      { prompt, reduction: 'none', failure: 'come again' },
      { prompt, reduction: 'none' },
    ]);
  });

  test.runIf(atFullSize)('by exceeding the size of an entry leaves its usage', async () => {
    await using s = await serving({
      summary: () => ({ text: 'x'.repeat(17 * 2 ** 20), ...took }),
    });
    talk(s);
    await expect(s.main.compact()).rejects.toMatchObject({ code: 'SESSION_COMPACTION_FAILED' });
    const written = summarizer(s);
    const [answer] = s.store.entries.read(written.id, { own: true, kind: 'message' });
    expect(answer).toMatchObject({
      payload: { role: 'assistant', content: [] },
      meta: { content_left_out: true, usage: tokens(700, 50) },
    });
  });

  test('because it is aborted is recorded as aborted, by hand and in a run', async () => {
    await using s = await serving({ ...full, summary: () => ({ text: form, hang: true }) });
    talk(s);
    const until = async (count: number) => {
      while (s.asked().length < count) await new Promise((done) => setTimeout(done, 5));
    };
    const controller = new AbortController();
    const compacting = s.main.compact({ signal: controller.signal });
    await until(1);
    controller.abort(new Error('enough'));
    await expect(compacting).rejects.toThrow('enough');
    await s.main.run('Hi');
    const run = s.main.run('Go');
    await until(2);
    run.abort('not now');
    expect(await run).toMatchObject({ finish: 'aborted' });
    expect(summarizers(s)).toMatchObject([{ task: 'aborted' }, { task: 'aborted' }]);
    const told = summarizers(s).flatMap((written) => payloads(s, written, 'summary/aborted'));
    expect(told).toEqual([{ message: 'enough' }, { message: 'not now' }]);
  });
});

test('a store that cannot record a summary fails the compaction, and stops the run: no summary is unaccounted', async () => {
  await using s = await serving(full);
  talk(s);
  await s.main.run('Hi');
  const failing = () =>
    onCrashPoint((point) => {
      if (point === 'fork/entries') throw new TapeError('TAPE_CORRUPT', 'cannot write: the disk is full');
    });
  failing();
  await expect(s.main.compact()).rejects.toThrow('the disk is full');
  await expect(s.main.run('Go')).rejects.toThrow('the disk is full');
  onCrashPoint(undefined);
  expect(summaries(s)).toEqual([]);
  expect(summarizers(s)).toEqual([]);
  expect(await s.main.run('Then')).toMatchObject({ finish: 'stop' });
  expect(summarizers(s)).toMatchObject([{ task: 'completed' }]);
});

test('a fork of a summarised parent is summarised from where its view begins', async () => {
  await using s = await serving();
  talk(s);
  const made = await s.main.compact();
  await using child = await s.main.fork({ name: 'kid', onUnmerged: 'keep' });
  s.store.entries.append('kid', [user(long('Own'))]);
  talk({ store: s.store } as Served);
  for (let i = 0; i < 3; i += 1) s.store.entries.append('kid', [user(long(`Kid ${i}`))]);
  await child.compact();
  const written = summarizer(s, 0, 'kid');
  // The kept tail of the parent's summary is read again, and not the text that the summary replaces.
  expect(written.floor).toBe(made?.range[1]);
  expect(payloads(s, written, 'summary/asked')).toMatchObject([{ previous: made?.seq }]);
  const [read] = s.asked().slice(-1);
  expect(JSON.stringify(read?.messages)).not.toContain('Question 1');
});

test('a session is busy and compacting while it is summarised by hand', async () => {
  await using s = await serving({ summary: () => ({ text: form, delayMs: 100 }) });
  talk(s);
  const compacting = s.main.compact();
  while (s.asked().length === 0) await new Promise((done) => setTimeout(done, 5));
  expect(await s.main.status()).toMatchObject({ state: 'busy', phase: 'compacting' });
  await expect(s.main.run('Now')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  expect(await s.main.status()).toMatchObject({ state: 'busy', phase: 'compacting' });
  await compacting;
  expect(await s.main.status()).toMatchObject({ state: 'idle' });
});
