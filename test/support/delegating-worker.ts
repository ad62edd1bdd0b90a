import { delegationTools, openDeck } from '@tapedeck/runtime';
import { openTapeStore } from '@tapedeck/tape';
import { tool } from 'ai';
import { z } from 'zod';

/**
 * A process that answers one message with a model that delegates, over HTTP: `delegating-worker.ts ORDER`, where the
 * order is a `DelegatingOrder` as JSON. It prints how its run ends.
 */
export interface DelegatingOrder {
  readonly db: string;
  /** A model spec; its provider's package finds server and key in the environment. */
  readonly model: string;
}

const order = JSON.parse(process.argv[2] ?? '') as DelegatingOrder;
using store = openTapeStore(order.db);
await using deck = await openDeck({
  store,
  model: order.model,
  env: process.env,
  instructions: 'You keep the shop.',
  tools: {
    look: tool({ inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => `saw ${at}` }),
    ...delegationTools(),
  },
});
const main = await deck.session('main');
const { finish, text } = await main.run('What is in the shop?');
console.log(JSON.stringify({ finish, text }));
