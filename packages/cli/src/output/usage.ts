import type { SessionUsage, Usage, UsageSum } from '@tapedeck/runtime';
import { oneLine } from './safe.ts';
import { table } from './table.ts';

type Json = Readonly<Record<string, unknown>>;

/** Token counts as `--json` gives them. */
export function usageJson(usage: Usage): Readonly<Record<string, number>> {
  const { input, output, reasoning, cacheRead, cacheWrite } = usage;
  return { input, output, reasoning, cache_read: cacheRead, cache_write: cacheWrite };
}

/** What calls took, added up, as `--json` gives it. */
export function sumJson({ steps, usage, total, cost }: UsageSum): Json {
  return { steps, ...usageJson(usage), total, ...(cost !== undefined && { cost }) };
}

/** What a session's calls took, as `--json` gives it. */
export function sessionUsageJson(own: SessionUsage): Json {
  const { session, window, models, children, tree } = own;
  return {
    session,
    ...sumJson(own),
    ...(window !== undefined && { window }),
    models: models.map((of) => ({ model: of.model ?? null, ...sumJson(of) })),
    ...(children !== undefined && { children: children.map(sessionUsageJson) }),
    ...(tree !== undefined && { tree: sumJson(tree) }),
  };
}

const columns = ['steps', 'input', 'output', 'reasoning', 'cache read', 'cache write', 'total', 'window'];

/** One line of the table: a name, and what stands in its columns. */
interface Row {
  readonly name: string;
  readonly sum: UsageSum;
  readonly window?: number | undefined;
}

/**
 * Sessions as a table with a heading, those that came from another below it. One session alone is followed by its models,
 * if it asked several; `total` is the last row.
 */
export function usageTable(
  sessions: readonly SessionUsage[],
  { total, aligned }: { readonly total?: UsageSum | undefined; readonly aligned: boolean },
): string {
  const rows = [
    ...sessions.flatMap((own) => rowsOf(own, '')),
    ...(total === undefined ? sessions.flatMap(modelRows) : [{ name: 'total', sum: total }]),
  ];
  const costs = rows.some(({ sum }) => sum.cost !== undefined);
  const lines = rows.map((row) => cellsOf(row, costs));
  return table([['session', ...columns, ...(costs ? ['cost'] : [])], ...lines], { aligned, right: 1 });
}

function rowsOf(own: SessionUsage, indent: string): Row[] {
  const row = { name: `${indent}${own.session}`, sum: own, window: own.window };
  return [row, ...(own.children ?? []).flatMap((child) => rowsOf(child, `${indent}  `))];
}

function modelRows({ models }: SessionUsage): Row[] {
  if (models.length < 2) return [];
  return models.map((of) => ({ name: `  ${oneLine(of.model ?? '(no model named)', 60)}`, sum: of }));
}

function cellsOf({ name, sum, window }: Row, costs: boolean): string[] {
  const { steps, usage, total, cost } = sum;
  const counts = [steps, ...Object.values(usageJson(usage)), total, window];
  return [
    name,
    ...counts.map((count) => (count === undefined ? '' : String(count))),
    // Adding up fractions leaves digits that nobody wrote.
    ...(costs ? [cost === undefined ? '' : String(Number(cost.toPrecision(12)))] : []),
  ];
}
