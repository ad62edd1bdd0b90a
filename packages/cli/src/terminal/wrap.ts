import { fitText, textWidth } from './width.ts';

/**
 * A text as lines of at most so many columns, broken between words where they allow it; what a line begins with stays.
 * @param first columns of the first line
 */
export function wrapText(text: string, columns: number, first: number = columns): string[] {
  if (columns === Number.POSITIVE_INFINITY) return text.split('\n');
  const lines: string[] = [];
  for (const line of text.split('\n')) {
    let rest = line;
    for (let room = lines.length === 0 ? first : columns; textWidth(rest) > room; room = columns) {
      const end = lineEnd(rest, room);
      lines.push(rest.slice(0, end).trimEnd());
      rest = rest.slice(end).trimStart();
    }
    lines.push(rest);
  }
  return lines;
}

/** Where to break a text that is longer than its line: after the last word that fits, or inside of a longer one. */
function lineEnd(text: string, columns: number): number {
  const fitting = fitText(text, columns);
  const blank = text[fitting.length] === ' ' ? fitting.length : fitting.lastIndexOf(' ');
  if (blank > 0 && text.slice(0, blank).trim() !== '') return blank;
  // A character wider than the line stands alone.
  return fitting.length > 0 ? fitting.length : ([...text][0]?.length ?? 1);
}
