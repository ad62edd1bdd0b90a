import type { Context } from '../context.ts';
import { isLarge } from '../home.ts';
import { openProgressLine, type ShowProgress } from '../progress-line.ts';

type Acting = Pick<Context, 'io' | 'options' | 'home'>;

/**
 * Shows how far an act is, in one line of the terminal, which it removes after it.
 * @param act its argument makes a receiver of progress, for a part of the act
 */
export async function withProgress<T>(
  { io, options, home }: Acting,
  act: (progress: (part: string) => ShowProgress) => T | Promise<T>,
): Promise<T> {
  if (isLarge(home)) io.saveMemory();
  const line = openProgressLine(io, options);
  try {
    return await act(line.part);
  } finally {
    line.end();
  }
}

/** Says what an act does that cannot tell how far it is, in a home so large that it can take long. */
export async function whileShown<T>(acting: Acting, what: string, act: () => T): Promise<T> {
  return await withProgress(acting, (progress) => {
    if (isLarge(acting.home)) progress(what)({});
    return act();
  });
}

/** What erases: SQLite writes the whole file anew, in one step. */
export const erasing = 'Erasing, and writing the file anew';

/** Passes the pieces of a text on, and shows how many they are. */
export async function* counting<T>(
  pieces: AsyncGenerator<string, T>,
  show: ShowProgress,
): AsyncGenerator<string, T> {
  for (let done = 0; ; done += 1) {
    const next = await pieces.next();
    if (next.done === true) return next.value;
    if (done > 0 && done % 100 === 0) show({ done });
    yield next.value;
  }
}
