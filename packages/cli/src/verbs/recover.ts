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
  summary: 'Continue delegated children whose process was killed, and merge them',
  detail:
    'Each child continues from its last recorded step: recorded answers are not requested again, and calls that may have run do ' +
    'not run again. Ended children are merged. Skips children that another process runs, but takes over children that it has ' +
    'not started yet: recover after the process that delegated has ended.',
  examples: [
    ['tape recover --model openai-compatible/gpt-oss', 'Continue all interrupted children'],
    ['tape recover main --abort', 'Abort the children of main, and merge that outcome into main'],
  ],
  options: (y) =>
    runOptions(y)
      .positional('name', { type: 'string', describe: 'Only this session and its descendants' })
      .option('abort', { type: 'boolean', describe: 'Abort the children instead of continuing them' })
      .option('wait', {
        type: 'number',
        default: 10,
        describe: 'Seconds to wait for a busy parent; --no-wait: do not wait',
      }),
  run: async (args, context) => {
    const { name, abort, wait } = args;
    const { io, answer } = context;
    // Aborting children calls no model, and so needs no configuration, which is code.
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
        ...line('Continued', resumed),
        ...line('Aborted', aborted),
        ...line('Merged', merged),
        ...line('Waiting for an answer (tape status):', waiting),
        ...line('Running in other processes:', busy),
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
