import type { Entry } from '@tapedeck/tape';
import { recordedUsage, totalOf } from '@tapedeck/tape/internal';
import { oneLine } from '../escape.ts';
import { shortNumber } from '../terminal/number.ts';
import type { Style } from '../terminal/style.ts';
import { styledWidth } from '../terminal/width.ts';
import { roleOf } from './wanted.ts';

/** What is at the right margin of an item: its time, and what is known of the model call that wrote it. */
export interface Margin {
  readonly time: string;
  /** The model and the tokens, or one of them: what says the most first. Nothing for what no model wrote. */
  readonly call: readonly string[];
}

interface Place {
  readonly style: Style;
  /** Columns of the terminal; undefined in a pipe. */
  readonly columns: number | undefined;
  readonly full: boolean;
}

/** Columns of a first line beside which the margin has more than the time: so many are read well. */
const firstMin = 60;
/** Where the right margin of a log in a pipe is. */
const pipeColumns = 100;
/** Blanks before what is at the margin. */
const gap = 2;

/** The model and the tokens of the call that wrote an entry, or one of them, the most first. A prompt has the model that it is for. */
export function callTexts(
  entry: Entry,
  { columns, full }: Pick<Place, 'columns' | 'full'>,
): readonly string[] {
  if (roleOf(entry) !== 'assistant') return [];
  const { meta } = entry;
  const usage = recordedUsage(meta);
  const tokens = usage === undefined ? 0 : totalOf(usage);
  const name = typeof meta.model === 'string' ? (meta.model.split('/').at(-1) ?? '') : '';
  const model = oneLine(columns === undefined || full ? name : withoutDate(name), 30);
  const texts = [model, tokens === 0 ? '' : `${shortNumber(tokens)} tokens`].filter((text) => text !== '');
  return texts.length < 2 ? texts : [texts.join(' · '), ...texts];
}

/** The name of a model without the day of its release: `claude-sonnet-4-5-20250929`, `gpt-4o-2024-08-06`. */
function withoutDate(model: string): string {
  return model.replace(/[-@]20\d\d(?:-?\d\d){2}(?![\d.])/, '');
}

/** Columns of a first line that stay free for its margin: those of the time, and of more where the line is long. */
export function reserved({ time, call }: Margin, columns: number): number {
  const fitting = call.map((text) => beside(text, time)).find(({ length }) => columns - length >= firstMin);
  return (fitting ?? time).length;
}

function beside(text: string, time: string): string {
  return time === '' ? text : `${text} · ${time}`;
}

/**
 * Puts the margin of an item beside its rows: the time beside the first, and the rest there or beside the first row below
 * that has room for it. The model is worth a later row; what has no room anywhere is left out.
 */
export function withMargin(
  rows: readonly string[],
  { time, call }: Margin,
  { style, columns = pipeColumns }: Pick<Place, 'style' | 'columns'>,
): string[] {
  const textAt = (at: number, text: string) => (at === 0 ? beside(text, time) : text);
  const fits = (row: string, text: string) => styledWidth(row) + gap + text.length <= columns;
  const put = (row: string, text: string) =>
    `${row}${' '.repeat(Math.max(gap, columns - styledWidth(row) - text.length))}${style.text('dim', text)}`;
  // The last of three is the tokens alone.
  for (const texts of [call.slice(0, 2), call.slice(2)])
    for (const [at, row] of rows.entries()) {
      const text = texts.find((one) => fits(row, textAt(at, one)));
      if (text === undefined) continue;
      return rows.map((one, i) => (i === at ? put(one, textAt(at, text)) : i === 0 ? put(one, time) : one));
    }
  return rows.map((row, i) => (i === 0 ? put(row, time) : row));
}
