import type { CompactionPolicy } from '@tapedeck/runtime';
import { assistant, toolCall, toolResult, user } from '@tapedeck/tape';
import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type ChatAnswer, type ChatRequest, lastUserText } from '../support/provider.ts';
import { eventsOf } from '../support/scripted.ts';
import type { Served } from '../support/served.ts';
import { form, isSummary, long, serving, stateOf, summaries, talk, windows } from '../support/summarised.ts';

const busy = { status: 503, message: 'come again' };
const shown = async ({ main }: Served) => JSON.stringify((await main.view()).messages);

describe('before a model call', () => {
  test.each([
    { prompt: 91_988, summaries: 0 },
    { prompt: 91_989, summaries: 1 },
  ])(
    'a session that uses $prompt + 10 + 1 tokens of 100,000 is summarised $summaries times',
    async (given) => {
      await using s = await serving({
        windows,
        answer: () => ({ text: 'Fine.', usage: [given.prompt, 10] }),
      });
      talk(s);
      await s.main.run('Hi');
      await s.main.run('Go');
      expect(s.asked()).toHaveLength(given.summaries);
      expect(summaries(s)).toHaveLength(given.summaries);
    },
  );

  test.each([
    { size: 84, summaries: 0 },
    { size: 86, summaries: 1 },
  ])(
    'at-85 estimates what was never sent: $size % of the window give $summaries summaries',
    async (given) => {
      const windows = { 'openai-compatible/test-model': { window: 10_000 } };
      await using s = await serving({ windows, compaction: 'at-85', instructions: 'x'.repeat(400) });
      // Messages of `size` % of the window, less the instructions and the definitions of no tools.
      s.store.entries.append('main', [
        user('a'.repeat(4_000)),
        assistant('b'.repeat(given.size * 400 - 4_000 - 404)),
      ]);
      await s.main.run('Hi');
      expect(summaries(s)).toHaveLength(given.summaries);
      expect(s.asked()).toHaveLength(given.summaries);
    },
  );

  test('a token count from before a summary does not count after it', async () => {
    let isUp = true;
    await using s = await serving({
      windows,
      compaction: { keep: { turns: 1 } },
      answer: () => (isUp ? { text: 'Fine.', usage: [95_000, 10] } : { status: 400, message: 'not today' }),
    });
    talk(s);
    await s.main.run('Hi');
    await s.main.compact();
    isUp = false;
    for (const text of [long('One'), long('Two')])
      expect(await s.main.run(text)).toMatchObject({ finish: 'error' });
    expect(summaries(s)).toHaveLength(1);
  });

  test('a session without a known window is not summarised until a model refuses', async () => {
    await using s = await serving({ answer: () => ({ text: 'Fine.', usage: [999_999, 10] }) });
    talk(s);
    await s.main.run('Hi');
    await s.main.run('Go');
    expect(s.asked()).toEqual([]);
  });

  test('a disabled policy summarises nothing', async () => {
    await using s = await serving({
      windows,
      compaction: { enabled: false },
      answer: () => ({ text: 'Fine.', usage: [99_999, 10] }),
    });
    talk(s);
    await s.main.run('Hi');
    await s.main.run('Go');
    expect(s.asked()).toEqual([]);
  });

  test('a summary between the steps of one turn keeps every result', async () => {
    let files = 0;
    const read = tool({
      inputSchema: z.object({ path: z.string() }),
      execute: async ({ path }) => long(path),
    });
    await using s = await serving({
      windows: { 'test-model': { window: 4_000, maxOutput: 500 } },
      tools: { read },
      compaction: { prune: false },
      answer: ({ messages }) => {
        files += 1;
        const usage = [Math.ceil(JSON.stringify(messages).length / 4), 10] as const;
        if (files > 12) return { text: 'Done.', usage };
        return { calls: [{ name: 'read', arguments: { path: `f${files}` } }], usage };
      },
      limits: { maxSteps: 40 },
    });
    talk(s, 1, 1_000);
    expect(await s.main.run('Read all')).toMatchObject({ finish: 'stop' });
    expect(s.provider.refusals).toEqual([]);
    expect(summaries(s).length).toBeGreaterThan(1);
    expect(stateOf(summaries(s).at(-1)).read_files).toEqual(expect.arrayContaining(['f1', 'f2']));
  });
});

