import { openDeck } from '@tapedeck/runtime';
import { deliveryConfig, deliveryOf } from './deliveries.ts';

/**
 * A process that delivers the messages of one channel in their order: `delivery-worker.ts ORDER`, where the order is a
 * `DeliveryOrder` as JSON. It prints the id of the session.
 */
export interface DeliveryOrder {
  readonly home: string;
  readonly model: string;
  readonly channel: string;
  readonly messages: number;
  /** Runs the session when no other process does. */
  readonly runs: boolean;
}

const { home, model, channel, messages, runs } = JSON.parse(process.argv[2] ?? '') as DeliveryOrder;
await using deck = await openDeck({ home, model, ...deliveryConfig });
// All of them promote the session of the first address.
await deck.route(deliveryOf('imessage'));
let id = '';
for (let i = 0; i < messages; i += 1) {
  const { session, meta } = await deck.route(deliveryOf(channel));
  id = session.id;
  await session.send(`${channel} ${i}`, { meta, key: `${channel}:${i}`, mode: 'collect', start: runs });
}
await deck.idle();
console.log(id);
