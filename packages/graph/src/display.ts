import type { MergeRecord } from './node.ts';

/**
 * Characters that can steer a terminal or mislead a reader: controls, bidi marks, lone surrogates, line ends.
 */
const unsafe = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * A name for display, with unsafe characters escaped. The store refuses unsafe names; a foreign graph file
 * may have them.
 */
export function shown(text: string): string {
  return text.replace(unsafe, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

/** A text for a message: quoted, and cut to 80 characters. */
export function quote(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 77)}...` : text;
  return `'${shown(short)}'`;
}

/** A text cut to `width` characters. */
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

/** Where a merge brought its result, as a drawing says it: ` → main@7`. */
export function targetText({ intoName, seq, received = seq }: MergeRecord): string {
  if (intoName === undefined) return '';
  return ` → ${shown(intoName)}${received === undefined ? '' : `@${received}`}`;
}
