import { anchor as anchorDraft, handoff as handoffDraft } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { readState, readText } from '../input.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const anchor: Verb = defineVerb({
  command: 'anchor <name> <anchor>',
  group: 'Change direction',
  summary: 'Name this point of a session, with a state',
  detail: 'An anchor is a place to fork from. It does not change what the model sees; for that, see handoff.',
  examples: [[`tape anchor main task-start --state '{"phase":"build"}'`, 'Mark the point before a task']],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Session' })
      .positional('anchor', { type: 'string', demandOption: true, describe: 'Name of the anchor' })
      .option('state', { type: 'string', requiresArg: true, describe: 'JSON object (- for stdin, @FILE)' })
      .option('key', {
        type: 'string',
        requiresArg: true,
        describe: 'Repeating it with this key adds nothing',
      }),
  run: async ({ name, anchor: anchorName, state, key }, context) => {
    const draft = anchorDraft(anchorName, await readState(state, context.io));
    return await write(context, { name, anchorName, draft, key, done: 'Anchored' });
  },
});

export const handoff: Verb = defineVerb({
  command: 'handoff <name> <anchor>',
  group: 'Change direction',
  summary: 'Start the next phase: the view begins here, with a summary',
  detail: 'What came before stays readable; the model sees the summary and state instead.',
  examples: [['tape handoff main design-done --summary "The API is agreed"', 'Begin a new view']],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Session' })
      .positional('anchor', { type: 'string', demandOption: true, describe: 'Name of the anchor' })
      .option('summary', {
        type: 'string',
        requiresArg: true,
        describe: 'What to carry on (- for stdin, @FILE)',
      })
      .option('state', { type: 'string', requiresArg: true, describe: 'JSON object (- for stdin, @FILE)' })
      .option('key', {
        type: 'string',
        requiresArg: true,
        describe: 'Repeating it with this key adds nothing',
      }),
  run: async ({ name, anchor: anchorName, summary, state, key }, context) => {
    const text = summary === undefined ? undefined : await readText(summary, context.io);
    const full = { ...(text !== undefined && { summary: text }), ...(await readState(state, context.io)) };
    return await write(context, {
      name,
      anchorName,
      draft: handoffDraft(anchorName, full),
      key,
      done: 'Handed off',
    });
  },
});

interface Writing {
  readonly name: string;
  readonly anchorName: string;
  readonly draft: ReturnType<typeof anchorDraft>;
  readonly key: string | undefined;
  readonly done: string;
}

async function write(context: Context, { name, anchorName, draft, key, done }: Writing): Promise<number> {
  return await context.changing(async (store) => {
    const { name: session } = needSession(store, name);
    const { to, added } = store.append(session, [draft], { key });
    await context.answer({
      json: { session, seq: to, name: anchorName },
      quiet: `${session}@${to}`,
      human:
        added === 0
          ? `${session}@${to} is there already: nothing to do`
          : `${done} ${anchorName} at ${session}@${to}`,
    });
    return 0;
  });
}
