import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import type { DeckConfig } from '@tapedeck/runtime';
import { note, type SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type ToolSet, tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { goldenTapes } from '../support/golden-tapes.ts';
import { type Mode, modeOf, modes } from '../support/provider/modes.ts';
import { apiKey, type ChatAnswer } from '../support/provider/protocol.ts';
import { startProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const read = tool({
  inputSchema: z.object({ path: z.string() }),
  execute: async ({ path }) => `text of ${path}`,
});

/** The search that a mode's provider runs itself, if it has one. */
function searchOf({ target: { provider } }: Mode): ToolSet {
  if (provider === 'anthropic.messages')
    return { web_search: createAnthropic({ apiKey }).tools.webSearch_20250305({}) };
  return provider === 'openai.responses' ? { web_search: createOpenAI({ apiKey }).tools.webSearch({}) } : {};
}

/** A deck whose model is a strict server of a mode, which answers so, call after call. */
async function served(
  mode: Mode,
  answers: readonly ChatAnswer[],
  { store = openStore(), ...config }: DeckConfig & { store?: SqliteTapeStore } = {},
) {
  const provider = await startProvider((_, index) => answers[index] ?? { text: 'Fine.' }, mode.protocol);
  const deck = await openDeck({
    store,
    model: mode.model({ baseURL: provider.url }),
    tools: { read },
    ...config,
  });
  const main = await deck.session('main');
  return {
    provider,
    deck,
    store,
    main,
    lines: () => entryLines(store.entries.read('main')).slice(1),
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      store.close();
      await provider[Symbol.asyncDispose]();
    },
  };
}

const plain = modes.filter(({ providerOptions }) => providerOptions === undefined);

describe.each(plain)('with $name', (mode) => {
  // A model that reads text alone cannot continue where there are pictures.
  const readable = goldenTapes.filter(({ name }) => mode.target.textOnly !== true || name !== 'files');
  // But for a soak, each tape continues with some of the modes.
  const tapes = readable.filter((_, i) =>
    sized(i % 6 === plain.indexOf(mode) % 6, i % 3 === plain.indexOf(mode) % 3, true),
  );

  test.each(tapes)('a copy of the golden tape "$name" continues to an answer', async ({ name, write }) => {
    using dir = tempDir();
    using original = openStore(dir.file('tape.db'));
    write(original);
    await original.backup(dir.file('copy.db'));
    const searches = searchOf(mode);
    const ran = Object.keys(searches).length > 0;
    const first: ChatAnswer = {
      reasoning: 'What is in it?',
      ...(ran && { search: name }),
      text: ['Reading ', 'it. '],
      calls: [{ name: 'read', arguments: { path: 'a.ts' } }],
    };
    const store = openStore(dir.file('copy.db'));
    await using s = await served(mode, [first, { text: 'Done.' }, { text: 'More.' }], {
      store,
      tools: { read, ...searches },
    });
    expect(await s.main.run('What now?')).toMatchObject({ finish: 'stop', text: 'Done.', steps: 2 });
    // No input, and the assistant spoke last, in a run that died: the view ends with a request to continue.
    store.entries.append('main', [note('run/interrupted', {})]);
    expect(await s.main.run()).toMatchObject({ finish: 'stop', text: 'More.' });
    expect(await s.main.run('Thanks.')).toMatchObject({ finish: 'stop', text: 'Fine.' });
    expect(s.provider.refusals).toEqual([]);
    expect(s.provider.requests).toHaveLength(4);
    const before = entryLines(original.entries.read('main'));
    expect(entryLines(store.entries.read('main')).slice(0, before.length)).toEqual(before);
  });

  test('a prompt that is too long ends the run with the error of the provider', async () => {
    await using s = await served(mode, [{ overflow: true }]);
    const result = await s.main.run('Hi');
    expect(result).toMatchObject({ finish: 'error', error: { code: 'SESSION_MODEL_FAILED' } });
    expect(result.error?.message).toContain(mode.protocol.overflow.message);
    expect(s.provider.requests).toHaveLength(1);
  });

  test('a request that the provider rate-limits is retried', async () => {
    const busy = { status: 429, message: 'slow down', type: 'rate_limit_error', retryAfterMs: 5 };
    await using s = await served(mode, [busy, { text: 'Hi.', delayMs: 5 }]);
    expect(await s.main.run('Hi')).toMatchObject({ finish: 'stop', text: 'Hi.' });
    expect(s.provider.requests).toHaveLength(2);
  });

  test.each<[string, ChatAnswer]>([
    ['cut off', { reasoning: 'hm', text: ['I think ', 'that '], cut: true }],
    ['broken off with an error', { reasoning: 'hm', text: ['I think ', 'that '], breaks: true }],
  ])('an answer that is %s is kept, and the session continues', async (_, answer) => {
    await using s = await served(mode, [answer, { text: 'so.' }]);
    expect(await s.main.run('Well?')).toMatchObject({ finish: 'error' });
    expect(s.lines()).toEqual([
      'user: Well?',
      expect.stringMatching(/^assistant: (hm )?I think that$/),
      'event run/error',
    ]);
    expect(await s.main.run()).toMatchObject({ finish: 'stop', text: 'so.' });
    expect(await s.main.run('Really?')).toMatchObject({ finish: 'stop', text: 'Fine.' });
    expect(s.provider.refusals).toEqual([]);
  });

  test('an answer that hangs is aborted, and the session continues', async () => {
    await using s = await served(mode, [{ text: ['I ', 'wonder '], hang: true }]);
    const run = s.main.run('Well?');
    for await (const event of run)
      if (event.type === 'content-chunk' && event.text.includes('wonder')) run.abort('enough');
    expect(await run).toMatchObject({ finish: 'aborted' });
    expect(await s.main.run('Go on.')).toMatchObject({ finish: 'stop', text: 'Fine.' });
    expect(s.provider.refusals).toEqual([]);
  });

  test('a wrong key is refused as its provider does', async () => {
    await using provider = await startProvider(() => ({ text: 'Fine.' }), mode.protocol);
    const withKey =
      (key: string): typeof fetch =>
      (url, init) => {
        const headers = new Headers(init?.headers);
        const name = ['x-api-key', 'x-goog-api-key'].find((one) => headers.has(one)) ?? 'authorization';
        headers.set(name, key);
        return fetch(url, { ...init, headers });
      };
    using store = openStore();
    const model = mode.model({ baseURL: provider.url, fetch: withKey('Bearer other') });
    await using deck = await openDeck({ store, model });
    const result = await (await deck.session('main')).run('Hi');
    expect(result).toMatchObject({ finish: 'error' });
    expect(provider.refusals).toHaveLength(1);
    expect(result.error?.message).toContain(provider.refusals[0]);
  });
});

test('reasoning and search results of a run return to their provider in the next run, with their signatures', async () => {
  const mode = modeOf('anthropic');
  const first = { redacted: 'r', reasoning: 'I should look.', search: 'tapes', text: 'Found them.' };
  await using s = await served(mode, [first], { tools: searchOf(mode) });
  await s.main.run('Search.');
  await s.main.run('And?');
  const [, second] = s.provider.requests;
  const [redacted, thinking, used, found, said] = blocksOf(second?.messages[1]);
  expect(redacted).toMatchObject({ type: 'redacted_thinking' });
  expect(thinking).toMatchObject({ type: 'thinking', thinking: 'I should look.' });
  expect(used).toMatchObject({ type: 'server_tool_use', name: 'web_search', input: { query: 'tapes' } });
  expect(found).toMatchObject({ type: 'web_search_tool_result', tool_use_id: isObject(used) ? used.id : '' });
  expect(said).toMatchObject({ type: 'text', text: 'Found them.' });
  const [, , answer] = s.store.entries.read('main');
  expect(answer?.meta.usage).toMatchObject({ cacheRead: 4, cacheWrite: 2 });
});

function blocksOf(message: unknown): readonly unknown[] {
  return isObject(message) && Array.isArray(message.content) ? message.content : [];
}
