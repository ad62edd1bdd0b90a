import type { BlamedPart } from '@tapedeck/runtime';
import { mergedText } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { oneLine, safe } from '../escape.ts';
import { cutText } from '../terminal/width.ts';
import { firstFitting, tabbed } from './table.ts';
import { sourceJson } from './trace.ts';

/** A part of a view as `--json` prints it; part of the documented contract. */
export function blameJson({ from, text: _, ...part }: BlamedPart): Readonly<Record<string, unknown>> {
  return { ...part, from: from.map(sourceJson) };
}

/** How much of a text a row in a pipe has. */
const textMax = 160;

/** How much of the end of a run's id tells it from others. */
const runEnd = 6;

const headings = ['at', 'role', 'session', 'turn', 'by', 'run', 'text'];
const [role, session, turn, by, run] = [1, 2, 3, 4, 5];

/** How the parts look, and how much of a name tells it from the others of the home. */
interface Look extends Pick<Context, 'io' | 'style'> {
  readonly distinct?: (name: string) => number;
}

/**
 * The parts of a view, one row each: position, role, session, turn, who made it, run, and its text. Where a terminal has no
 * room for the row, a part has several lines.
 */
export function blameText(parts: readonly BlamedPart[], look: Look): string {
  const { io, style, distinct } = look;
  if (!io.isTerminal) return tabbed(parts.map((part) => cellsOf(part).map(safe)));
  const { columns: width } = io;
  const rows = [headings, ...parts.map((part) => cellsOf(part, runEnd).map(safe))];
  const paint = (cell: string, column: number, row: readonly string[]) =>
    row[0] === headings[0] || column === turn || column === run
      ? style.text('dim', cell)
      : column === session
        ? style.text('bold', cell)
        : cell;
  const without = (columns: readonly number[], least: number) => ({
    rows: rows.map((row) => row.map((cell, i) => (columns.includes(i) || isEmpty(i) ? '' : cell))),
    right: [0],
    whole: [role, turn, run],
    names: [session, by],
    distinct,
    width,
    least,
    paint,
  });
  const isEmpty = (column: number) => rows.slice(1).every((row) => row[column] === '');
  return firstFitting([without([], 20), without([run], 14)], () =>
    parts.map((part) => stackedRows(part, look).join('\n')).join('\n'),
  );
}

function cellsOf(part: BlamedPart, runMax = Number.POSITIVE_INFINITY): string[] {
  return [
    `${part.inherited ? '↑' : ''}${part.seq}`,
    roleOf(part),
    part.session,
    part.turn === undefined ? '' : `@${part.turn}`,
    makersOf(part).join(', '),
    part.run?.slice(-runMax) ?? '',
    oneLine(saidIn(part), textMax),
  ];
}

/** A part on several lines: its place, who made it, and its text. */
function stackedRows(part: BlamedPart, { io, style }: Look): readonly string[] {
  const facts = [roleOf(part), ...(part.turn === undefined ? [] : [`turn @${part.turn}`]), ...makersOf(part)];
  return [
    style.text('bold', safe(`${part.session}@${part.seq}`)) + (part.inherited ? ' ↑' : ''),
    style.text('dim', `  ${facts.map(safe).join('  ')}`),
    cutText(`  ${oneLine(saidIn(part), io.columns)}`, io.columns),
  ];
}

/** What a part is, as a log calls it. */
function roleOf({ what, role, source }: BlamedPart): string {
  return source === 'merge' ? source : what === 'message' ? role : what;
}

/**
 * Who made a part: the model of an answer, the author of a message, the tool of a result, or else where it came from. And the
 * sessions whose work it brings: the writer of a summary, and merged children with their positions.
 */
function makersOf({ model, author, tool, source, summarizer, from }: BlamedPart): readonly string[] {
  const merged = from.map(({ session, range }) =>
    range === null ? session : `${session} ${range.join('-')}`,
  );
  const sources = [...(summarizer === undefined ? [] : [summarizer]), ...merged];
  const maker = model ?? author ?? tool ?? (source === 'merge' && sources.length > 0 ? undefined : source);
  return maker === undefined ? sources : [maker, ...sources];
}

/** What a part says: of a merge the result of the child, without the words around it. */
function saidIn({ text }: BlamedPart): string {
  return mergedText(text) ?? text;
}
