import type { Status } from '@tapedeck/runtime';
import { exit } from '../exit.ts';
import { printStatuses } from '../output/status.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const wait: Verb = defineVerb({
  command: 'wait <names..>',
  group: 'Run',
  summary: 'Wait until sessions are idle',
  detail:
    'Exits 6 where a session waits for the answer to a call, as its run does; with --any, where no other one is idle.',
  examples: [
    ['tape wait main', 'Wait until main has finished its run and its inbox'],
    ['tape wait main other --any --timeout 60', 'Wait until one of them is idle, at most a minute'],
  ],
  arguments: { names: 'Sessions' },
  options: {
    any: { type: 'boolean', describe: 'Wait until one of them is idle' },
    timeout: { type: 'number', describe: 'Maximum number of seconds to wait (default: no limit)' },
  },
  run: async ({ names, any, timeout }, context) =>
    await context.reading(async (store) => {
      const infos = names.map((name) => needSession(store, name));
      const { statusesOf, untilIdle } = await import('@tapedeck/runtime');
      const { signal } = context.io;
      const over = timeout === undefined ? undefined : AbortSignal.timeout(timeout * 1000);
      let isOver = true;
      try {
        await untilIdle(
          store,
          infos.map(({ id }) => id),
          { any: any === true, signal: over === undefined ? signal : AbortSignal.any([signal, over]) },
        );
      } catch (error) {
        if (over?.aborted !== true || signal.aborted) throw error;
        isOver = false;
      }
      const statuses = await statusesOf({ store, home: context.home.dir }, infos);
      await printStatuses(statuses, context);
      const waiting = statuses.filter(({ state }) => state === 'waiting');
      const isDone = waiting.length === 0 || (any === true && statuses.some(({ state }) => isAtRest(state)));
      return isOver && isDone ? exit.done : exit.accepted;
    }),
});

/** Whether a session neither runs nor waits for the answer to a call. */
function isAtRest(state: Status['state']): boolean {
  return state !== 'busy' && state !== 'retrying' && state !== 'waiting';
}
