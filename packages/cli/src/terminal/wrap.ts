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
    // Looks at no more of the rest than a line needs: a text can have megabytes.
    for (let room = lines.length === 0 ? first : columns; ; room = columns) {
      const fitting = fitText(rest, room);
      if (fitting.length === rest.length) break;
      const end = lineEnd(rest, fitting);
      lines.push(rest.slice(0, end).trimEnd());
      rest = rest.slice(end).trimStart();
    }
    lines.push(rest);
  }
  return lines;
}

/**
 * A line on as many lines of at most so many columns as it takes, those after the first one with an indent. It is not
 * broken before that indent, where a label ends.
 */
export function hangingLines(line: string, columns: number, indent: number): string[] {
  const head = line.slice(0, indent);
  const rows = wrapText(line.slice(indent), Math.max(8, columns - indent), columns - textWidth(head));
  return rows.map((row, i) => (i === 0 ? head : ' '.repeat(indent)) + row);
}

/** Where to break a text that is longer than its line: after the last word that fits, or inside of a longer one. */
function lineEnd(text: string, fitting: string): number {
  const blank = text[fitting.length] === ' ' ? fitting.length : fitting.lastIndexOf(' ');
  if (blank > 0 && text.slice(0, blank).trim() !== '') return blank;
  // A character wider than the line stands alone.
  return fitting.length > 0 ? fitting.length : ([...text][0]?.length ?? 1);
}

/** An escape that sets a format, with what ends it. */
const esc = '\u001b';
const format = new RegExp(`${esc}\\[(\\d+)m`, 'y');
const ends: Readonly<Record<string, string>> = { '1': '22', '2': '22', '3': '23' };

/**
 * Lines of a text whose formats were set by escapes: each line ends with the formats of none, and the next one begins
 * with those that go on.
 * @param lines the lines of `wrapText` for the text without its escapes
 */
export function styledLines(text: string, lines: readonly string[]): string[] {
  let at = 0;
  let open: string[] = [];
  /** The escapes at a place of the text. */
  const escapes = (): string => {
    let found = '';
    for (format.lastIndex = at; ; at = format.lastIndex) {
      const [whole, code = ''] = format.exec(text) ?? [];
      if (whole === undefined) return found;
      found += whole;
      open = code in ends ? [...open, code] : open.filter((one) => ends[one] !== code);
    }
  };
  return lines.map((line) => {
    let row = open.map((code) => `${esc}[${code}m`).join('');
    for (const c of line) {
      row += escapes();
      // A blank where a line was broken is in no line.
      while (at < text.length && !text.startsWith(c, at)) {
        at += 1;
        row += escapes();
      }
      row += c;
      at += c.length;
    }
    const more = open.length === 0 ? '' : escapes();
    return (
      row +
      more +
      open
        .toReversed()
        .map((code) => `${esc}[${ends[code]}m`)
        .join('')
    );
  });
}
