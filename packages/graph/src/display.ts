/** What a terminal, or a reader's eye, could take for more than text: controls, bidi marks, lone surrogates, line ends. */
const unsafe = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * A name as it may be shown. The store refuses unsafe names, but a graph file may come from anywhere, so
 * whatever could steer a terminal is escaped (law 10).
 */
export function shown(text: string): string {
  return text.replace(unsafe, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

/** A text as it may stand inside a message: quoted, and at most 80 characters. */
export function quote(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 77)}...` : text;
  return `'${shown(short)}'`;
}

/** A text cut to so many characters. */
export function cut(text: string, width: number): string {
  if (text.length <= width) return text;
  const characters = Array.from(text);
  if (characters.length <= width) return text;
  return width < 1 ? '' : `${characters.slice(0, width - 1).join('')}…`;
}

/** A range of positions, both ends included: `13-42`. */
export function span([from, to]: readonly [number, number]): string {
  return `${from}-${to}`;
}
