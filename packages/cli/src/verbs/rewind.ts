import type { SessionRewound } from '@tapedeck/runtime';
import type { RewoundMessage } from '@tapedeck/runtime/rewind';
import { deckConfig } from '../config/deck.ts';
import { findConfig } from '../config/find.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { type ModelArgs, runOptions } from '../options/model.ts';
import { count, rewoundJson, tellForks } from '../output/rewound.ts';
import { exitOf, printRuns, resultJson } from '../output/run.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

const modes = ['edit', 'resend'] as const;

export const rewind: Verb = defineVerb({
  command: 'rewind <place>',
  group: 'Change direction',
  summary: 'Go back to before a message of a user, removing nothing',
  detail:
    'The session reads as if it ended right before SESSION@POINT, which must be a message of a user; what is hidden stays on the tape. ' +
    'edit gives the text of the message back, to be changed and sent; resend appends it again, and runs it where --model is given. ' +
    'What tools did is not undone, but for what the hooks of a configuration restore. Refused while the session is being run.',
  examples: [
    ['tape rewind main@42', 'Take main@42 and all after it back, and show what it said'],
    ['tape rewind main@42 --mode resend --model openai-compatible/gpt-oss', 'Have it answered anew'],
    ['tape unrewind main', 'Take that back'],
  ],
  options: (y) =>
    runOptions(y)
      .positional('place', { type: 'string', demandOption: true, describe: 'SESSION@POINT' })
      .option('mode', {
        type: 'string',
        requiresArg: true,
        choices: modes,
        default: 'edit' as const,
        describe: 'What becomes of the message',
      }),
  run: async (args, context) => {
    const { mode, model } = args;
    if (mode === 'edit' && (model !== undefined || args.maxSteps !== undefined))
      throw new UsageError('cannot use --model and --max-steps: nothing is run with --mode edit');
    const config = needsDeck(args, context) ? await deckConfig(args, context) : undefined;
    return await context.changing(async (store) => {
      const { session, point } = readPlace(store, args.place);
      const { id, name } = needSession(store, session);
      if (point === undefined)
        throw new UsageError(`cannot rewind '${name}': no message was named`, {
          hint: `name one of a user: tape rewind ${name}@SEQ; see: tape log ${name} --kind message`,
        });
      if (config === undefined) {
        const { rewindSession } = await import('@tapedeck/runtime/rewind');
        return await print(await rewindSession({ store }, id, { to: point, mode }), context);
      }
      await using deck = await openDeckAt(config, store, context);
      const options = { mode, takeUp: model !== undefined, ...(model !== undefined && { model }) };
      return await print(await (await deck.session(name)).rewind(point, options), context);
    });
  },
});

/** Hooks and models come from a configuration; without one nothing of that is loaded. */
function needsDeck({ model, config }: ModelArgs, { io, home }: Context): boolean {
  if (model !== undefined) return true;
  return config !== false && (config ?? findConfig(io, home)) !== undefined;
}

/** Prints what was done, then the run that answers the message, if there is one. */
async function print(
  rewound: RewoundMessage & Pick<SessionRewound, 'run'>,
  context: Context,
): Promise<number> {
  const { session, seq, to, hidden, message, text, snapshotId, resent, run, warnings } = rewound;
  const json = {
    ...rewoundJson(rewound),
    message,
    text,
    ...(snapshotId !== undefined && { snapshot_id: snapshotId }),
    ...(resent !== undefined && { resent }),
    ...(warnings.length > 0 && { warnings }),
  };
  for (const warning of warnings) context.status(`Warning: ${warning}`);
  tellForks(rewound, context);
  const back = `take it back with: tape unrewind ${session}`;
  const done = `Rewound ${session} to @${to}: ${count(hidden)} hidden, none removed (${back})`;
  if (run === undefined) {
    const rest =
      resent === undefined ? text : `Sent again as ${session}@${resent}: go on with: tape run ${session}`;
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
    await context.io.out(`${JSON.stringify({ ...json, run: ran })}\n`);
  return context.io.interrupted ? exit.interrupted : exitOf(own.result.finish);
}

export const unrewind: Verb = defineVerb({
  command: 'unrewind <place>',
  group: 'Change direction',
  summary: 'Take a rewind of a session back, the last or one that is named',
  detail:
    'What it hid is shown again, and what was said since is hidden. Doing it again takes that back. Files that a hook restored are left ' +
    'as they are. Refused while the session is being run.',
  examples: [
    ['tape unrewind main', 'Show again what the last rewind hid'],
    ['tape unrewind main@42', 'Show again what the rewind at 42 hid, and hide what was said since'],
  ],
  options: (y) =>
    y.positional('place', {
      type: 'string',
      demandOption: true,
      describe: 'SESSION, or SESSION@POINT of a rewind',
    }),
  run: async ({ place }, context) =>
    await context.changing(async (store) => {
      const { unrewindSession } = await import('@tapedeck/runtime/rewind');
      const { session: ref, point } = readPlace(store, place);
      const rewind = { ...(point !== undefined && { rewind: point }) };
      const done = await unrewindSession({ store }, needSession(store, ref).id, rewind);
      const { session, seq, to, hidden, shown } = done;
      tellForks(done, context);
      await context.answer({
        json: rewoundJson(done),
        quiet: `${session}@${seq}`,
        human: `Took the rewind of ${session} back, to @${to}: ${count(shown)} shown again, ${hidden} hidden (again, it undoes this)`,
      });
      return exit.done;
    }),
});
