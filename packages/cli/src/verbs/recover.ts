import { deckConfig } from '../config/deck.ts';
import { safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { runOptions } from '../options/model.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const recover: Verb = defineVerb({
  command: 'recover [name]',
  group: 'Trust',
  summary: 'Go on with delegated children whose process was killed, and merge them',
  detail:
    'Each child goes on from its last recorded step: no recorded answer is asked for again, and no call that may have been run is ' +
    'run again. Children that have ended are merged. Those that another process is running are left to it, but not those that it ' +
    'has not started yet: recover when the process that delegated is gone.',
  examples: [
    ['tape recover --model openai-compatible/gpt-oss', 'Go on with all that was interrupted'],
    ['tape recover main --abort', 'End the children of main; main is told that they were aborted'],
  ],
  options: (y) =>
    runOptions(y)
      .positional('name', { type: 'string', describe: 'Only this session and what was forked below it' })
      .option('abort', { type: 'boolean', describe: 'End them instead of going on' })
      .option('wait', {
        type: 'number',
        default: 10,
        describe: 'Seconds to wait for a busy parent; --no-wait for none',
      }),
  run: async (args, context) => {
    const { name, abort, wait } = args;
    const { io, answer } = context;
    // Ending children runs no model, and so nobody's code.
    const config = abort === true ? {} : await deckConfig(args, context);
    return await context.changing(async (store) => {
      const session = name === undefined ? undefined : needSession(store, name).name;
      await using deck = await openDeckAt(config, store, context);
      const report = await deck.recover({
        ...(args.model !== undefined && { model: args.model }),
        ...(session !== undefined && { session }),
        ...(abort === true && { abort: true }),
        waitMs: typeof wait === 'number' ? wait * 1000 : 0,
        signal: io.signal,
      });
      const { resumed, aborted, merged, waiting, busy, failed } = report;
      const line = (what: string, names: readonly string[]) =>
        names.length === 0 ? [] : [`${what} ${names.join(', ')}`];
      const lines = [
        ...line('Went on with', resumed),
        ...line('Aborted', aborted),
        ...line('Merged', merged),
        ...line('Waiting for an answer (tape status):', waiting),
        ...line('Left to others:', busy),
        ...failed.map(({ session, message }) => `${session}: ${message}`),
      ];
      await answer({
        json: { resumed, aborted, merged, waiting, busy, failed },
        quiet: merged.join('\n'),
        human: safe(lines.length === 0 ? 'Nothing to recover' : lines.join('\n')),
      });
      if (failed.length > 0) return exit.failed;
      return busy.length + waiting.length === 0 ? exit.done : exit.accepted;
    });
  },
});
