/**
 * The conversation of `tape chat`. `chat.ts` opens its session and reads what the user types: at a terminal with
 * `editor.ts`, which knows the keys of `keys.ts`, else from lines of stdin, in `in-lines.ts`. `asked.ts` finds what a
 * line asks for among the commands of `commands.ts`, `turn.ts` shows a run and asks for approvals, and `face.ts` draws
 * its calls. Imports `session`, `config` and what lies below.
 */
import { getModelFor } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { errorText } from '../errors/print.ts';
import { safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { PipeClosed } from '../io.ts';
import { type ModelArgs, namedIn } from '../options/model.ts';
import { ensure } from '../session/ensure.ts';
import { meantSession } from '../session/meant.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { usableConfig } from '../session/sent.ts';
import { cutText } from '../terminal/width.ts';
import { isCommand, nextOf, offersFor } from './asked.ts';
import { Editor } from './editor.ts';
import { talkInLines } from './in-lines.ts';
import { openPrompts } from './prompts-file.ts';
import { infoOf, showUnseen, type Talk } from './talk.ts';
import { answerCalls, takeTurn } from './turn.ts';

export interface ChatArgs extends ModelArgs {
  readonly name: string;
  readonly new?: boolean | undefined;
}

/** Holds a conversation with a session until the user leaves, and returns the exit code. */
export async function chat(args: ChatArgs, context: Context): Promise<number> {
  const { io, options } = context;
  const config = await usableConfig(args, context);
  await getModelFor(args.name, config, context);
  const isForProgram = options.json === true || options.jsonl === true || options.quiet === true;
  const terminal = isForProgram ? undefined : io.terminal();
  return await context.writing(async (store) => {
    const editor =
      terminal === undefined ? undefined : new Editor(terminal, { marksPastes: io.env.TERM !== 'dumb' });
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

async function talkAt(editor: Editor, talk: Talk): Promise<number> {
  const { context } = talk;
  const { io, style } = context;
  let stop: (() => void) | undefined;
  using _ = io.onInterrupt(() => {
    if (!editor.interrupt()) stop?.();
  });
  const at = {
    editor,
    stopsWith: (given: typeof stop) => {
      stop = given;
    },
  };
  const prompts = openPrompts(context);
  await showUnseen(talk);
  await io.out(`${style.text('dim', safe(await standing(talk)))}\n`);
  /** Does an act, or says why it failed; false then. */
  const did = async (act: () => Promise<void>): Promise<boolean> => {
    try {
      await act();
      return true;
    } catch (error) {
      if (error instanceof PipeClosed) throw error;
      io.err(errorText(error, { asJson: false }));
      return false;
    }
  };
  await did(async () => {
    const { waiting } = await talk.session.status();
    const started = waiting.length === 0 ? undefined : await answerCalls(talk, editor);
    if (started !== undefined) await takeTurn(talk, () => started.run, at);
  });
  for (let text = '', isOver = false; !isOver; ) {
    await showUnseen(talk);
    const line = await editor.ask(promptOf(talk), {
      text,
      history: prompts.read(),
      offers: (typed) => offersFor(talk, typed),
    });
    text = '';
    if (line === undefined) break;
    if (line.trim() === '') continue;
    prompts.add(line);
    const isDone = await did(async () => {
      await showUnseen(talk);
      const next = await nextOf(talk, line);
      isOver = next.leaves === true;
      text = next.text ?? '';
      if (next.start !== undefined) await takeTurn(talk, next.start, at);
    });
    // Nothing of a prompt that was refused is on the tape, so the user need not type it again.
    if (!isDone && !isCommand(line)) text = line;
  }
  await io.out(
    `${style.text('dim', safe(`Left ${talk.session.name}@${infoOf(talk).head}; go on with: tape chat ${talk.session.name}`))}\n`,
  );
  return exit.done;
}

/** Where the session stands, and how to find help. */
async function standing(talk: Talk): Promise<string> {
  const { session } = talk;
  const { state } = await session.status();
  const rest = state === 'interrupted' ? 'its last run was cut off (/continue continues it) · ' : '';
  return `${session.name}@${infoOf(talk).head} · ${rest}/help lists the commands, Ctrl-D leaves`;
}

/** The prompt: the name of the session, in a third of a narrow terminal. */
function promptOf({ session, context: { io, style } }: Talk): string {
  const name = cutText(safe(session.name).replace(/\s+/g, ' '), Math.max(4, Math.floor(io.columns / 3)));
  return `${style.text('bold', name)}> `;
}
