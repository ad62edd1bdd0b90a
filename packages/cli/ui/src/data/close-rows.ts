import type { LineageRow } from '../../../src/page/data.ts';

/** Rows of the lineage without what is below the sessions with these ULIDs, which count the sessions that they leave out. */
export function closeRows(rows: readonly LineageRow[], closed: readonly string[]): readonly LineageRow[] {
  if (closed.length === 0) return rows;
  const ids = new Set(closed);
  const left: LineageRow[] = [];
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i] as LineageRow;
    let { sessions } = row;
    const isClosed = row.shape === 'session' && row.id !== undefined && ids.has(row.id);
    if (isClosed)
      for (; (rows[i + 1]?.depth ?? 0) > row.depth; i += 1) sessions += rows[i + 1]?.sessions ?? 0;
    left.push(isClosed && sessions > row.sessions ? { ...row, sessions, closed: true } : row);
  }
  return left;
}
