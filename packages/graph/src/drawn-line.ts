import { cut, shown } from './display.ts';
import type { SessionNode } from './node.ts';

/** How a row becomes a line of a terminal. */
export interface LineOptions {
  /** Colours the lanes with ANSI escapes. */
  readonly color?: boolean | undefined;
  /** Maximum width of a line. */
  readonly width?: number | undefined;
  /** Cuts a text to a width; the default counts characters, of which a terminal shows some in two cells. */
  readonly cut?: ((text: string, width: number) => string) | undefined;
  /** Formats the name of a session, which may have been cut, for example as a link. It must keep its width. */
  readonly name?: ((text: string, node: SessionNode) => string) | undefined;
}

/** A line of what is before the label of a row and that label, cut to the width. */
export function lineOf(
  before: string,
  { label, node }: { readonly label: string; readonly node?: SessionNode | undefined },
  { width, cut: cutTo = cut, name }: LineOptions,
): string {
  const whole = before + label;
  const line = width === undefined ? whole : cutTo(whole, width);
  if (name === undefined || node === undefined) return line;
  const end = before.length + shown(node.session).length;
  const until = line === whole ? end : Math.min(end, line.length - 1);
  if (until <= before.length) return line;
  return before + name(line.slice(before.length, until), node) + line.slice(until);
}
