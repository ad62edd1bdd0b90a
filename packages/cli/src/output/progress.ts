import type { Context } from '../context.ts';
import { safe } from '../escape.ts';
import { isLarge } from '../home.ts';

/** Receives how far a part of an act is; without a total, how much is done. */
export type ShowProgress = (now: { readonly done: number; readonly total?: number }) => void;

/**
 * Shows how far an act is, in one line of the terminal that it writes again for each percent, and removes after it.
 * In a pipe, or with `--quiet`, it shows nothing.
 * @param act its argument makes a receiver of progress, for a part of the act
 */
export async function withProgress<T>(
  { io, options, home }: Pick<Context, 'io' | 'options' | 'home'>,
  act: (progress: (part: string) => ShowProgress) => T | Promise<T>,
): Promise<T> {
  if (isLarge(home)) io.saveMemory();
  if (!io.statusIsTerminal || options.quiet === true) return await act(() => () => {});
  let shown = '';
  try {
    return await act((part) => ({ done, total }) => {
      const percent = total === undefined ? undefined : Math.floor((100 * done) / Math.max(1, total));
      const line = `${safe(part)}: ${percent === undefined ? done : `${percent} % of ${total}`}`;
      // What ends at once needs no line.
      if (line === shown || (shown === '' && percent === 100)) return;
      shown = line;
      io.err(`\r${line}\u001b[K`);
    });
  } finally {
    if (shown !== '') io.err('\r\u001b[K');
  }
}
