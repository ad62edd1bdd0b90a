import { expect, test } from 'vitest';
import { entryLines, scriptedDeck } from '../support/scripted.ts';

test('whoever is told that a run is over may start the next at once, and send to it', async () => {
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
  expect(entryLines(home.store.read('main')).slice(3)).toEqual([
    'user: Two?',
    'assistant: Two.',
    'user: Three?',
    'assistant: Three.',
  ]);
});
