import type { Goal, Row, Unit } from './topic.ts';

const columns = ['work', 'against', 'ratio', 'goal', 'median', 'limit'] as const;

/** The rows of all topics as a table for a terminal, or for a page; beside those of an earlier run, if there are any. */
export function table(
  rows: readonly Row[],
  { markdown, before }: { markdown: boolean; before?: readonly Row[] | undefined },
): string {
  const header = before === undefined ? columns : [...columns, 'before', 'change'];
  const cells = rows.map((row) => [
    row.store === undefined ? row.work : `${row.work}: ${row.store}`,
    row.against,
    figure(row.ratio),
    row.goal === undefined ? '' : `${goalText(row.goal)}${isMet(row, row.goal) ? '' : ' !'}`,
    quantity(row.ours, row.unit),
    quantity(row.limit, row.unit),
    ...(before === undefined ? [] : compared(row, before)),
  ]);
  return laidOut([[...header], ...cells], { markdown, texts: 2 });
}

/** Lines of cells in columns, the first of which are texts, and the others figures. */
export function laidOut(
  [header = [], ...lines]: readonly (readonly string[])[],
  { markdown, texts }: { markdown: boolean; texts: number },
): string {
  if (markdown)
    return [header, header.map(() => '---'), ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n');
  const widths = header.map((name, i) =>
    Math.max(name.length, ...lines.map((line) => (line[i] ?? '').length)),
  );
  return [header, ...lines]
    .map((line) =>
      line
        .map((cell, i) => (i < texts ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** The ratio of an earlier run, and by how much this one is above it. */
function compared({ work, store, against, ratio }: Row, before: readonly Row[]): readonly [string, string] {
  const then = before.find(
    (row) => row.work === work && row.store === store && row.against === against,
  )?.ratio;
  if (then === undefined) return ['', ''];
  const percent = Math.round((ratio / then - 1) * 100);
  return [figure(then), `${percent > 0 ? '+' : ''}${percent} %`];
}

function isMet({ ratio }: Row, goal: Goal): boolean {
  return 'most' in goal ? ratio <= goal.most : ratio >= goal.least;
}

function goalText(goal: Goal): string {
  return 'most' in goal ? `≤ ${goal.most}` : `≥ ${goal.least}`;
}

function quantity(value: number, unit: Unit): string {
  if (unit === 'bytes') return value >= 10_000 ? `${figure(value / 1024)} KB` : `${figure(value)} bytes`;
  return unit === 'share' ? figure(value) : `${figure(value)} ${unit}`;
}

/** Three digits that matter, two of a small number. */
export function figure(value: number): string {
  if (value >= 999.5) return grouped(Math.round(value));
  return value < 0.1 ? String(Number(value.toPrecision(2))) : value.toPrecision(3);
}

/** A count as it is read: 100,000. */
export function grouped(count: number): string {
  return count.toLocaleString('en');
}
