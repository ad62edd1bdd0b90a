import { stripVTControlCharacters } from 'node:util';
import { safe } from '../escape.ts';
import { markdown } from '../terminal/markdown.ts';
import type { Style } from '../terminal/style.ts';
import { styledLines, wrapText } from '../terminal/wrap.ts';

/** How texts of a comparison look. */
export interface Paper {
  readonly style: Style;
  /** Whether they are rendered as Markdown. */
  readonly renders: boolean;
}

/** How a patch looks. */
interface Look extends Paper {
  /** The texts that it compares. */
  readonly texts: { readonly a: string; readonly b: string };
  /** Columns of a line; infinite in a pipe. */
  readonly width: number;
}

/** A line of a patch: its sign, and its text as it is shown. */
interface Line {
  readonly sign: '-' | '+' | ' ';
  readonly raw: string;
  readonly text: string;
}

/** Marks the rest of a line that is broken at the width of a terminal, in place of its sign. */
const continued = '↳';

const colors = { '-': 'red', '+': 'green' } as const;

/**
 * The lines of a unified diff of two texts, for a reader: each side in its colour, rendered as Markdown, and broken into lines
 * that say whether one continues another.
 */
export function patchLines(patch: string, look: Look): readonly string[] {
  const { style, renders, width } = look;
  const rendered = (text: string) => (renders ? markdown(safe(text), style) : safe(text)).split('\n');
  const sides = { a: rendered(look.texts.a), b: rendered(look.texts.b) };
  const rows: (string | Line)[] = [];
  let [a, b] = [0, 0];
  for (const raw of patch.trimEnd().split('\n')) {
    const [, from, to] = /^@@ -(\d+)\S* \+(\d+)/.exec(raw) ?? [];
    const sign = raw[0];
    if (from !== undefined && to !== undefined) {
      [a, b] = [Number(from) - 1, Number(to) - 1];
      rows.push(style.text('cyan', safe(raw)));
    } else if (/^(?:---|\+\+\+) /.test(raw) && rows.length < 2) rows.push(style.text('bold', safe(raw)));
    else if (sign === '-' || sign === '+' || sign === ' ') {
      const text = (sign === '-' ? sides.a[a] : sides.b[b]) ?? raw.slice(1);
      if (sign !== '+') a += 1;
      if (sign !== '-') b += 1;
      rows.push({ sign, raw: safe(raw.slice(1)), text });
    } else rows.push(safe(raw));
  }
  const alike = alikeIn(rows.filter((row) => typeof row !== 'string'));
  return rows.flatMap((row) =>
    typeof row === 'string'
      ? row
      : signed(alike.has(plain(row.text)) ? { ...row, text: row.raw } : row, { style, width }),
  );
}

/** The texts that both sides changed and that differ in marks alone: rendered, they would be the same. */
function alikeIn(lines: readonly Line[]): ReadonlySet<string> {
  const of = (sign: Line['sign']) =>
    new Set(lines.flatMap((line) => (line.sign === sign ? [plain(line.text)] : [])));
  return of('-').intersection(of('+'));
}

const plain = (text: string) => stripVTControlCharacters(text);

/** A line with its sign, on as many lines of a terminal as it takes. */
function signed({ sign, text }: Line, { style, width }: Pick<Look, 'style' | 'width'>): readonly string[] {
  const paint = (line: string) => (sign === ' ' ? line : style.text(colors[sign], line));
  const lines = styledLines(text, wrapText(plain(text), Math.max(8, width - 1)));
  return lines.map((line, i) => paint(`${i === 0 ? sign : continued}${line}`));
}
