/**
 * How values look on a terminal: widths of texts in columns, colours, times as people say them, and short
 * numbers. Pure functions; the files import no other room.
 */

import { stripVTControlCharacters } from 'node:util';
import { eastAsianWidth } from 'get-east-asian-width';

/** Characters that are one column each, and belong to no cluster with their neighbours. */
const narrow = /^[\u0020-\u007e\u00a0-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u257f]*$/;

/** A cluster that terminals draw as an emoji, in two columns. */
const emoji = /^(?:\p{Emoji_Presentation}|\p{Regional_Indicator}{2}|\p{Emoji}[\ufe0f\u200d])/u;
/** A letter that a virama or a joiner joins with the one before: terminals draw it beside that. */
const joinedLetter = /[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u200c\u200d]\p{L}/gu;
/** Marks that are drawn over the character before them, and characters without a shape. */
const shapeless = /^[\p{Mn}\p{Me}\p{Cc}\p{Cf}]*$/u;

/** Made when a text needs it: most command lines print none that does. */
let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for one character, with the columns that it fills. */
function* clusters(text: string): Iterable<{ readonly cluster: string; readonly width: number }> {
  segmenter ??= new Intl.Segmenter();
  for (const { segment: cluster } of segmenter.segment(text)) yield { cluster, width: clusterWidth(cluster) };
}

function clusterWidth(cluster: string): number {
  if (narrow.test(cluster)) return cluster.length;
  if (shapeless.test(cluster)) return 0;
  if (emoji.test(cluster)) return 2;
  return eastAsianWidth(cluster.codePointAt(0) ?? 0) + (cluster.match(joinedLetter)?.length ?? 0);
}

/**
 * Number of columns that a text without control characters fills on a terminal: two for each ideograph and emoji, and
 * none for a combining mark (Unicode Standard Annexes 11 and 29).
 */
export function textWidth(text: string): number {
  if (narrow.test(text)) return text.length;
  let width = 0;
  for (const cluster of clusters(text)) width += cluster.width;
  return width;
}

/** The width of a text with styles and links. */
export function styledWidth(text: string): number {
  return textWidth(stripVTControlCharacters(text));
}

/** A text cut to a number of columns, with `…` at the end of one that was longer. */
export function cutText(text: string, columns: number): string {
  const fits = text.length <= columns;
  // No character after these makes them narrower.
  if (narrow.test(fits ? text : text.slice(0, columns + 1)))
    return fits ? text : columns < 1 ? '' : `${text.slice(0, columns - 1)}…`;
  // No character is wider than two columns for each of its code units.
  if (2 * text.length <= columns) return text;
  if (columns < 1) return '';
  let width = 0;
  // The end of the longest part that leaves room for the ellipsis.
  let end = 0;
  let at = 0;
  for (const cluster of clusters(text)) {
    width += cluster.width;
    at += cluster.cluster.length;
    if (width > columns) return `${text.slice(0, end)}…`;
    if (width < columns) end = at;
  }
  return text;
}

/**
 * A name cut to a number of columns, with `…` in place of its middle. Of its beginning at least the given number of
 * characters stay, with which it can be typed, and of its end what has room then.
 */
export function cutName(text: string, columns: number, start = 1): string {
  if (textWidth(text) <= columns || !narrow.test(text)) return cutText(text, columns);
  const end = Math.min(Math.floor((columns - 1) / 3), columns - 1 - start);
  if (end < 3) return cutText(text, columns);
  return `${text.slice(0, columns - 1 - end)}…${text.slice(-end)}`;
}

/** The most code units of a column that are looked at: emoji of families have a dozen. */
const unitsMax = 64;

/** The beginning of a text that fills at most a number of columns. */
export function fitText(text: string, columns: number): string {
  const start = text.slice(0, columns + 1);
  if (narrow.test(start)) return start.slice(0, columns);
  let width = 0;
  let end = 0;
  for (const cluster of clusters(text.slice(0, unitsMax * (columns + 1)))) {
    width += cluster.width;
    if (width > columns) break;
    end += cluster.cluster.length;
  }
  return text.slice(0, end);
}