test('a summary is an entry that cites its range and how it was made; no entry is removed', async () => {
  let now = 0;
  await using s = await serving({
    windows,
    summarizer: 'openai-compatible/small',
    summary: () => ({ text: form, usage: [700, 50] }),
    answer: () => ({ text: 'Fine.', usage: [95_000, 10] }),
    now: () => (now += 7),
  });
  talk(s, 4);
  await s.main.run('Hi');
  const before = [...s.store.entries.read('main')];
  const run = s.main.run('Go');
  const events = await eventsOf(run);
  const after = [...s.store.entries.read('main')];
  expect(after.slice(0, before.length)).toEqual(before);
  const [compacted] = summaries(s);
  const { seq, range } = { seq: before.length + 2, range: [1, 9] };
  expect(compacted).toMatchObject({
    seq,
    mark: 'boundary',
    ref: 10,
    meta: { run: run.id, model: 'small' },
  });
  expect(compacted?.meta).not.toHaveProperty('usage');
  const [written] = s.store.sessions.list({ parent: 'main', all: true });
  expect(stateOf(compacted)).toEqual({
    summary: form,
    range,
    trigger: 'threshold',
    compaction_type: 'whole',
    summarized_through: 9,
    first_kept: 10,
    turns_summarized: 4,
    provider: 'openai-compatible.chat',
    model: 'small',
    tokens_before: expect.any(Number),
    tokens_after: expect.any(Number),
    summary_tokens: Math.ceil(form.length / 4),
    summarization_input_tokens: 700,
    summarization_output_tokens: 50,
    duration_ms: 7,
    read_files: [],
    modified_files: [],
    summarizer: { session: written?.session, id: written?.id, head: written?.headHash },
  });
  const { tokens_before, tokens_after } = stateOf(compacted);
  expect(events).toContainEqual({
    type: 'compacted',
    seq,
    range,
    trigger: 'threshold',
    tokensBefore: tokens_before,
    tokensAfter: tokens_after,
  });
  // The model sees the summary alone, and the tail that stays.
  const asked = JSON.stringify(s.provider.requests.at(-1)?.messages);
  expect(asked).toContain('was compacted into the following summary:\\n<summary>\\n## Goal');
  expect(asked).toContain('Hi');
  expect(asked).not.toContain('Question 4');
  expect(asked).not.toContain('tokens_before');
});

test('the summarizer receives no tools, a token limit, a low temperature and its own model', async () => {
  const add = tool({ inputSchema: z.object({}), execute: async () => 3 });
  await using s = await serving({
    tools: { add },
    summarizer: 'openai-compatible/small',
    windows: { small: { window: 100_000, maxOutput: 300 } },
  });
  talk(s);
  await s.main.compact();
  expect(s.asked()).toEqual([expect.objectContaining({ model: 'small', max_tokens: 300, temperature: 0.2 })]);
  expect(s.asked()[0]).not.toHaveProperty('tools');
});

