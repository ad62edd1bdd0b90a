import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { hostileAnswers } from '../support/provider/hostile.ts';
import { type Mode, modeOf, modes } from '../support/provider/modes.ts';
import type { ChatAnswer, ChatRequest, Protocol } from '../support/provider/protocol.ts';
import { startProvider } from '../support/provider.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const look = tool({ inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => `saw ${at}` });

/**
 * Runs a session whose provider answers so, and then soundly. The session verifies after the first run, and the second
 * one ends with the sound answer.
 */
async function survives(answer: ChatAnswer, mode: Mode = modeOf('compatible')): Promise<void> {
  let isHostile = true;
  let asked = 0;
  await using provider = await startProvider(() => {
    // A run that goes on after the calls of the answer gets an answer.
    asked += 1;
    return isHostile && asked <= 2 ? answer : { text: 'Fine.' };
  }, mode.protocol);
  using store = openStore();
  await using deck = await openDeck({
    store,
    model: mode.model({ baseURL: provider.url }),
    tools: { look },
    limits: { retries: 1, retryDelayMs: 1, maxSteps: 3 },
  });
  const main = await deck.session('main');
  await main.run('Look.');
  expect([...store.verify()]).toEqual([]);
  isHostile = false;
  expect(await main.run('Go on.')).toMatchObject({ finish: 'stop', text: 'Fine.' });
  expect(await main.run('Thanks.')).toMatchObject({ finish: 'stop', text: 'Fine.' });
  expect([...store.verify()]).toEqual([]);
  expect(provider.refusals).toEqual([]);
}

test('there are 51 hostile answers and more, each with a name of its own', () => {
  expect(new Set(hostileAnswers.map(({ name }) => name)).size).toBe(hostileAnswers.length);
  expect(hostileAnswers.length).toBeGreaterThanOrEqual(51);
});

/** On a push, every sixth, and no large one. */
const played = hostileAnswers.filter(({ isSlow }, n) => sized(!isSlow && n % 6 === 0, true, true));

test.each(played)(
  'an answer that is hostile leaves a session that verifies and continues: $name',
  async ({ answer }) => {
    await survives(answer);
  },
  60_000,
);

/** A sound answer of a protocol, as bytes. */
function soundAnswer({ begin, end }: Protocol): Uint8Array {
  const request: ChatRequest = { model: 'm', messages: [] };
  const answer = {
    reasoning: 'hm',
    text: 'ä, so.',
    calls: [{ id: 'c1', name: 'look', arguments: { at: 'b' } }],
  };
  return Buffer.from([...begin(request, answer), ...end(request, answer)].join(''));
}

test.each(modes)(
  'an answer of $name that is cut after any byte leaves a session that verifies and continues',
  async (mode) => {
    const sound = soundAnswer(mode.protocol);
    const places = sized(1, 1, sound.length);
    for (let i = 0; i < places; i += 1) {
      const at = Math.floor(((i + 0.5) * sound.length) / places);
      await survives({ raw: [sound.subarray(0, at)], cut: true }, mode);
      await survives({ raw: [sound.subarray(0, at), '\u0000{"'] }, mode);
    }
  },
  sized(60_000, 120_000, 1_200_000),
);

test.each(modes)(
  'a page, or an event that is no JSON, in place of an answer of $name leaves such a session',
  async (mode) => {
    const page = '<!doctype html><html><body><h1>Sign in</h1></body></html>';
    const headers = { 'content-type': 'text/html' };
    const answers: readonly ChatAnswer[] = [
      { raw: [page], headers },
      { raw: [page], headers, code: 403 },
      { raw: [page], headers, code: 502 },
      { raw: [] },
      { raw: ['data: {}\n\n', 'data: null\n\n', 'data: [DONE]\n\n'] },
      { raw: ['event: error\ndata: overloaded\n\n'] },
    ];
    // On a push each protocol meets two of them, and in full three.
    const some = answers.filter((_, i) =>
      sized(i % 3 === modes.indexOf(mode) % 3, i % 2 === modes.indexOf(mode) % 2, true),
    );
    for (const answer of some) await survives(answer, mode);
  },
  60_000,
);
