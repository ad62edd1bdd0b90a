import { safe } from './escape.ts';
import type { Io } from './io.ts';

/** Receives how far a part of an act is: without a total how much is done, without both only that it goes on. */
export type ShowProgress = (now: { readonly done?: number; readonly total?: number }) => void;

/** A line of the terminal that says how far an act is. */
export interface ProgressLine {
  /** Makes a receiver of progress, for a part of the act. */
  readonly part: (name: string) => ShowProgress;
  /** Removes the line. */
  readonly end: () => void;
}

/** Opens a line that is written again for each percent. In a pipe, or with `quiet`, it prints nothing. */
export function openProgressLine(
  { statusIsTerminal, err }: Pick<Io, 'statusIsTerminal' | 'err'>,
  { quiet = false }: { readonly quiet?: boolean | undefined } = {},
): ProgressLine {
  if (!statusIsTerminal || quiet) return { part: () => () => {}, end: () => {} };
  let shown = '';
  return {
    part:
      (name) =>
      ({ done, total }) => {
        const percent =
          done === undefined || total === undefined
            ? undefined
            : Math.floor((100 * done) / Math.max(1, total));
        const far = percent === undefined ? done : `${percent} % of ${total}`;
        const line = safe(far === undefined ? `${name} …` : `${name}: ${far}`);
        // What ends at once needs no line.
        if (line === shown || (shown === '' && percent === 100)) return;
        shown = line;
        err(`\r${line}\u001b[K`);
      },
    end: () => {
      if (shown !== '') err('\r\u001b[K');
    },
  };
}
