import type { Cut } from './data.ts';

/** The beginning of a text, without half of a character at its end. */
function beginning(text: string, chars: number): string {
  const cut = text.slice(0, chars);
  return /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut;
}

/** The beginning of a text on one line. */
export function flat(text: string, chars: number): string {
  // What is replaced can be much longer than what is left.
  const line = text
    .slice(0, 8 * chars)
    .replace(/\s+/g, ' ')
    .trim();
  return line.length <= chars ? line : `${beginning(line, chars - 1)}…`;
}

/** A text, or its beginning with the command that prints all of it. */
export function kept(
  text: string,
  chars: number,
  line: string,
): { readonly text: string; readonly cut?: Cut } {
  if (text.length <= chars) return { text };
  return { text: beginning(text, chars), cut: { chars: text.length, line } };
}
