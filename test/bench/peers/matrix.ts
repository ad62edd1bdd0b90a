import { figure, laidOut } from '../table.ts';
import type { Row } from '../topic.ts';

/** Works of stores as a table with a column for each store. A cell is empty where a store does not do the work. */
export function matrix(rows: readonly Row[], { markdown }: { markdown: boolean }): string {
  const stores = [...new Set(rows.map(({ store }) => store ?? ''))];
  const lines = [
    ...Map.groupBy(rows, ({ work, unit }) => (unit === 'share' ? work : `${work}, ${unit}`)),
  ].map(([work, of]) => [work, ...stores.map((store) => cell(of.find((row) => row.store === store)))]);
  return laidOut([['work', ...stores], ...lines], { markdown, texts: 1 });
}

function cell(row: Row | undefined): string {
  if (row === undefined) return '';
  return row.unit === 'share' ? `${Math.round(row.ratio * 100)} %` : figure(row.ours);
}
