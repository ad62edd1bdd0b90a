import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { channels, deliveryConfig, deliveryFaults, deliveryOf } from '../support/deliveries.ts';
import { tempHome } from '../support/temp-home.ts';

test('decks that deliver the messages of one person leave one session, with each message once and in order', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'Yes.' }, { text: 'Yes.' }]));
  const options = { home: home.path, model: `script:${home.file('answers.json')}`, ...deliveryConfig };
  {
    await using first = await openDeck(options);
    await first.route(deliveryOf('imessage', false));
  }
  const deliver = async (channel: string) => {
    await using deck = await openDeck(options);
    await deck.route(deliveryOf('imessage'));
    for (let i = 0; i < 5; i += 1) {
      const { session, meta } = await deck.route(deliveryOf(channel));
      await session.send(`${channel} ${i}`, { meta, key: `${channel}:${i}`, mode: 'collect', start: false });
    }
  };
  await Promise.all([...channels, ...channels].map(deliver));
  {
    await using last = await openDeck(options);
    await (await last.identities.resolve('dm:entity_mom')).session.run();
  }
  using store = home.open();
  expect(deliveryFaults(store, 5)).toEqual([]);
});
