import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import type { SessionEvent } from '@tapedeck/runtime';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** A model that answers in these pieces, as fast as they are read. */
function fastModel(pieces: readonly string[]): LanguageModelV4 {
  const parts: readonly LanguageModelV4StreamPart[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 't' },
    ...pieces.map((delta) => ({ type: 'text-delta', id: 't', delta }) as const),
    { type: 'text-end', id: 't' },
    { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage },
  ];
  return {
    specificationVersion: 'v4',
    provider: 'fast',
    modelId: 'fast',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('it only streams')),
    doStream: async () => ({ stream: ReadableStream.from(parts) }),
  };
}

/** The events up to the end of a run. */
async function upToEnd(events: AsyncIterable<SessionEvent>): Promise<SessionEvent[]> {
  const read: SessionEvent[] = [];
  for await (const event of events) {
    read.push(event);
    if (event.type === 'status-changed' && event.status.state === 'idle') break;
  }
  return read;
}

const textOf = (events: readonly SessionEvent[]) =>
  events.map((event) => (event.type === 'content-chunk' ? event.text : '')).join('');

test('a subscriber that does not read keeps the newest events, and learns how many it missed', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  const [unread, reading] = [main.subscribe(), upToEnd(main.subscribe())];
  const pieces = Array.from({ length: 25_000 }, (_, i) => `${i} `);
  await main.run('Count', { model: fastModel(pieces) });
  const all = await reading;
  expect(textOf(all)).toBe(pieces.join(''));
  const [first, ...rest] = await upToEnd(unread);
  expect(first).toEqual({ type: 'lagged', missed: all.length - rest.length });
  expect(rest).toEqual(all.slice(-rest.length));
  expect(rest.length).toBeGreaterThan(4_000);
  expect(rest.length).toBeLessThanOrEqual(10_000);
});

test('large events count by their size, and the newest is never dropped', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  const unread = main.subscribe();
  const pieces = Array.from({ length: 7 }, (_, i) => String(i).repeat(1_000_000));
  await main.run('Go', { model: fastModel(pieces) });
  const [, ...rest] = await upToEnd(unread);
  expect(textOf(rest).length).toBeLessThanOrEqual(4 * 1024 * 1024);
  expect(textOf(rest)).toMatch(/6$/);
  const one = main.subscribe();
  await main.run('Go', { model: fastModel(['x'.repeat(5_000_000)]) });
  const late = await upToEnd(one);
  expect(late.filter(({ type }) => type === 'lagged')).not.toEqual([]);
  expect(late.at(-1)).toEqual({ type: 'status-changed', status: { state: 'idle' } });
});

test('a subscriber that leaves before it reads gets nothing, and neither does one whose signal was aborted', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }]);
  const main = await home.deck.session('main');
  const gone = main.subscribe()[Symbol.asyncIterator]();
  const aborted = main.subscribe({ signal: AbortSignal.abort() });
  expect(await gone.return?.()).toEqual({ done: true, value: undefined });
  await main.run('Go');
  expect(await gone.next()).toEqual({ done: true, value: undefined });
  expect(await Array.fromAsync(aborted)).toEqual([]);
});

test('a session works as before after hundreds of others were used, for handles, subscribers and children', async () => {
  await using home = await scriptedDeck([
    { error: 'no answer', when: { text: 'Fail' } },
    { text: 'One.', when: { text: 'Fast' } },
    { text: 'Late.', delayMs: 60_000, when: { text: 'Slow' } },
  ]);
  const { deck } = home;
  const useOthers = async () => {
    for (let i = 0; i < 250; i += 1) await (await deck.session(`other-${i}`)).status();
  };
  const main = await deck.session('main');
  const [child, quiet] = [await main.fork({ name: 'child' }), await deck.session('quiet')];
  expect((await main.run('Fail')).finish).toBe('error');
  expect((await main.status()).state).toBe('error');
  const reading = upToEnd(quiet.subscribe());
  await useOthers();
  // How its last run failed is all that is forgotten, since no tape has it.
  expect((await main.status()).state).toBe('idle');
  const run = main.run('Slow');
  const ofParent = child.run('Slow');
  await useOthers();
  expect(main.attach()).toBe(run);
  expect((await deck.session('main')).attach()).toBe(run);
  await expect(main.run('Fast')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  await main.abort();
  expect([(await run).finish, (await ofParent).finish]).toEqual(['aborted', 'aborted']);
  await useOthers();
  expect((await main.run('Fast')).text).toBe('One.');
  expect((await child.run('Fast')).text).toBe('One.');
  expect((await (await deck.session('quiet')).run('Fast')).text).toBe('One.');
  expect(textOf(await reading)).toBe('One.');
});
