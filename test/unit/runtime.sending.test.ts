import { setImmediate } from 'node:timers/promises';
import type { SessionEvent } from '@tapedeck/runtime';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { entryLines, eventsOf, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

test('a callback at the end of a run may start the next at once, and send to it', async () => {
  await using home = await scriptedDeck([
    { text: 'One.' },
    { text: 'Two.', delayMs: 20 },
    { text: 'Three.' },
  ]);
  const main = await home.deck.session('main');
  expect(await main.run('One?')).toMatchObject({ text: 'One.' });
  const run = main.run('Two?');
  const sent = await main.send('Three?', { mode: 'followup' });
  expect([sent.state, main.attach()]).toEqual(['queued', run]);
  expect(await run).toMatchObject({ text: 'Two.' });
  await main.idle();
  expect(entryLines(home.store.entries.read('main')).slice(3)).toEqual([
    'user: Two?',
    'assistant: Two.',
    'user: Three?',
    'assistant: Three.',
  ]);
});

test('callbacks of a message receive the events of its run, and its text is what they received', async () => {
  const add = tool({ inputSchema: z.object({}), execute: async () => 3 });
  await using home = await scriptedDeck(
    [{ text: 'I will add.', toolCalls: [{ name: 'add', input: {}, id: 'c1' }] }, { text: 'It is 3.' }],
    { tools: { add } },
  );
  const main = await home.deck.session('main');
  const told: SessionEvent[] = [];
  const tell = (event: SessionEvent) => void told.push(event);
  const { run, text } = await main.send('1 + 2?', {
    on: { 'content-chunk': tell, 'tool-started': tell, 'tool-completed': tell, 'session-completed': tell },
  });
  if (run === undefined) throw new TypeError('a message to an idle session starts a run');
  expect(await text).toBe('I will add.It is 3.');
  const types = new Set(told.map(({ type }) => type));
  expect([...types].sort()).toEqual(['content-chunk', 'session-completed', 'tool-completed', 'tool-started']);
  expect(told).toEqual((await eventsOf(run)).filter(({ type }) => types.has(type)));
});

test('a callback that throws ends neither the run nor the process, whether or not the text is awaited', async () => {
  await using home = await scriptedDeck([{ text: 'Well.' }]);
  const { run, text } = await (await home.deck.session('main')).send('Go', {
    on: {
      'content-chunk': () => {
        throw new Error('the page is gone');
      },
    },
  });
  expect(await run).toMatchObject({ finish: 'stop', text: 'Well.' });
  // An unhandled rejection would by now be the process's.
  await setImmediate();
  await expect(text).rejects.toThrow('the page is gone');
});

test('a session that two callers create and send to at once is one, with one beginning', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }, { text: 'Two.' }], {
    // Two decks look at the clock of one lease.
    store: openStore(':memory:', { now: Date.now }),
  });
  await using other = await openDeck({ store: home.store, model: home.spec });
  const handle = async (deck: typeof other, text: string) => await (await deck.session('new')).send(text);
  const sent = await Promise.all([handle(home.deck, 'A'), handle(other, 'B')]);
  await Promise.all(sent.map(({ run }) => run));
  for (const deck of [home.deck, other]) await (await deck.session('new')).idle();
  expect(home.store.sessions.list().filter(({ session: name }) => name === 'new')).toHaveLength(1);
  const lines = entryLines(home.store.entries.read('new'));
  expect(lines.filter((line) => line === 'anchor session/start')).toHaveLength(1);
  expect(lines.filter((line) => line.startsWith('user')).sort()).toEqual(['user: A', 'user: B']);
  expect(lines.filter((line) => line.startsWith('assistant'))).toEqual([
    'assistant: One.',
    'assistant: Two.',
  ]);
});

test('a session that is opened again has the same beginning, and its view starts at the last handoff', async () => {
  await using home = await scriptedDeck([{ text: 'Hello.' }, { text: 'Yes.' }]);
  const main = await home.deck.session('main');
  await main.run('Hi');
  await main.handoff('next', { summary: 'They greeted.', state: { mood: 'good' } });
  await using other = await openDeck({ store: home.store, model: home.spec });
  const again = await other.session('main');
  expect(await again.run('Still there?')).toMatchObject({ text: 'Yes.' });
  const lines = entryLines(home.store.entries.read('main'));
  expect(lines.filter((line) => line === 'anchor session/start')).toHaveLength(1);
  const [state] = (await again.view()).messages;
  expect(JSON.stringify(state)).toContain('They greeted.');
  expect(JSON.stringify(state)).toContain('good');
  expect(JSON.stringify(state)).not.toContain('Hello.');
});
