import { type DeckOptions, SessionError } from '@tapedeck/runtime';
import { openTapeStore } from '@tapedeck/tape';
import { tool } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { eventsOf, type ScriptedDeck, scriptedDeck, written } from '../support/scripted.ts';

const secret = 'given-by-the-program-1';
const secrets = { MY_KEY: secret };

async function deckOf(
  answers: Parameters<typeof scriptedDeck>[0],
  options: Omit<DeckOptions, 'home' | 'store'>,
): Promise<ScriptedDeck> {
  return await scriptedDeck(answers, { secrets, ...options });
}

describe('a secret of the program', () => {
  test('is on no tape of a store that the program opened, in no event, and in no result', async () => {
    const inputs: unknown[] = [];
    const say = tool({
      inputSchema: z.object({ text: z.string() }),
      execute: (input) => {
        inputs.push(input);
        return { said: input.text, env: JSON.stringify(secrets) };
      },
    });
    await using home = await deckOf(
      [
        { text: `I say ${secret}`, toolCalls: [{ name: 'say', input: { text: secret } }] },
        { text: `I said ${secret}.` },
      ],
      { tools: { say }, instructions: `Never say ${secret}` },
    );
    const main = await home.deck.session('main', { title: secret });
    const run = main.run(`Say ${secret}`);
    const chunks = Array.fromAsync(run.uiStream());
    const events = await eventsOf(run);
    const result = await run;
    expect(result).toMatchObject({ finish: 'stop', text: 'I said [secret MY_KEY].' });
    // The tape is the truth: a tool gets the input that the tape records.
    expect(inputs).toEqual([{ text: '[secret MY_KEY]' }]);
    await main.send(`Then say ${secret}`, { mode: 'queue' });
    await home.deck.idle();
    expect(JSON.stringify([events, await chunks, result])).not.toContain(secret);
    expect(written(home)).not.toContain(secret);
    expect(written(home).split('[secret MY_KEY]').length).toBeGreaterThan(7);
    expect([...home.store.verify()]).toEqual([]);
  });

  test('is in no child, its name, its merge or the lineage', async () => {
    await using home = await deckOf([{ text: `Done with ${secret}` }], {});
    const main = await home.deck.session('main');
    const [child] = await main.delegate([`Work with ${secret}`]);
    expect(child).toMatchObject({ text: 'Done with [secret MY_KEY]' });
    expect(written(home)).not.toContain(secret);
    expect(JSON.stringify([...home.store.lineage.read()])).not.toContain(secret);
    const names = home.store.sessions.list({ parent: 'main' }).map(({ session: name }) => name);
    expect(names).toEqual([expect.stringMatching(/^main-fork-[0-9a-f]{8}$/)]);
  });

  test.each(['in pieces', 'in its error', 'in an error after the answer has begun'])(
    'does not get through when a model sends it %s',
    async (how) => {
      const delta = (text: string) => ({ type: 'text-delta' as const, id: 't', delta: text });
      const model = new MockLanguageModelV4({
        doStream: async () => {
          if (how === 'in its error') throw new Error(`wrong key: ${secret}`);
          const failed = new Error(`cut off: ${secret}`, { cause: new Error(secret) });
          return {
            stream: simulateReadableStream({
              chunks: [
                { type: 'stream-start' as const, warnings: [] },
                { type: 'text-start' as const, id: 't' },
                ...`It is ${secret}${secret.slice(0, 9)}`.split(/(?<=[aeio-])/).map(delta),
                ...(how === 'in pieces'
                  ? [
                      { type: 'text-end' as const, id: 't' },
                      {
                        type: 'finish' as const,
                        finishReason: { unified: 'stop' as const, raw: 'stop' },
                        usage: {
                          inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
                          outputTokens: { total: 1, text: 1, reasoning: 0 },
                        },
                      },
                    ]
                  : [{ type: 'error' as const, error: failed }]),
              ],
            }),
          };
        },
      });
      await using home = await deckOf([], { model });
      const run = (await home.deck.session('main')).run('Hi');
      const events = await eventsOf(run);
      const result = await run;
      const shown = events.map((event) => (event.type === 'content-chunk' ? event.text : '')).join('');
      expect(JSON.stringify(events) + written(home)).not.toContain(secret);
      if (how === 'in pieces') {
        expect(result.text).toBe(`It is [secret MY_KEY]${secret.slice(0, 9)}`);
        expect(shown).toBe(result.text);
        return;
      }
      expect(result.error).toBeInstanceOf(SessionError);
      expect(result.error?.message).toContain('[secret MY_KEY]');
      for (let error: unknown = result.error; error instanceof Error; error = error.cause)
        expect(`${error.message} ${error.stack}`).not.toContain(secret);
      // A beginning that nothing completed is not shown.
      expect(shown.endsWith(secret.slice(0, 5))).toBe(false);
    },
  );

  test.each([
    [{ SHORT: 'abc' }, 'secrets.SHORT must have at least 8 characters'],
    [{ NUMBER: '1234567890' }, 'secrets.NUMBER must not be a number'],
    [{ 'a b': 'abcdefghij' }, 'secrets.a b must have a name of letters'],
    ['abcdefghij', 'secrets must be an object of texts'],
  ])('is refused when it cannot be replaced: %j', async (given, why) => {
    using store = openTapeStore(':memory:');
    const error = await openDeck({ store, secrets: given as Record<string, string> }).catch(
      (e: unknown) => e,
    );
    expect(error).toMatchObject({ code: 'SESSION_BAD_CONFIG', message: expect.stringContaining(why) });
  });
});
