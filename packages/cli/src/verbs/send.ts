import { randomUUID } from 'node:crypto';
import type { QueueMode, Session } from '@tapedeck/runtime';
import { UsageError } from '../errors/kinds.ts';
import { readText } from '../input.ts';
import { runOptions } from '../options/model.ts';
import { ensure } from '../session/ensure.ts';
import { configUnlessRun, sendAndFollow } from '../session/sent.ts';
import { defineVerb, type Verb } from './verb.ts';

const modes: Readonly<Record<QueueMode, true>> = {
  interrupt: true,
  steer: true,
  followup: true,
  collect: true,
  'steer-backlog': true,
  queue: true,
};

export const send: Verb = defineVerb({
  command: 'send <name> <text>',
  group: 'Start',
  summary: 'Leave a message for a session, whether or not it is being run',
  detail:
    'It is on disk once this tells so. When nobody is running the session, it is run here, as by run; else whoever runs it takes the ' +
    'message up, and this exits 6. Modes: queue and followup wait for their turn, collect for one run with all others that ' +
    'collect; steer is seen by the next step of the run, steer-backlog too if there is one; interrupt stops the run.',
  examples: [
    [
      'tape send main "And the changelog?" --model openai-compatible/gpt-oss',
      'Answered here, or by who runs main',
    ],
    ['tape send main "Use the other branch" --mode steer', 'Seen by the next step of the run under way'],
    [
      'tape send main "Nightly check" --source timer --key check-2026-11-21',
      'Once, however often it is sent',
    ],
  ],
  options: (y) =>
    runOptions(y)
      .positional('name', { type: 'string', demandOption: true, describe: 'Session; made if there is none' })
      .positional('text', {
        type: 'string',
        demandOption: true,
        describe: 'What to say (- for stdin, @FILE)',
      })
      .option('mode', {
        type: 'string',
        requiresArg: true,
        choices: Object.keys(modes),
        describe:
          'What it does to a run under way (default: queue; in a session of kind manager by its source)',
      })
      .option('source', {
        type: 'string',
        requiresArg: true,
        describe: 'Who says it: user, agent, timer, …',
      })
      .option('key', {
        type: 'string',
        requiresArg: true,
        describe: 'The same key sent twice is one message',
      })
      .option('wait', {
        type: 'number',
        requiresArg: true,
        default: 0,
        describe: 'Seconds to wait for who runs it to take the message up',
      }),
  run: async (args, context) => {
    const { name, text, mode, source, key = randomUUID() } = args;
    const said = await readText(text, context.io);
    if (said.trim() === '') throw new UsageError('cannot send: the text is empty');
    if (key === '' || source === '')
      throw new UsageError('cannot send: --key and --source must not be empty');
    const config = await configUnlessRun(args, context);
    return await context.writing(async (store) => {
      const session = ensure(store, name, context);
      const options = {
        key,
        ...(mode !== undefined && { mode: mode as QueueMode }),
        ...(source !== undefined && { source }),
        ...(args.model !== undefined && { model: args.model }),
      };
      const leave = (to: Session, takeUp: boolean) => to.send(said, { ...options, takeUp });
      return await sendAndFollow({ store, session, config, send: leave, what: 'the message' }, args, context);
    });
  },
});
