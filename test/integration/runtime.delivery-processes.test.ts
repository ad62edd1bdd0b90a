import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { channels, deliveryConfig, deliveryFaults, deliveryOf } from '../support/deliveries.ts';
import type { DeliveryOrder } from '../support/delivery-worker.ts';
import { program } from '../support/programs.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const messages = sized(34, 40, 334);

test('eight processes that deliver the first messages of one person leave one session, with each once and in order', async () => {
  using home = tempHome();
  writeFileSync(
    home.file('answers.json'),
    JSON.stringify(Array.from({ length: 2000 }, () => ({ text: 'Yes.' }))),
  );
  const model = `script:${home.file('answers.json')}`;
  {
    await using first = await openDeck({ home: home.path, model, ...deliveryConfig });
    await first.route(deliveryOf('imessage', false));
  }
  const ids = await Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      const channel = channels[i % channels.length] ?? channels[0];
      const order: DeliveryOrder = { home: home.path, model, channel, messages, runs: i < 2 };
      const { stdout } = await promisify(execFile)(process.execPath, [
        ...program('delivery-worker.ts'),
        JSON.stringify(order),
      ]);
      return stdout;
    }),
  );
  expect(new Set(ids).size).toBe(1);
  await using last = await openDeck({ home: home.path, model, ...deliveryConfig });
  await (await last.identities.resolve('dm:entity_mom')).session.run();
  using store = home.open();
  expect(deliveryFaults(store, messages)).toEqual([]);
}, 300_000);
