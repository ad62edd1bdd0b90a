import { cutMiddle, cutText, textWidth } from '../terminal/width.ts';

/** A table, and how it fits its place. */
interface Table {
  readonly rows: readonly (readonly string[])[];
  /** The right-aligned columns, which are never cut. */
  readonly right?: readonly number[];
  /** A column of names, whose ends tell them apart: they are cut in the middle. */
  readonly names?: number;
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
const branches = /^[ ╰]+/;

/** The number of columns, from this on, on which a cut name matches no other name of the table. */
function tellingApart(cells: readonly string[], from: number): number {
  const names = [...new Set(cells.map((cell) => cell.replace(branches, '')))];
  const byEnd = Map.groupBy(names, (name) => name.slice(-1));
  const isOnly = (cell: string, columns: number) => {
    const short = cutMiddle(cell, columns);
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

/** Rows in a pipe, where tabs separate cells. */
export function tabbed(
  rows: readonly (readonly string[])[],
  paint: (cell: string, column: number) => string = (cell) => cell,
): string {
  return rows.map((row) => row.map(paint).join('\t')).join('\n');
}

/** Rows as aligned lines. Where they do not fit the width, the widest left-aligned columns are cut. */
export function table(given: Table): string {
  const { rows, right = [], names, paint } = given;
  const { widths } = fitted(given);
  // An empty column takes no room.
  const shown = [...widths.keys()].filter((i) => widths[i] !== 0);
  const line = (row: readonly string[]) =>
    shown
      .map((i) => {
        const [cell, columns] = [row[i] ?? '', widths[i] ?? 0];
        const short = i === names ? cutMiddle(cell, columns) : cutText(cell, columns);
        const blanks = ' '.repeat(Math.max(0, columns - textWidth(short)));
        const text = paint === undefined ? short : paint(short, i, row);
        return right.includes(i) ? blanks + text : text + blanks;
      })
      .join(' '.repeat(gap))
      .trimEnd();
  return rows.map(line).join('\n');
}

/** The first of several tables that fits its width, else the last one, whose cells keep less. */
export function firstFitting(tables: readonly [Table, ...Table[]]): string {
  const fitting = tables.find((one) => fitted(one).fits);
  return table(fitting ?? { ...(tables.at(-1) ?? tables[0]), least: leastOfAll });
}

interface Fitted {
  readonly widths: readonly number[];
  readonly fits: boolean;
}

/** Widths of columns that fit the room. Names keep as much as tells them apart, also where the others have no room then. */
function fitted(given: Table): Fitted {
  const { rows, names } = given;
  const found = fittedTo(given);
  if (names === undefined) return found;
  const columns = found.widths[names] ?? 0;
  const needed = tellingApart(
    rows.map((row) => row[names] ?? ''),
    columns,
  );
  return needed === columns ? found : fittedTo(given, needed);
}

/** The widest of the columns that may be cut lose one column after another. */
function fittedTo(
  { rows, right = [], names, width = Number.POSITIVE_INFINITY, least = 8 }: Table,
  leastOfNames = least,
): Fitted {
  const count = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const widths = Array.from({ length: count }, (_, i) =>
    rows.reduce((most, row) => Math.max(most, textWidth(row[i] ?? '')), 0),
  );
  const gaps = gap * Math.max(0, widths.filter((columns) => columns > 0).length - 1);
  const leastOf = (i: number) => (i === names ? leastOfNames : least);
  let excess = widths.reduce((sum, columns) => sum + columns, gaps) - width;
  for (; excess > 0; excess -= 1) {
    const widest = widths.reduce(
      (best, columns, i) =>
        !right.includes(i) && columns > leastOf(i) && columns > (widths[best] ?? 0) ? i : best,
      -1,
    );
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return { widths, fits: excess <= 0 };
}