describe('compaction by hand', () => {
  test('passes the focus to the summarizer, and returns tokens and range in the receipt', async () => {
    await using s = await serving();
    talk(s);
    const before = (await s.main.view()).tokens;
    const made = await s.main.compact({ focus: 'the failing test' });
    expect(lastUserText(s.asked()[0] as ChatRequest)).toContain('the failing test');
    expect(made).toEqual({
      session: 'main',
      seq: 8,
      range: [1, 3],
      tokensBefore: before,
      tokensAfter: (await s.main.view()).tokens,
      summarizer: s.store.sessions.list({ parent: 'main', all: true })[0]?.session,
    });
    expect(stateOf(summaries(s)[0])).toMatchObject({ trigger: 'manual', focus: 'the failing test' });
  });

  test('updates the last summary, and keeps all its files', async () => {
    await using s = await serving({ summary: (_, i) => ({ text: `${form}\nSummary ${i + 1}.` }) });
    const touch = (id: string, name: string, path: string) =>
      s.store.entries.append('main', [
        assistant([toolCall(id, name, { path })]),
        toolResult({ toolCallId: id, toolName: name }, long('content')),
      ]);
    touch('1', 'read', 'a.ts');
    touch('2', 'read', 'b.ts');
    talk(s);
    await s.main.compact();
    touch('3', 'edit', 'b.ts');
    talk(s);
    await s.main.compact();
    const [first, second] = summaries(s);
    expect(stateOf(first)).toMatchObject({ read_files: ['a.ts', 'b.ts'], modified_files: [] });
    expect(stateOf(second)).toMatchObject({ read_files: ['a.ts'], modified_files: ['b.ts'] });
    expect(stateOf(second).range).toEqual([1, expect.any(Number)]);
    const to = Number(stateOf(second).summarized_through);
    const said = [...s.store.entries.read('main', { to })].map(({ payload }) => JSON.stringify(payload));
    expect(stateOf(second).turns_summarized).toBe(
      said.filter((text) => text.includes('"role":"user"')).length,
    );
    expect(stateOf(second).turns_summarized).toBeGreaterThan(Number(stateOf(first).turns_summarized));
    const asked = lastUserText(s.asked()[1] as ChatRequest);
    expect(asked).toContain('Summary 1.\n</previous-summary>');
    expect(asked).not.toContain('Question 1 and so on and so on\n');
    expect(await shown(s)).toContain(
      'Summary 2.\\n\\n<read-files>\\na.ts\\n</read-files>\\n\\n<modified-files>\\nb.ts',
    );
    expect(await shown(s)).not.toContain('Summary 1.');
  });

  test('includes the state of a handoff in the summary', async () => {
    await using s = await serving();
    await s.main.handoff('phase-2', { summary: 'Phase one is done.', state: { ticket: 7 } });
    talk(s);
    await s.main.compact();
    const asked = lastUserText(s.asked()[0] as ChatRequest);
    expect(asked).toContain('Phase one is done.');
    expect(asked).toContain('{"ticket":7}');
  });

  test('calls no model and writes nothing when nothing can be summarised', async () => {
    await using s = await serving();
    expect(await s.main.compact()).toBeUndefined();
    s.store.entries.append('main', [user('Hi')]);
    expect(await s.main.compact()).toBeUndefined();
    expect(s.provider.requests).toEqual([]);
    expect(s.lines()).toEqual(['user: Hi']);
  });

  test('refuses a run meanwhile, and answers a message that arrives meanwhile', async () => {
    await using s = await serving({ summary: () => ({ text: form, delayMs: 200 }) });
    talk(s);
    const compacting = s.main.compact();
    await expect(s.main.run('Now')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    expect(await s.main.send('Then')).toMatchObject({ state: 'queued' });
    await compacting;
    await s.main.idle();
    expect(s.lines().slice(-3)).toEqual(['compaction compaction', 'user: Then', 'assistant: Fine.']);
  });

  test('that fails still starts a run for a message that arrived meanwhile', async () => {
    await using s = await serving({ summary: () => ({ text: '', delayMs: 200 }) });
    talk(s);
    const compacting = s.main.compact();
    await expect.poll(async () => (await s.main.status()).phase).toBe('compacting');
    expect(await s.main.send('Then')).toMatchObject({ state: 'queued' });
    await expect(compacting).rejects.toMatchObject({ code: 'SESSION_COMPACTION_FAILED' });
    await s.main.idle();
    expect(s.lines().slice(-2)).toEqual(['user: Then', 'assistant: Fine.']);
  });

  test('that is aborted writes nothing', async () => {
    await using s = await serving({ summary: () => ({ text: form, hang: true }) });
    talk(s);
    const before = s.lines();
    const controller = new AbortController();
    const compacting = s.main.compact({ signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(compacting).rejects.toThrow('enough');
    expect(s.lines()).toEqual(before);
    expect(await s.main.status()).toMatchObject({ state: 'idle' });
  });

  test('warns of a tail that is too large', async () => {
    await using s = await serving({ windows: { 'test-model': { window: 4_000, maxOutput: 500 } } });
    talk(s, 3);
    const listened: unknown[] = [];
    const controller = new AbortController();
    const listening = (async () => {
      for await (const event of s.main.subscribe({ signal: controller.signal })) listened.push(event);
    })().catch(() => {});
    await s.main.compact();
    controller.abort();
    await listening;
    expect(listened).toContainEqual({ type: 'warning', message: expect.stringContaining('it alone stays') });
    expect(stateOf(summaries(s)[0]).first_kept).toBe(6);
  });
});

describe('a summarizer', () => {
  const full = { windows, answer: () => ({ text: 'Fine.', usage: [95_000, 10] as const }) };

  test('that is busy is retried; then the turn continues without a summary, and the tape records a warning', async () => {
    await using s = await serving({ ...full, summary: () => busy });
    talk(s);
    await s.main.run('Hi');
    const run = s.main.run('Go');
    const events = await eventsOf(run);
    expect(await run).toMatchObject({ finish: 'stop', text: 'Fine.' });
    expect(s.asked()).toHaveLength(3);
    expect(s.lines().slice(-3)).toEqual(['user: Go', 'event context/not-compacted', 'assistant: Fine.']);
    expect(events.filter(({ type }) => type === 'retrying')).toHaveLength(2);
    expect(events).toContainEqual({ type: 'warning', message: expect.stringContaining('come again') });
    expect(await shown(s)).toContain('Question 1');
  });

  test('that is busy once is retried; without retries it is not', async () => {
    const summary = (_: ChatRequest, i: number) => (i === 0 ? busy : { text: form });
    await using s = await serving({ ...full, summary });
    talk(s);
    await s.main.compact();
    expect(summaries(s)).toHaveLength(1);
    await using t = await serving({ ...full, summary, compaction: { retryOnTransient: false } });
    talk(t);
    await expect(t.main.compact()).rejects.toMatchObject({ code: 'SESSION_COMPACTION_FAILED' });
    expect(t.asked()).toHaveLength(1);
  });

  test.each<{ what: string; summary: ChatAnswer; policy?: CompactionPolicy; why: string }>([
    { what: 'says nothing', summary: { text: ' \n' }, why: 'returned no text' },
    { what: 'says more than there was', summary: { text: long('More', 20_000) }, why: 'is not smaller' },
    {
      what: 'never answers',
      summary: { text: 'So', hang: true },
      policy: { summary: { timeoutMs: 100 } },
      why: 'no answer within 100 ms',
    },
    { what: 'refuses the key', summary: { status: 401, message: 'no key for you' }, why: 'no key for you' },
  ])('that $what is an error by hand, and stops no run', async ({ summary, policy = {}, why }) => {
    await using s = await serving({ ...full, summary: () => summary, compaction: policy });
    talk(s);
    const before = s.lines();
    await expect(s.main.compact()).rejects.toMatchObject({
      code: 'SESSION_COMPACTION_FAILED',
      message: expect.stringContaining(why),
    });
    expect(s.lines()).toEqual(before);
    await s.main.run('Hi');
    expect(await s.main.run('Go')).toMatchObject({ finish: 'stop', text: 'Fine.' });
    expect(summaries(s)).toEqual([]);
    expect([...s.store.entries.read('main', { kind: 'event' })].at(-1)?.payload).toMatchObject({
      trigger: 'threshold',
      message: expect.stringContaining(why),
    });
  });

  test('that writes prose without sections is accepted, and the summary names the sections it lacks', async () => {
    await using s = await serving({ summary: () => ({ text: 'They talked.' }) });
    talk(s);
    await s.main.compact();
    expect(stateOf(summaries(s)[0])).toMatchObject({
      summary: 'They talked.',
      missing_sections: expect.arrayContaining(['Goal', 'Next Steps']),
    });
  });
});

describe('a text too large for the summarizer', () => {
  /** Refuses requests of more characters than this. */
  const upTo = (most: number) => (request: ChatRequest, i: number) =>
    lastUserText(request).length > most ? { overflow: true as const } : { text: `${form}\nPart ${i}.` };
  const only = (recovery: object): CompactionPolicy => ({
    smartRecovery: { pruneToolOutputs: false, chunkedSummarize: false, dropMiddle: false, ...recovery },
  });
  const reading = (s: Served, files: number) => {
    for (let i = 0; i < files; i += 1)
      s.store.entries.append('main', [
        assistant([toolCall(`c${i}`, 'read', { path: `f${i}` })]),
        toolResult({ toolCallId: `c${i}`, toolName: 'read' }, long('content', 3_000)),
      ]);
    talk(s);
  };

  test('is a typed error without recovery: by hand, and of a run', async () => {
    const windows = { 'test-model': { window: 30_000, maxOutput: 4_000 } };
    await using s = await serving({ summary: upTo(5_000), compaction: { smartRecovery: false }, windows });
    talk(s, 30);
    const failure = { code: 'SESSION_COMPACTION_FAILED', message: expect.stringContaining('too large') };
    await expect(s.main.compact()).rejects.toMatchObject(failure);
    talk(s, 30);
    expect(await s.main.run('Go')).toMatchObject({ finish: 'error', error: failure });
    expect(s.lines().at(-1)).toBe('event run/error');
    // Neither model received more than it accepts.
    expect(s.provider.requests).toEqual([]);
    await using t = await serving({ summary: upTo(5_000), compaction: { smartRecovery: false } });
    talk(t, 30);
    await expect(t.main.compact()).rejects.toMatchObject(failure);
    expect(t.asked()).toHaveLength(1);
  });

  test.each([
    { how: 'pruned', recovery: { pruneToolOutputs: true }, parts: 1 },
    { how: 'chunked', recovery: { chunkedSummarize: true }, parts: 2 },
    { how: 'middle-dropped', recovery: { dropMiddle: true }, parts: 1 },
  ])('is $how where that is allowed', async ({ how, recovery, parts }) => {
    await using s = await serving({ summary: upTo(25_000), compaction: only(recovery) });
    reading(s, 12);
    await s.main.compact();
    const state = stateOf(summaries(s)[0]);
    expect(state.compaction_type).toBe(how);
    expect(String(state.summary).match(/Part \d/g)?.length).toBeGreaterThanOrEqual(parts);
    expect(String(state.summary)).toContain('<read-files>\nf0\n');
  });

  test('is sent without its middle where it would need too many pieces', async () => {
    await using s = await serving({
      windows: { small: { window: 1_300, maxOutput: 100 } },
      summarizer: 'openai-compatible/small',
      compaction: only({ chunkedSummarize: true, dropMiddle: true }),
    });
    talk(s, 30);
    await s.main.compact();
    expect(stateOf(summaries(s)[0]).compaction_type).toBe('middle-dropped');
    expect(s.asked().length).toBeLessThan(10);
  });

  test('is refused as a focus, and no model is called', async () => {
    await using s = await serving();
    talk(s);
    await expect(s.main.compact({ focus: 'x'.repeat(16_001) })).rejects.toMatchObject({
      code: 'SESSION_BAD_INPUT',
    });
    expect(s.asked()).toEqual([]);
  });

  test('is not sent at all where the window is known', async () => {
    await using s = await serving({
      windows: { small: { window: 8_000, maxOutput: 1_000 } },
      summarizer: 'openai-compatible/small',
    });
    reading(s, 20);
    await s.main.compact();
    for (const request of s.asked()) expect(JSON.stringify(request.messages).length / 4).toBeLessThan(8_000);
    expect(stateOf(summaries(s)[0]).compaction_type).toBe('pruned');
  });
});

describe('outputs of calls', () => {
  const read = tool({
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }) => long(path, 4_000),
  });
  /** Reads `n` files, one in each step. */
  const reader = (most: number) => {
    let files = 0;
    return ({ messages }: ChatRequest): ChatAnswer => {
      files += 1;
      const usage = [Math.ceil(JSON.stringify(messages).length / 4), 10] as const;
      return files > most
        ? { text: 'Done.', usage }
        : { calls: [{ name: 'read', arguments: { path: `f${files}` } }], usage };
    };
  };
  const window = { 'test-model': { window: 20_000, maxOutput: 2_000 } };
  const notes = ({ store }: Served) =>
    [...store.entries.read('main', { kind: 'event' })].filter(({ name }) => name === 'context/pruned');

  test('are pruned from 60 % of the window on, oldest first, and no summary is needed', async () => {
    await using s = await serving({
      windows: window,
      tools: { read },
      answer: reader(20),
      limits: { maxSteps: 40 },
    });
    const run = s.main.run('Read all');
    const events = await eventsOf(run);
    expect(await run).toMatchObject({ finish: 'stop', text: 'Done.' });
    expect(notes(s).length).toBeGreaterThan(0);
    expect(events.filter(({ type }) => type === 'pruned')).toHaveLength(notes(s).length);
    expect(s.asked()).toEqual([]);
    const last = JSON.stringify(s.provider.requests.at(-1)?.messages);
    expect(last).toMatch(/<output pruned, \d+ tokens>/);
    for (const file of ['f1', 'f20']) expect(last).toContain(`\\"path\\":\\"${file}\\"`);
    expect(last).toContain('f20 and so on');
    expect(last).not.toContain('f1 and so on');
    for (const { messages } of s.provider.requests)
      expect(JSON.stringify(messages).length / 4).toBeLessThan(16_000);
    expect(s.provider.refusals).toEqual([]);
  });

  test('are pruned by hand without a model, once each', async () => {
    await using s = await serving({ tools: { read }, answer: reader(12), limits: { maxSteps: 20 } });
    await s.main.run('Read all');
    const asked = s.provider.requests.length;
    const made = await s.main.compact({ prune: true });
    expect(made).toMatchObject({
      session: 'main',
      range: [4, 16],
      tokensAfter: (await s.main.view()).tokens,
    });
    expect(made?.tokensAfter).toBeLessThan((made?.tokensBefore ?? 0) / 2);
    expect(notes(s)).toHaveLength(1);
    expect(await s.main.compact({ prune: true })).toBeUndefined();
    expect(s.provider.requests).toHaveLength(asked);
    await expect(s.main.compact({ prune: true, focus: 'x' })).rejects.toMatchObject({
      code: 'SESSION_BAD_INPUT',
    });
  });

  test('are summarised as the view shows them', async () => {
    await using s = await serving({ tools: { read }, answer: reader(12), limits: { maxSteps: 20 } });
    await s.main.run('Read all');
    await s.main.compact({ prune: true });
    s.store.entries.append('main', [user('Next.'), assistant('Yes.')]);
    await s.main.compact();
    const prompt = lastUserText(s.asked()[0] as ChatRequest);
    expect(prompt).toContain('[Tool result]: <output pruned,');
    expect(prompt).toContain('f12 and so on');
    expect(prompt).not.toContain('f1 and so on');
  });
});

describe('a change of model', () => {
  const sizes = {
    large: { window: 100_000 },
    small: { window: 8_000, maxOutput: 1_000 },
    tiny: { window: 30 },
  };
  const model = 'openai-compatible/large';
  const answer = ({ messages }: ChatRequest): ChatAnswer => ({
    text: 'Fine.',
    usage: [Math.ceil(JSON.stringify(messages).length / 4), 5],
  });
  const models = ({ provider }: Served) =>
    provider.requests.map((request) => [request.model, isSummary(request)]);
  const next = (name: string) => ({ model: `openai-compatible/${name}` });

  test('to one with the same or enough room changes nothing', async () => {
    await using s = await serving({ windows: { ...sizes, larger: { window: 200_000 } }, model, answer });
    talk(s);
    await s.main.run('Hi');
    await s.main.run('Go', next('larger'));
    await s.main.run('On', next('small'));
    expect(s.asked()).toEqual([]);
  });

  test('to a smaller one has the old model write a summary before the message is appended', async () => {
    await using s = await serving({ windows: sizes, model, answer });
    talk(s, 20);
    await s.main.run('Hi');
    const run = s.main.run('Go', next('small'));
    const events = (await eventsOf(run)).map(({ type }) => type);
    expect(await run).toMatchObject({ finish: 'stop', text: 'Fine.' });
    expect(models(s)).toEqual([
      ['large', false],
      ['large', true],
      ['small', false],
    ]);
    expect(s.lines().slice(-3)).toEqual(['compaction compaction', 'user: Go', 'assistant: Fine.']);
    expect(stateOf(summaries(s)[0]).trigger).toBe('model-switch');
    expect(events.slice(0, 2)).toEqual(['run-started', 'compacted']);
    expect(s.provider.refusals).toEqual([]);
  });

  test('to one that is still too small is refused, and the session keeps its model', async () => {
    await using s = await serving({ windows: sizes, model, answer });
    talk(s, 20);
    await s.main.run('Hi');
    await expect(s.main.run('Go', next('tiny'))).rejects.toMatchObject({
      code: 'SESSION_MODEL_TOO_SMALL',
      data: { session: 'main', model: 'tiny', before: 'large' },
    });
    expect(s.lines()).not.toContain('user: Go');
    expect(summaries(s)).toEqual([]);
    expect(await s.main.status()).toMatchObject({ state: 'idle' });
    expect(await s.main.run('Then')).toMatchObject({ finish: 'stop' });
    expect(models(s).at(-1)).toEqual(['large', false]);
  });

  test('by a waiting message is refused the same way, and the message is kept', async () => {
    await using s = await serving({ windows: sizes, model, answer });
    talk(s, 20);
    await s.main.run('Hi');
    const { run } = await s.main.send('Go', next('tiny'));
    expect(await run).toMatchObject({ finish: 'error', error: { code: 'SESSION_MODEL_TOO_SMALL' } });
    expect(s.lines().slice(-2)).toEqual(['user: Go', 'event run/error']);
    expect(await s.main.run('Then')).toMatchObject({ finish: 'stop' });
    expect(models(s).at(-1)).toEqual(['large', false]);
  });
});

test('a rewind past a summary shows what was summarised; a fork after it sees what its parent sees', async () => {
  await using s = await serving();
  talk(s);
  const whole = await shown(s);
  const made = await s.main.compact();
  const child = await s.main.fork({ onUnmerged: 'keep' });
  const seen = (await child.view()).messages;
  expect(seen).toEqual((await s.main.view()).messages);
  s.store.history.rewind('main', (made?.seq ?? 0) - 1);
  expect(await shown(s)).toBe(whole);
  expect((await child.view()).messages).toEqual(seen);
});

test('half a surrogate pair never reaches the summarizer, in the conversation, the previous summary or the focus', async () => {
  const half = '\ud800';
  await using s = await serving({ summary: () => ({ text: `${form} ${half}` }) });
  s.store.entries.append('main', [user(long(half)), assistant(long(half))]);
  talk(s);
  await s.main.compact({ focus: half });
  talk(s);
  await s.main.compact();
  expect(summaries(s)).toHaveLength(2);
});
