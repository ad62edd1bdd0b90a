import { stripVTControlCharacters } from 'node:util';
import { fitText, textWidth } from './width.ts';

/**
 * A text as lines of at most so many columns, broken between words where they allow it; what a line begins with stays.
 * A name, a point, a path and a command in parentheses, which a reader copies, stay whole: one that is longer than a line is
 * broken by the terminal, which then copies it as one.
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
      const end = lineEnd(rest, fitting, room < columns);
      lines.push(rest.slice(0, end).trimEnd());
      rest = rest.slice(end).trimStart();
    }
    // The last word of a line can be longer than it, and nothing is left.
    if (rest !== '' || line === '') lines.push(rest);
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

/** The longest word that is looked at: more than a name and a point have. */
const wordMax = 300;

/** A word that can be the name of a session, a point, a path or a hash, with the marks around it. */
const word = /^ *["'(<[]{0,2}[\w@%+=:./~^{}…-]+[\])>"',;:.!?]*(?= |$)/;

/** A command in parentheses: `(tape log main)`, `(next: tape approve main)`. */
const command = /\((?:[a-z]+: )?tape [^()]*\)/g;

/**
 * Where to break a text that is longer than its line: after the last word that fits, or inside of a longer one. What a reader
 * copies is not broken: it begins the next line where that has more room, or the rest of the line is of it.
 */
function lineEnd(text: string, fitting: string, isShort: boolean): number {
  const blank = text[fitting.length] === ' ' ? fitting.length : fitting.lastIndexOf(' ');
  const near = text.slice(0, fitting.length + wordMax);
  for (const { 0: typed, index } of near.matchAll(command))
    if (index < fitting.length && index + typed.length > fitting.length)
      return near.slice(0, index).trim() !== '' || isShort ? index : index + typed.length;
  if (blank > 0 && text.slice(0, blank).trim() !== '') return blank;
  const [typed = ''] = word.exec(near) ?? [];
  const isEnded = typed.length < near.length || near.length === text.length;
  if (typed !== '' && isEnded) return isShort ? 0 : typed.length;
  // A character wider than the line stands alone.
  return fitting.length > 0 ? fitting.length : ([...text][0]?.length ?? 1);
}

const esc = '\u001b';
/** An escape that takes no columns: one that sets or ends a format, which has a number, or one of a link. */
const control = new RegExp(`${esc}(?:\\[(\\d+)m|\\]8;[^${esc}]*${esc}\\\\)`, 'y');

/** The number of what ends a format of `styleText`; undefined for one that ends others. */
function endOf(code: number): number | undefined {
  if (code === 1 || code === 2) return 22;
  if (code === 3 || code === 4 || code === 7 || code === 9) return code + 20;
  if ((code >= 30 && code < 38) || (code >= 90 && code < 98)) return 39;
  return (code >= 40 && code < 48) || (code >= 100 && code < 108) ? 49 : undefined;
}

/**
 * Lines of a text whose formats were set by escapes: each line ends with the formats of none, and the next one begins
 * with those that go on.
 * @param lines the lines of `wrapText` for the text without its escapes
 */
export function styledLines(text: string, lines: readonly string[]): string[] {
  let at = 0;
  let open: number[] = [];
  /** The escapes at a place of the text. */
  const escapes = (): string => {
    let found = '';
    for (control.lastIndex = at; ; at = control.lastIndex) {
      const [whole, code] = control.exec(text) ?? [];
      if (whole === undefined) return found;
      found += whole;
      if (code === undefined) continue;
      const isStart = endOf(Number(code)) !== undefined;
      open = isStart ? [...open, Number(code)] : open.filter((one) => endOf(one) !== Number(code));
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
        .map((code) => `${esc}[${endOf(code)}m`)
        .join('')
    );
  });
}

/** A line, which may have formats and links, on as many lines of at most so many columns as it takes, with its indent. */
export function fittingLines(line: string, columns: number): string[] {
  const plain = stripVTControlCharacters(line);
  const tab = plain.includes('\t');
  const widest = tab ? textWidth(plain) + 8 * plain.split('\t').length : textWidth(plain);
  if (widest <= columns) return [line];
  // A terminal draws a tab up to the next of its stops.
  if (tab) return fittingLines(line.replaceAll('\t', '  '), columns);
  const indent = Math.min(/^ */.exec(plain)?.[0].length ?? 0, Math.floor(columns / 2));
  const rows = hangingLines(plain, columns, indent);
  const texts = rows.map((row, i) => (i === 0 ? row : row.slice(indent)));
  return styledLines(line, texts).map((row, i) => (i === 0 ? row : ' '.repeat(indent) + row));
}
