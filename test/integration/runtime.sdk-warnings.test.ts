import type { SessionEvent } from '@tapedeck/runtime';
import { streamText, tool } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { modeOf } from '../support/provider/modes.ts';
import { startProvider } from '../support/provider.ts';
import { eventsOf } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const printed: string[] = [];
beforeEach(() => {
  printed.length = 0;
  const keep = (text: unknown) => printed.push(String(text));
  for (const method of ['warn', 'error', 'log', 'info'] as const)
    vi.spyOn(console, method).mockImplementation(keep);
  vi.spyOn(process, 'emitWarning').mockImplementation(keep as never);
});
const loggerBefore = globalThis.AI_SDK_LOG_WARNINGS;
afterEach(() => {
  globalThis.AI_SDK_LOG_WARNINGS = loggerBefore;
  vi.restoreAllMocks();
});

const read = tool({ inputSchema: z.object({}), execute: async () => 'text' });
const warningsIn = (events: readonly SessionEvent[]) =>
  events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));

test('a warning of the SDK is an event, once in a run, and nothing is printed', async () => {
  const answers = [{ calls: [{ id: 'c', name: 'read', arguments: {} }] }];
  await using provider = await startProvider(
    (_, index) => answers[index] ?? { text: 'Fine.' },
    modeOf('openai responses').protocol,
  );
  using store = openStore();
  await using deck = await openDeck({
    store,
    model: modeOf('openai responses').model({ baseURL: provider.url }),
    tools: { read },
    settings: { temperature: 0.5 },
  });
  const main = await deck.session('main');
  const heard = 'openai.responses/gpt-5: temperature is not supported';
  expect(warningsIn(await eventsOf(main.run('Read.')))).toEqual([expect.stringContaining(heard)]);
  expect(warningsIn(await eventsOf(main.run('Again.')))).toEqual([expect.stringContaining(heard)]);
  expect(provider.requests).toHaveLength(3);
  expect(printed).toEqual([]);
});

/** A model that answers with these warnings. */
function warning(...warnings: never[]): MockLanguageModelV4 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  return new MockLanguageModelV4({
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: 'stream-start', warnings },
          { type: 'text-start', id: 't' },
          { type: 'text-delta', id: 't', delta: 'Fine.' },
          { type: 'text-end', id: 't' },
          { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage },
        ],
      }),
    }),
  });
}

test('each kind of warning is one line', async () => {
  const kinds = [
    { type: 'unsupported', feature: 'topK' },
    { type: 'compatibility', feature: 'tools', details: 'only\none' },
    { type: 'deprecated', setting: 'image', message: 'Use file.' },
    { type: 'other', message: 'It rains.' },
    { type: 'later', note: 1 },
  ] as never[];
  using store = openStore();
  await using deck = await openDeck({ store, model: warning(...kinds) });
  const main = await deck.session('main');
  const id = 'mock-provider/mock-model-id: ';
  expect(warningsIn(await eventsOf(main.run('Hi')))).toEqual([
    `${id}topK is not supported`,
    `${id}tools is used in a compatibility mode: only one`,
    `${id}image is deprecated: Use file.`,
    `${id}It rains.`,
    `${id}{"type":"later","note":1}`,
  ]);
  expect(printed).toEqual([]);
});

test('the calls of a program keep its own logger', async () => {
  const logged: string[] = [];
  const other = { type: 'other', message: 'It rains.' } as never;
  using store = openStore();
  await using deck = await openDeck({ store, model: warning(other) });
  const main = await deck.session('main');
  const ask = async () => await streamText({ model: warning(other), prompt: 'Hi' }).text;
  await main.run('Hi');
  globalThis.AI_SDK_LOG_WARNINGS = ({ warnings }) => {
    logged.push(JSON.stringify(warnings));
  };
  const [events] = await Promise.all([eventsOf(main.run('Hi')), ask()]);
  expect(warningsIn(events)).toHaveLength(1);
  expect(logged).toEqual(['[{"type":"other","message":"It rains."}]']);
  globalThis.AI_SDK_LOG_WARNINGS = undefined;
  expect(printed).toEqual([]);
  await ask();
  expect(printed.join('\n')).toContain('It rains.');
});
