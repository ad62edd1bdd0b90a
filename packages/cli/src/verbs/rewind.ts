import type { RewoundMessage, SessionRewound } from '@tapedeck/runtime';
import { deckConfig } from '../config/deck.ts';
import { findConfig } from '../config/find.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { type ModelArgs, namedIn, runOptions } from '../options/model.ts';
import { reportForks, rewoundJson, rewoundLine } from '../output/rewound.ts';
import { exitOf, printRuns, resultJson } from '../output/run.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

const modes = ['edit', 'resend'] as const;

export const rewind: Verb = defineVerb({
  command: 'rewind <place>',
  group: 'Change',
  summary: 'Rewind a session to before a user message',
  detail:
    'The session reads as if it ended before SESSION@POINT, a user message; hidden entries stay on the tape. --mode edit prints ' +
    'the text of the message, to be edited and sent; resend appends the message again, and runs it if --model is given. Side ' +
    'effects of tools are not undone, except those that configured hooks restore. Refused while the session has an active run.',
  examples: [
    ['tape rewind main@42', 'Hide main@42 and the entries after it, and print its text'],
    ['tape rewind main@42 --mode resend --model openai-compatible/gpt-oss', 'Answer the message again'],
    ['tape undo main', 'Undo the rewind'],
  ],
  arguments: { place: 'SESSION@POINT' },
  options: {
    ...runOptions,
    mode: {
      type: 'string',
      choices: modes,
      default: 'edit' as const,
      describe: 'Print the message for editing, or append it again',
    },
  },
  run: async (args, context) => {
    const { mode, model } = args;
    const named = namedIn(args);
    if (mode === 'edit' && (Object.keys(named).length > 0 || args.maxSteps !== undefined))
      throw new UsageError(
        'cannot use --model, --temperature, --effort or --max-steps with --mode edit: it runs no model',
      );
    const config = needsDeck(args, context) ? await deckConfig(args, context) : undefined;
    return await context.changing(async (store) => {
      const { session, point } = readPlace(store, args.place);
      const { id, session: name } = needSession(store, session);
      if (point === undefined)
        throw new UsageError(`cannot rewind '${name}': it is a session, not a message`, {
          hint: `name a user message: ${commandLine('rewind', [`${name}@SEQ`])}; list them with: ${commandLine('log', [name], ['--kind message'])}`,
        });
      if (config === undefined) {
        const { rewindSession } = await import('@tapedeck/runtime');
        return await print(await rewindSession({ store }, id, { to: point, mode, ...named }), context);
      }
      await using deck = await openDeckAt(config, store, context);
      const options = { mode, start: model !== undefined, ...named };
      return await print(await (await deck.session(name)).rewind(point, options), context);
    });
  },
});

/** Whether the rewind needs a deck: a model or a configuration, which may have hooks. */
function needsDeck({ model, config }: ModelArgs, { io, home }: Context): boolean {
  if (model !== undefined) return true;
  return config !== false && (config ?? findConfig(io, home)) !== undefined;
}

/** Prints the receipt, then the run that answers the message, if one was started. */
async function print(
  rewound: RewoundMessage & Pick<SessionRewound, 'run'>,
  context: Context,
): Promise<number> {
  const { session, seq, message, text, snapshotId, resent, run, warnings } = rewound;
  const json = {
    ...rewoundJson(rewound),
    message,
    text,
    ...(snapshotId !== undefined && { snapshot_id: snapshotId }),
    ...(resent !== undefined && { resent }),
    ...(warnings.length > 0 && { warnings }),
  };
  for (const warning of warnings) context.status(`Warning: ${warning}`);
  reportForks(rewound, context);
  const done = context.inHome(rewoundLine(rewound));
  if (run === undefined) {
    const rest =
      resent === undefined
        ? text
        : context.inHome(`Sent again as ${session}@${resent}; run it with: ${commandLine('run', [session])}`);
    await context.answer({ json, quiet: `${session}@${seq}`, human: `${done}\n${rest}` });
    return exit.done;
  }
  context.status(done);
  const [own, ...others] = await printRuns(run, context);
  if (own === undefined) throw new TypeError('a run that was printed has a result');
  const ran = resultJson(
    own.result,
    others.map(({ result }) => result),
  );
  if (context.options.json === true || context.options.jsonl === true)
    await context.print({ ...json, run: ran });
  return context.io.interrupted ? exit.interrupted : exitOf(own.result.finish);
}
