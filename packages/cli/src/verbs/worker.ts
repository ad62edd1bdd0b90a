import { deckConfig } from '../config/deck.ts';
import { serverOf } from '../config/engine.ts';
import { UsageError } from '../errors/kinds.ts';
import { processOptions } from '../options/model.ts';
import { defineVerb, type Verb } from './verb.ts';

/** The most children of a depth that a worker takes: each place asks the server once a second. */
const mostPlaces = 200;

export const worker: Verb = defineVerb({
  command: 'worker',
  group: 'Run',
  summary: 'Run the children that sessions of a home on a server delegate',
  detail:
    'Takes children from the queue of the home until it is stopped, whichever machine delegated them, and merges their results. ' +
    'Model, tools, permissions and keys are those of this process; a child brings its instructions, limits, the names of its ' +
    'tools, and its model if it has its own. With Ctrl-C or SIGTERM it takes nothing more, finishes what it runs, for at most 20 seconds, leaves the rest to other ' +
    'workers, and exits 0; a second one ends it at once. Children of a worker that was killed go on in another within 15 seconds. Says on stderr when a child starts and ends. ' +
    '--health exits 0 while the server answers, the home and its queues are there, and a worker of this machine is alive. ' +
    'See docs/workers.md.',
  examples: [
    ['tape worker --home postgres://db.example.org/team', 'Run children of that home until Ctrl-C'],
    ['tape worker --concurrency 2 --model openai-compatible/gpt-oss', 'At most two of each depth at once'],
    ['tape worker --health', 'Exit 0 while a worker of this machine is alive'],
  ],
  options: {
    ...processOptions,
    concurrency: {
      type: 'number',
      describe: 'Children of each depth to run at once (default: limits.concurrent_children, else 8)',
    },
    health: { type: 'boolean', describe: 'Say whether a worker of this machine is alive, and run nothing' },
  },
  conflicts: { health: ['concurrency', ...Object.keys(processOptions)] },
  run: async (args, context) => {
    const server = serverOf(context.home, 'run a worker');
    if (args.health === true) {
      const { health } = await import('../worker/health.ts');
      return await health(server, context);
    }
    const config = await deckConfig(args, context);
    const { limitsOf } = await import('@tapedeck/runtime/internal');
    const { concurrentChildren, maxDepth } = limitsOf(config);
    const { concurrency = concurrentChildren } = args;
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > mostPlaces)
      throw new UsageError(
        `cannot run ${concurrency} children of each depth at once: --concurrency is a whole number from 1 to ${mostPlaces}`,
        {
          hint:
            concurrency > mostPlaces
              ? `start several workers, each with: tape worker --concurrency ${mostPlaces}`
              : 'start one with: tape worker --concurrency 1',
        },
      );
    const { work } = await import('../worker/worker.ts');
    return await work({ server, config, concurrency, maxDepth }, context);
  },
});
