import { anchor as anchorDraft, handoff as handoffDraft } from '@tapedeck/tape';
import { assertActive } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { commandLine } from '../escape.ts';
import { readState, readText } from '../input.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const anchor: Verb = defineVerb({
  command: 'anchor <name> <anchor>',
  group: 'Change',
  summary: 'Mark the current point of a session with a name and a state',
  detail: 'Forks can start at an anchor. An anchor does not change the view of the model; a handoff does.',
  examples: [[`tape anchor main task-start --state '{"phase":"build"}'`, 'Mark the point before a task']],
  arguments: { name: 'Session', anchor: 'Name of the anchor' },
  options: {
    state: { type: 'string', describe: 'State of the anchor: a JSON object (- for stdin, @FILE)' },
    key: { type: 'string', describe: 'Idempotency key: a repeat adds nothing' },
  },
  run: async ({ name, anchor: anchorName, state, key }, context) => {
    const draft = anchorDraft(anchorName, await readState(state, context.io));
    return await write(context, { name, anchorName, draft, key, done: 'Anchored', act: 'anchor' });
  },
});

export const handoff: Verb = defineVerb({
  command: 'handoff <name> <anchor>',
  group: 'Change',
  summary: 'Start a new view here, with a summary',
  detail: 'The model sees the summary and the state in place of the earlier entries, which stay readable.',
  examples: [['tape handoff main design-done --summary "The API is agreed"', 'Begin a new view']],
  arguments: { name: 'Session', anchor: 'Name of the anchor' },
  options: {
    summary: { type: 'string', describe: 'Summary that starts the new view (- for stdin, @FILE)' },
    state: { type: 'string', describe: 'State of the anchor: a JSON object (- for stdin, @FILE)' },
    key: { type: 'string', describe: 'Idempotency key: a repeat adds nothing' },
  },
  run: async ({ name, anchor: anchorName, summary, state, key }, context) => {
    const text = summary === undefined ? undefined : await readText(summary, context.io);
    const full = { ...(text !== undefined && { summary: text }), ...(await readState(state, context.io)) };
    return await write(context, {
      name,
      anchorName,
      draft: handoffDraft(anchorName, full),
      key,
      done: 'Handed off',
      act: 'hand off',
    });
  },
});

interface Writing {
  readonly name: string;
  readonly anchorName: string;
  readonly draft: ReturnType<typeof anchorDraft>;
  readonly key: string | undefined;
  readonly done: string;
  /** The act, for errors: `anchor`. */
  readonly act: string;
}

async function write(
  context: Context,
  { name, anchorName, draft, key, done, act }: Writing,
): Promise<number> {
  return await context.changing(async (store) => {
    const info = needSession(store, name);
    assertActive(info, act);
    const session = info.session;
    const { to, added } = store.entries.append(session, [draft], { key });
    await context.answer({
      json: { session, seq: to, name: anchorName },
      quiet: `${session}@${to}`,
      human:
        added === 0
          ? `${session}@${to} exists already: nothing to do`
          : context.inHome(
              `${done} ${anchorName} at ${session}@${to} (undo with: ${commandLine('undo', [`${session}@${to}`])})`,
            ),
    });
    return 0;
  });
}
