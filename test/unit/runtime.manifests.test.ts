import type { DeckConfig } from '@tapedeck/runtime';
import {
  assistant,
  type Entry,
  type JsonObject,
  remakeOf,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { scriptedDeck } from '../support/scripted.ts';
import { served } from '../support/served.ts';
import { serving, stateOf, summaries, talk } from '../support/summarised.ts';

const note = tool({ inputSchema: z.object({}), execute: () => 'Noted.' });

/** The manifest of each model call, in order, with the entry that records it. */
function asked(
  store: SqliteTapeStore,
  session = 'main',
): { entry: Entry; view: JsonObject; meta: JsonObject }[] {
  return [...store.entries.read(session, { own: true })].flatMap((entry) =>
    [entry.meta as JsonObject, isObject(entry.payload) ? entry.payload : {}].flatMap((meta) =>
      isObject(meta.view) ? [{ entry, view: meta.view, meta }] : [],
    ),
  );
}

/** The digest of the view that a manifest describes, rendered again from the tape. */
function again(store: SqliteTapeStore, { entry, view: told }: { entry: Entry; view: JsonObject }): string {
  const remake = remakeOf(told);
  if (remake === undefined) throw new TypeError('no manifest');
  const { policy, at } = remake;
  return view(store.views.entries(entry.session, { policy, at }), remake).digest;
}

test('each answer records what its model received, so that it can be reproduced', async () => {
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'note', input: {} }] }, { text: 'Done.' }, { text: 'And again.' }],
    { tools: { note }, instructions: 'Be brief.' },
  );
  const main = await home.deck.session('main');
  await main.run('Go.');
  await main.handoff('next', { summary: 'All is noted.' });
  await main.run('On.');
  const calls = asked(home.store);
  expect(calls.map(({ view: { policy, version, in: within } }) => [policy, version, within])).toEqual([
    ['last-boundary', 5, [[1, 2]]],
    ['last-boundary', 5, [[1, 4]]],
    ['last-boundary', 5, [[6, 7]]],
  ]);
  expect(calls.at(-1)?.view.out).toEqual([[1, 5, 'before next@6']]);
  for (const call of calls) {
    expect(again(home.store, call)).toBe(call.view.digest);
    expect(call.meta).toMatchObject({
      instructions_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      tools_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  }
  expect(new Set(calls.map(({ meta }) => meta.tools_digest)).size).toBe(1);
});

test('other tools have another digest, and no tools have none', async () => {
  const digests: unknown[] = [];
  const other = tool({ description: 'Notes.', inputSchema: z.object({}), execute: () => 'Noted.' });
  const offers: NonNullable<DeckConfig['tools']>[] = [{}, { note }, { note: other }];
  for (const tools of offers) {
    await using home = await scriptedDeck([{ text: 'Well.' }], { tools });
    await (await home.deck.session('main')).run('Go.');
    digests.push(asked(home.store)[0]?.meta.tools_digest);
  }
  expect(digests[0]).toBeUndefined();
  expect(new Set(digests).size).toBe(3);
});

test('a call that fails, is retried or breaks off records it, too', async () => {
  let calls = 0;
  await using s = await served(
    () => {
      calls += 1;
      return calls === 1 ? { status: 503, message: 'busy' } : { status: 400, message: 'never' };
    },
    { limits: { retries: 1, retryDelayMs: 1 } },
  );
  expect(await s.main.run('Go.')).toMatchObject({ finish: 'error' });
  const told = asked(s.store);
  expect(told.map(({ entry }) => entry.name)).toEqual(['run/retrying', 'run/error']);
  for (const call of told) expect(again(s.store, call)).toBe(call.view.digest);
});

test('usage is what the provider reported for the last step, as long as the view begins where it did', async () => {
  await using s = await served(() => ({ text: 'Fine.', usage: [900, 100] }), { view: { window: 2 } });
  await s.main.run('One.');
  await s.main.run('x'.repeat(400));
  const [first, second] = asked(s.store).map(({ view: told }) => Number(told.tokens));
  // The first is an estimate; the second begins elsewhere than the first, and is one too.
  expect([first ?? 0, second ?? 0].every((tokens) => tokens > 0 && tokens < 200)).toBe(true);
  await using whole = await served(() => ({ text: 'Fine.', usage: [900, 100] }));
  await whole.main.run('One.');
  expect((await whole.main.view()).tokens).toBe(1_000);
  await whole.main.run('x'.repeat(400));
  expect(asked(whole.store).map(({ view: told }) => told.tokens)[1]).toBe(1_100);
});

test("a deck's window limits what its models receive, and a summary covers everything", async () => {
  const sent: string[] = [];
  await using s = await served(
    (request) => {
      sent.push(JSON.stringify(request.messages));
      return { text: `Answer ${sent.length}.` };
    },
    { view: { window: 3 }, compaction: { keep: { turns: 1 } } },
  );
  for (const n of [1, 2, 3]) await s.main.run(`Question ${n} ${'of many words '.repeat(20)}`);
  expect(sent[2]).toContain('Question 2');
  expect(sent[2]).not.toContain('Question 1');
  expect((await s.main.view()).messages).toHaveLength(4);
  const made = await s.main.compact();
  expect(made).toMatchObject({ range: [1, 5] });
  expect(sent[3]).toContain('Question 1');
});

test.each([
  { trigger: 'threshold', view: { window: 3 }, windows: { 'test-model': { window: 2_000 } } },
  { trigger: 'overflow', view: { window: 3 } },
])(
  'a summary within a run, by $trigger and $view, covers everything too',
  async ({ trigger, ...options }) => {
    let wasSummarised = trigger === 'threshold';
    await using s = await serving({
      ...options,
      summarizer: 'openai-compatible/small',
      compaction: { keep: { turns: 1 } },
      answer: () => {
        if (wasSummarised) return { text: 'Fine.' };
        wasSummarised = true;
        return { overflow: true };
      },
    });
    talk(s, 5);
    await s.main.run('Go.');
    expect(summaries(s).map((entry) => stateOf(entry).range)).toEqual([[1, 11]]);
    expect(JSON.stringify(s.asked()[0]?.messages)).toContain('Question 3');
  },
);

test('the environment is recorded once, also after the window has moved on', async () => {
  await using s = await served(() => ({ text: 'Fine.' }), {
    view: { window: 1 },
    prompt: { environment: true },
  });
  for (const text of ['One.', 'Two.', 'Three.']) await s.main.run(text);
  const pins = [...s.store.entries.read('main')].filter(({ name }) => name === 'instructions/environment');
  expect(pins).toHaveLength(1);
});

test('a window never separates a call from its result', async () => {
  await using s = await served(() => ({ text: 'Fine.' }), { view: { window: 2 } });
  s.store.entries.append('main', [user('Go.'), assistant([toolCall('c', 'note', {})])]);
  s.store.entries.append('main', [
    toolResult({ toolCallId: 'c', toolName: 'note' }, 'Noted.'),
    assistant('Done.'),
  ]);
  await s.main.run('And?');
  expect(s.provider.requests).toHaveLength(1);
  expect(JSON.stringify(s.provider.requests[0]?.messages)).not.toContain('tool');
});
