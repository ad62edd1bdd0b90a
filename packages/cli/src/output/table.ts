import { cutName, cutText, textWidth } from '../terminal/width.ts';

/** A table, and how it fits its place. */
interface Table {
  readonly rows: readonly (readonly string[])[];
  /** The right-aligned columns, which are never cut. */
  readonly right?: readonly number[];
  /** Left-aligned columns that are never cut, either. */
  readonly whole?: readonly number[];
  /** Columns of names: what is left of a cut one is enough to type, and begins as no other does. */
  readonly names?: readonly number[];
  /** Number of characters at the beginning of a name that no other has; without it, among the names of the table. */
  readonly distinct?: ((name: string) => number) | undefined;
  /** Number of columns of the terminal. */
  readonly width?: number | undefined;
  /** Number of columns that a cut cell keeps. */
  readonly least?: number;
  /** Formats the text of a cell; the blanks beside it stay as they are. */
  readonly paint?: (cell: string, column: number, row: readonly string[]) => string;
}

const gap = 2;
/** What a cut cell keeps where nothing else fits. */
const leastOfAll = 3;

/** What a tree draws before a name. */
export const branches: RegExp = /^[ │├╰]+/;

/** Number of characters at the beginning of a name with which no other of some names begins. */
function distinctAmong(names: readonly string[]): (name: string) => number {
  const sorted = [...new Set(names)].sort();
  const shared = (a: string, b = '') => {
    let count = 0;
    while (count < a.length && a[count] === b[count]) count += 1;
    return count;
  };
  const starts = sorted.map(
    (name, i) => Math.max(shared(name, sorted[i - 1]), shared(name, sorted[i + 1])) + 1,
  );
  const byName = new Map(sorted.map((name, i) => [name, starts[i] ?? 1]));
  return (name) => byName.get(name) ?? 1;
}

/** A name in a cell: what a tree draws before it, and a range behind it, are not of it. */
const nameIn = (cell: string) => cell.replace(branches, '').split(' ', 1)[0] ?? '';

/** How names are cut: so that what is left of their beginnings can be typed, or that their ends tell them apart. */
type Cut = 'beginnings' | 'ends';

/** The number of columns, from this on, on which a cut name matches no other name of the table. */
function tellingApart(cells: readonly string[], from: number): number {
  const names = [...new Set(cells.map((cell) => cell.replace(branches, '')))];
  const byEnd = Map.groupBy(names, (name) => name.slice(-1));
  const isOnly = (cell: string, columns: number) => {
    const short = cutName(cell, columns);
    if (short === cell) return true;
    const [start = '', end = ''] = short.replace(branches, '').split('…');
    const fits = (name: string) =>
      name.length >= start.length + end.length && name.startsWith(start) && name.endsWith(end);
    return (end === '' ? names : (byEnd.get(end.slice(-1)) ?? [])).filter(fits).length === 1;
  };
  let columns = from;
  for (const cell of cells) while (!isOnly(cell, columns)) columns += 1;
  return columns;
}

/** Number of characters that a cell of names keeps at its start when it is cut. */
function keptBy({ rows, distinct }: Table, column: number): (cell: string) => number {
  const among = distinct ?? distinctAmong(rows.map((row) => nameIn(row[column] ?? '')));
  return (cell) => {
    const name = nameIn(cell);
    const before = branches.exec(cell)?.[0].length ?? 0;
    const count = among(name);
    // The whole of a name with which others begin: without what is behind it, it would be the beginning of them.
    return before + (count >= name.length ? name.length + 1 : count);
  };
}

/** Rows in a pipe, where tabs separate cells. */
export function tabbed(
  rows: readonly (readonly string[])[],
  paint: (cell: string, column: number) => string = (cell) => cell,
): string {
  return rows.map((row) => row.map(paint).join('\t')).join('\n');
}

/** Rows as aligned lines. Where they do not fit the width, the widest left-aligned columns are cut. */
export function table(given: Table): string {
  return drawn(given, fitted(given, 'beginnings').fits ? 'beginnings' : 'ends');
}

function drawn(given: Table, cut: Cut): string {
  const { rows, right = [], names = [], paint } = given;
  const { widths } = fitted(given, cut);
  const kept = new Map(names.map((column) => [column, cut === 'ends' ? () => 1 : keptBy(given, column)]));
  // An empty column takes no room.
  const shown = [...widths.keys()].filter((i) => widths[i] !== 0);
  const line = (row: readonly string[]) =>
    shown
      .map((i) => {
        const [cell, columns] = [row[i] ?? '', widths[i] ?? 0];
        const short =
          textWidth(cell) > columns && names.includes(i)
            ? cutName(cell, columns, kept.get(i)?.(cell) ?? 1)
            : cutText(cell, columns);
        const blanks = ' '.repeat(Math.max(0, columns - textWidth(short)));
        const text = paint === undefined ? short : paint(short, i, row);
        return right.includes(i) ? blanks + text : text + blanks;
      })
      .join(' '.repeat(gap))
      .trimEnd();
  return rows.map(line).join('\n');
}

/** The first of several tables that fits its width, else another text: that of the last one, whose cells keep less. */
export function firstFitting(
  tables: readonly [Table, ...Table[]],
  otherwise: () => string = () => table({ ...(tables.at(-1) ?? tables[0]), least: leastOfAll }),
): string {
  for (const cut of ['beginnings', 'ends'] as const) {
    const fitting = tables.find((one) => fitted(one, cut).fits);
    if (fitting !== undefined) return drawn(fitting, cut);
  }
  return otherwise();
}

interface Fitted {
  readonly widths: readonly number[];
  readonly fits: boolean;
}

/** Widths of columns that fit the room. Names keep what their cut wants, also where the others have no room then. */
function fitted(given: Table, cut: Cut): Fitted {
  const { rows, names = [] } = given;
  const found = fittedTo(given, new Map());
  const needs = new Map<number, number>();
  for (const column of names) {
    const columns = found.widths[column] ?? 0;
    const cells = rows.map((row) => row[column] ?? '');
    const long = cells.filter((cell) => textWidth(cell) > columns);
    if (long.length === 0) continue;
    const kept = keptBy(given, column);
    const needed =
      cut === 'ends'
        ? tellingApart(cells, columns)
        : Math.max(
            ...long.map((cell) => Math.min(textWidth(cell), textWidth(cell.slice(0, kept(cell))) + 1)),
          );
    if (needed > columns) needs.set(column, needed);
  }
  return needs.size === 0 ? found : fittedTo(given, needs);
}

/** The widest of the columns that may be cut lose one column after another. */
function fittedTo(
  { rows, right = [], whole = [], width = Number.POSITIVE_INFINITY, least = 8 }: Table,
  needs: ReadonlyMap<number, number>,
): Fitted {
  const count = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const widths = Array.from({ length: count }, (_, i) =>
    rows.reduce((most, row) => Math.max(most, textWidth(row[i] ?? '')), 0),
  );
  const gaps = gap * Math.max(0, widths.filter((columns) => columns > 0).length - 1);
  const kept = new Set([...right, ...whole]);
  const leastOf = (i: number) => needs.get(i) ?? least;
  let excess = widths.reduce((sum, columns) => sum + columns, gaps) - width;
  for (; excess > 0; excess -= 1) {
    const widest = widths.reduce(
      (best, columns, i) =>
        !kept.has(i) && columns > leastOf(i) && columns > (widths[best] ?? 0) ? i : best,
      -1,
    );
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return { widths, fits: excess <= 0 };
}
