import { errorText } from '../errors/print.ts';
import { commandLine, safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { PipeClosed } from '../io.ts';
import { type MaskedIo, withSignal } from '../masked-io.ts';
import { counted } from '../output/counted.ts';
import { cutText } from '../terminal/width.ts';
import { isCommand, nextOf, offersFor } from './asked.ts';
import type { Editor } from './editor.ts';
import { openPrompts } from './prompts-file.ts';
import { infoOf, showUnseen, type Talk } from './talk.ts';
import { answerCalls, takeTurn } from './turn.ts';

/** Makes Ctrl-C a key of the line that the user edits, else the end of the act that is under way. */
export function stopper(editor: Editor, io: MaskedIo): Pick<Talk, 'stoppable'> & Disposable {
  let stop: (() => void) | undefined;
  const listening = io.onInterrupt(() => {
    if (!editor.interrupt()) stop?.();
  });
  return {
    stoppable: async (act) => {
      const controller = new AbortController();
      stop = () => controller.abort();
      try {
        return await act(withSignal(io, controller.signal));
      } finally {
        stop = undefined;
      }
    },
    [Symbol.dispose]: () => listening[Symbol.dispose](),
  };
}

/** Reads what the user types, line by line, and does what it asks for until the user leaves. Returns the exit code. */
export async function talkAt(editor: Editor, talk: Talk): Promise<number> {
  const { context } = talk;
  const { io, style } = context;
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
    if (started !== undefined) await takeTurn(talk, () => started, editor);
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
      const { start } = next;
      if (start !== undefined) await takeTurn(talk, () => ({ run: start() }), editor);
    });
    // Nothing of a prompt that was refused is on the tape, so the user need not type it again.
    if (!isDone && !isCommand(line)) text = line;
  }
  await io.out(
    `${style.text('dim', safe(talk.context.inHome(`Left ${talk.session.name}@${infoOf(talk).head}; go on with: ${commandLine('chat', [talk.session.name])}`)))}\n`,
  );
  return exit.done;
}

/** Where the session stands, and how to find help. */
async function standing(talk: Talk): Promise<string> {
  const { session } = talk;
  const { state, queued } = await session.status();
  const parts = [
    `${session.name}@${infoOf(talk).head}`,
    ...(state === 'interrupted' ? ['its last run was cut off (/continue continues it)'] : []),
    ...(queued > 0 ? [`${counted(queued, 'message')} in its inbox (/continue takes them)`] : []),
    '/help lists the commands, Ctrl-D leaves',
  ];
  return parts.join(' · ');
}

/** The prompt: the name of the session, in a third of a narrow terminal. */
function promptOf({ session, context: { io, style } }: Talk): string {
  const name = cutText(safe(session.name).replace(/\s+/g, ' '), Math.max(4, Math.floor(io.columns / 3)));
  return `${style.text('bold', name)}> `;
}
