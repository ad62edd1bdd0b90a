import { cutText, padText, textWidth } from '../terminal/width.ts';

/** How a table fits its place. */
interface Layout {
  /** Aligns the columns; else tabs separate them. */
  readonly aligned: boolean;
  /** Index of the first right-aligned column. */
  readonly right?: number;
  /** Number of columns of the terminal, to which rows are cut. */
  readonly width?: number;
  /** Number of columns that a cut cell keeps. */
  readonly least?: number;
  /** Formats a padded cell. */
  readonly paint?: (cell: string, column: number, row: readonly string[]) => string;
}

const gap = 2;

/**
 * Rows as lines. Where they do not fit the width, the widest left-aligned columns are cut.
 */
export function table(
  rows: readonly (readonly string[])[],
  { aligned, right = Number.POSITIVE_INFINITY, width = Number.POSITIVE_INFINITY, least = 8, paint }: Layout,
): string {
  if (!aligned) return rows.map((row) => row.join('\t')).join('\n');
  const count = Math.max(0, ...rows.map((row) => row.length));
  const natural = Array.from({ length: count }, (_, i) =>
    rows.reduce((most, row) => Math.max(most, textWidth(row[i] ?? '')), 0),
  );
  // An empty column takes no room.
  const shown = natural.flatMap((columns, i) => (columns === 0 ? [] : [i]));
  const widths = fitted(natural, { room: width - gap * (shown.length - 1), right, least });
  const line = (row: readonly string[]) =>
    shown
      .map((i) => {
        const [cell, columns] = [row[i] ?? '', widths[i] ?? 0];
        const side = i < right ? 'end' : 'start';
        const isLast = i === shown.at(-1) && side === 'end';
        const text = isLast ? cutText(cell, columns) : padText(cutText(cell, columns), columns, side);
        return paint === undefined ? text : paint(text, i, row);
      })
      .join(' '.repeat(gap))
      .trimEnd();
  return rows.map(line).join('\n');
}

/** Widths of columns that fit the room: the widest of those that may be cut lose one column after another. */
function fitted(
  natural: readonly number[],
  { room, right, least }: { readonly room: number; readonly right: number; readonly least: number },
): readonly number[] {
  const widths = [...natural];
  let excess = widths.reduce((sum, columns) => sum + columns, 0) - room;
  for (; excess > 0; excess -= 1) {
    const widest = widths.reduce(
      (best, columns, i) => (i < right && columns > least && columns > (widths[best] ?? least) ? i : best),
      -1,
    );
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
