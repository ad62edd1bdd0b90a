import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { delegationTools, openDeck } from '@tapedeck/runtime';
import { pgBoss } from '@tapedeck/runtime/pg-boss';
import { postgres } from '@tapedeck/tape/postgres';
import { tool } from 'ai';
import { z } from 'zod';

/**
 * A process that runs children that others have started: `boss-worker.ts ORDER`, where the order is a `BossOrder` as JSON.
 * It prints `ready` when it works, and the name of each session whose step it begins.
 */
export interface BossOrder {
  /** The address of the home. */
  readonly url: string;
  /** A cassette, from which all of its sessions are answered. */
  readonly script: string;
  readonly concurrency: number;
  readonly stopMs?: number;
  /** How long a tool works. */
  readonly toolMs?: number;
}

const order = JSON.parse(process.argv[2] ?? '') as BossOrder;
const { concurrency, stopMs = 20_000, toolMs = 0 } = order;
const deck = await openDeck({
  store: await postgres(order.url),
  engine: pgBoss(order.url, { concurrency, stopMs }),
  model: `script:${order.script}`,
  env: {},
  limits: { maxChildren: 2_000, maxTree: 2_000, maxSteps: 20 },
  tools: {
    work: tool({
      inputSchema: z.object({ step: z.number() }),
      execute: async ({ step }, { context }) => {
        writeSync(1, `${(context as { session: { name: string } }).session.name} ${step}\n`);
        await sleep(toolMs);
        return `did ${step}`;
      },
    }),
    ...delegationTools(),
  },
});
process.once('SIGTERM', () => void deck.close().then(() => process.exit(0)));
writeSync(1, 'ready\n');
