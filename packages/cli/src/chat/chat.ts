/**
 * The conversation of `tape chat`. `chat.ts` opens its session. `at-terminal.ts` reads what the user types with
 * `editor.ts`, which knows the keys of `keys.ts`; without a terminal `in-lines.ts` reads lines of stdin. `asked.ts` finds what a
 * line asks for among the commands of `commands.ts`, `turn.ts` shows a run and asks for approvals, and `face.ts` draws
 * its calls. Imports `session`, `config` and what lies below.
 */
import { getModelFor } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { type ModelArgs, namedIn } from '../options/model.ts';
import { ensure } from '../session/ensure.ts';
import { meantSession } from '../session/meant.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { usableConfig } from '../session/sent.ts';
import { stopper, talkAt } from './at-terminal.ts';
import { Editor } from './editor.ts';
import { talkInLines } from './in-lines.ts';
import type { Talk } from './talk.ts';

export interface ChatArgs extends ModelArgs {
  readonly name: string;
  readonly new?: boolean | undefined;
}

/** Holds a conversation with a session until the user leaves, and returns the exit code. */
export async function chat(args: ChatArgs, context: Context): Promise<number> {
  const { io, options } = context;
  const config = await usableConfig(args, context);
  await getModelFor({ name: args.name, creates: true, isNew: args.new }, config, context);
  const isForProgram = options.json === true || options.jsonl === true || options.quiet === true;
  const terminal = isForProgram ? undefined : io.terminal();
  return await context.writing(async (store) => {
    const editor =
      terminal === undefined ? undefined : new Editor(terminal, { marksPastes: io.env.TERM !== 'dumb' });
    using stops = editor === undefined ? undefined : stopper(editor, io);
    const meant = await meantSession(store, args.name, {
      isNew: args.new,
      context,
      ...(editor !== undefined && { asking: (question: string) => linesTyped(editor, question) }),
    });
    const name = ensure(store, meant, context);
    await using deck = await openDeckAt(config, store, context);
    const talk: Talk = {
      store,
      deck,
      context,
      session: await deck.session(name),
      configured: config.model,
      named: namedIn(args),
      seen: 0,
      stoppable: stops?.stoppable ?? (async (act) => await act(io)),
      calls: new Map(),
    };
    return editor === undefined ? await talkInLines(talk) : await talkAt(editor, talk);
  });
}

/** The lines that a user types in answer to a question, until one is the answer. */
async function* linesTyped(editor: Editor, question: string): AsyncGenerator<string> {
  for (;;) {
    const line = await editor.ask(question, { isQuestion: true });
    if (line === undefined) return;
    yield line;
  }
}
