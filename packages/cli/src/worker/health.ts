import { hostname } from 'node:os';
import type { QueueState } from '@tapedeck/runtime/pg-boss';
import { queueOf } from '../config/engine.ts';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import type { Address } from '../server-home.ts';

/** Says whether a worker of this machine is alive, for a probe. @throws why the home or its queues cannot be read */
export async function health(server: Address, context: Context): Promise<number> {
  // This also checks its schema.
  await context.reading(async () => {});
  const { queues, workers, waiting, running } = await queueOf(server);
  const why = whyNot({ queues, workers }, hostname());
  const all = `${counted(workers.length, 'worker')}, ${counted(waiting, 'child', 'children')} waiting, ${running} running`;
  await context.answer({
    json: {
      healthy: why === undefined,
      ...(why !== undefined && { why }),
      workers: workers.map(({ host, pid, seenAt }) => ({ host, pid, seen_at: seenAt.toISOString() })),
      waiting,
      running,
    },
    quiet: '',
    human: why === undefined ? `Healthy: ${all}` : `Not healthy: ${why} (${all})`,
  });
  return why === undefined ? exit.done : exit.failed;
}

function whyNot(
  { queues, workers }: Pick<QueueState, 'queues' | 'workers'>,
  machine: string,
): string | undefined {
  if (queues.length === 0) return 'the home has no queue yet: no worker has run';
  if (workers.some(({ host }) => host === machine)) return undefined;
  return `no worker of this machine, ${machine}, is alive`;
}
