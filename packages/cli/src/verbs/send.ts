import { randomUUID } from 'node:crypto';
import type { QueueMode, Session } from '@tapedeck/runtime';
import { UsageError } from '../errors/kinds.ts';
import { readWords } from '../input.ts';
import { authorIn, authorOptions } from '../options/author.ts';
import { createOptions } from '../options/create.ts';
import { namedIn, runOptions } from '../options/model.ts';
import { ensure } from '../session/ensure.ts';
import { meantSession } from '../session/meant.ts';
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
  command: 'send <name> <text..>',
  group: 'Run',
  summary: 'Send a message to a session, running or idle',
  detail:
    'If the session has no active run, runs it in this process, as run does. Otherwise posts the message to its inbox for the ' +
    'process that runs it, and exits 6; the message is on disk then. Modes: queue and followup wait for their turn; collect waits ' +
    'for one run together with other collected messages; steer joins the next step of the run; steer-backlog does so if a run is ' +
    'active; interrupt stops the run. A message denies the pending calls of an idle session as superseded, and says so on stderr: ' +
    'answer them before with approve.',
  examples: [
    [
      'tape send main "And the changelog?" --model openai-compatible/gpt-oss',
      'Answer here, or in the process that runs main',
    ],
    ['tape send main Use the other branch --mode steer', 'Steer the next step of the active run'],
    [
      'tape send main "Nightly check" --source timer --key check-2026-11-21',
      'Send once, even if the command repeats',
    ],
  ],
  arguments: {
    name: 'Session; created if it does not exist',
    text: 'Message (- for stdin, @FILE); its words need no quotes',
  },
  options: {
    ...createOptions,
    ...runOptions,
    ...authorOptions,
    mode: {
      type: 'string',
      choices: Object.keys(modes),
      describe: 'Queue mode during an active run (default: queue; for kind manager, by source)',
    },
    source: { type: 'string', describe: 'Source of the message: user, agent, timer, cron:JOB, …' },
    key: { type: 'string', describe: 'Idempotency key: a repeat sends nothing' },
    wait: {
      type: 'number',
      negatable: true,
      default: 0,
      describe: 'Seconds to wait until the process that runs the session takes the message',
    },
  },
  run: async (args, context) => {
    const { name, text, mode, source, key = randomUUID() } = args;
    const message = await readWords(text, context.io);
    if (message.trim() === '') throw new UsageError('cannot send: the text is empty');
    if (key === '' || source === '')
      throw new UsageError('cannot send: --key and --source must not be empty');
    const { sourceFault } = await import('@tapedeck/runtime/internal');
    const fault = sourceFault(source);
    if (fault !== undefined) throw new UsageError(`cannot send: ${fault}`);
    const author = authorIn(args);
    const config = await configUnlessRun(args, context, { creates: true });
    return await context.writing(async (store) => {
      const meant = await meantSession(store, name, { isNew: args.new, context });
      const session = ensure(store, meant, context);
      const options = {
        key,
        ...(mode !== undefined && { mode: mode as QueueMode }),
        ...(source !== undefined && { source }),
        ...namedIn(args),
        ...author,
      };
      const post = (to: Session, start: boolean) => to.send(message, { ...options, start: start });
      return await sendAndFollow({ store, session, config, send: post, what: 'the message' }, args, context);
    });
  },
});
