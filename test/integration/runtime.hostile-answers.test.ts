import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { hostileAnswers, soundAnswer } from '../support/provider/hostile.ts';
import type { ChatAnswer } from '../support/provider/protocol.ts';
import { served } from '../support/served.ts';
import { sized } from '../support/size.ts';

const look = tool({ inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => `saw ${at}` });
const second = tool({ inputSchema: z.object({}), execute: async () => 'fine' });

/**
 * Runs a session whose provider answers so, and then soundly. The session verifies after the first run, and the second
 * one ends with the sound answer.
 */
async function survives(answer: ChatAnswer): Promise<string[]> {
  let isHostile = true;
  let asked = 0;
  await using s = await served(
    () => {
      // A run that goes on after the calls of the answer gets an answer.
      asked += 1;
      return isHostile && asked <= 2 ? answer : { text: 'Fine.' };
    },
    { tools: { look, second }, limits: { retries: 1, retryDelayMs: 1, maxSteps: 3 } },
  );
  const first = await s.main.run('Look.');
  expect([...s.store.verify()]).toEqual([]);
  isHostile = false;
  const next = await s.main.run('Go on.');
  expect(next).toMatchObject({ finish: 'stop', text: 'Fine.' });
  expect(await s.main.run('Thanks.')).toMatchObject({ finish: 'stop', text: 'Fine.' });
  expect([...s.store.verify()]).toEqual([]);
  expect(s.provider.refusals).toEqual([]);
  return [first.finish, ...s.lines()];
}

test('there are 51 hostile answers and more, each with a name of its own', () => {
  expect(new Set(hostileAnswers.map(({ name }) => name)).size).toBe(hostileAnswers.length);
  expect(hostileAnswers.length).toBeGreaterThanOrEqual(51);
});

/** On a push, one of the large ones stands for all. */
const played = hostileAnswers.filter(
  ({ name, isSlow }) => sized(!isSlow, true, true) || name === 'an error over 16 MiB',
);

test.each(played)(
  'an answer that is hostile leaves a session that verifies and continues: $name',
  async ({ answer }) => {
    await survives(answer);
  },
  60_000,
);

/** So many places in the answer, evenly. */
const places = sized(6, 60, soundAnswer.length);

test(
  'an answer that is cut after any byte leaves a session that verifies and continues',
  async () => {
    for (let i = 0; i < places; i += 1) {
      const at = Math.floor((i * soundAnswer.length) / places);
      await survives({ raw: [soundAnswer.subarray(0, at)], cut: true });
    }
  },
  sized(60_000, 120_000, 1_200_000),
);
