import type { SessionUsage, Usage, UsageSum } from '@tapedeck/runtime';
import { oneLine, safe } from '../escape.ts';
import { shortNumber } from '../terminal/number.ts';
import { firstFitting, tabbed } from './table.ts';

type Json = Readonly<Record<string, unknown>>;

/** Token counts as `--json` prints them. */
export function usageJson(usage: Usage): Readonly<Record<string, number>> {
  const { input, output, reasoning, cacheRead, cacheWrite } = usage;
  return { input, output, reasoning, cache_read: cacheRead, cache_write: cacheWrite };
}

/** The sum of the usage of calls as `--json` prints it. */
export function sumJson({ steps, usage, total, cost }: UsageSum): Json {
  return { steps, ...usageJson(usage), total, ...(cost !== undefined && { cost }) };
}

/** The usage of a session as `--json` prints it. */
export function sessionUsageJson(own: SessionUsage): Json {
  const below: Json[] = [];
  // A loop, not `map`: deep forks would exceed the call stack with two calls per level.
  for (const child of own.children ?? []) below.push(sessionUsageJson(child));
  return { ...ownJson(own), ...(own.children !== undefined && { children: below }), ...treeJson(own) };
}

function ownJson(own: SessionUsage): Json {
  const { session, window, models, inherited, summaries } = own;
  return {
    session,
    ...sumJson(own),
    ...(window !== undefined && { window }),
    models: models.map((of) => ({ model: of.model ?? null, ...sumJson(of) })),
    ...(inherited !== undefined && { inherited: sumJson(inherited) }),
    ...(summaries !== undefined && { summaries: sumJson(summaries) }),
  };
}

function treeJson({ tree }: SessionUsage): Json {
  return tree === undefined ? {} : { tree: sumJson(tree) };
}

const columns = ['steps', 'input', 'output', 'reasoning', 'cache read', 'cache write', 'total', 'window'];
/** The same in few columns of a terminal. */
const brief = ['steps', 'input', 'output', 'reason', 'read', 'write', 'total', 'window'];
/** Columns that a narrow terminal has no room for. */
const besides: ReadonlySet<string> = new Set(['steps', 'window', 'write']);

/** One row of the table. */
interface Row {
  readonly name: string;
  readonly sum: UsageSum;
  readonly window?: number | undefined;
}

/**
 * The usage of sessions as a table with a heading, children indented below their parent. With `total`, the
 * last row is the total; without it, rows for several models, inherited entries and summaries follow each
 * session. On a terminal that is too narrow, numbers are short, and columns without a number are left out.
 */
export function usageTable(
  sessions: readonly SessionUsage[],
  {
    total,
    width,
    distinct,
  }: {
    readonly total?: UsageSum | undefined;
    readonly width: number | undefined;
    readonly distinct?: (name: string) => number;
  },
): string {
  const rows = [
    ...rowsOf(sessions),
    ...(total === undefined
      ? sessions.flatMap((own) => [...modelRows(own), ...besideRows(own)])
      : [{ name: 'total', sum: total }]),
  ];
  const costs = rows.some(({ sum }) => sum.cost !== undefined);
  const tableOf = (
    texts: (row: Row) => readonly string[],
    names: readonly string[],
    wanted: readonly number[],
  ) => {
    const heading = ['session', ...names, ...(costs ? ['cost'] : [])];
    const all = [heading, ...rows.map((row) => [row.name, ...texts(row)])];
    const kept = all.map((row) => row.filter((_, i) => wanted.includes(i)));
    return {
      rows: kept,
      right: kept[0]?.map((_, i) => i).slice(1) ?? [],
      names: [0],
      distinct,
      width,
      least: 16,
    };
  };
  const exact = (row: Row) => cellsOf(row, { costs, text: numberText });
  const short = (row: Row) => cellsOf(row, { costs, text: shortText });
  const every = ['session', ...columns, ...(costs ? ['cost'] : [])].map((_, i) => i);
  if (width === undefined) return tabbed(tableOf(exact, columns, every).rows);
  const filled = every.filter((i) => i === 0 || rows.some((row) => Number(exact(row)[i - 1]) > 0));
  const few = filled.filter((i) => !besides.has(brief[i - 1] ?? ''));
  return firstFitting([
    tableOf(exact, columns, every),
    tableOf(exact, columns, filled),
    tableOf(short, brief, filled),
    tableOf(short, brief, few),
  ]);
}

/** The same table with tabs, line by line, with the total at its end. */
export async function* usageLines(
  sessions: AsyncIterable<SessionUsage>,
  total: UsageSum,
): AsyncGenerator<string> {
  const costs = total.cost !== undefined;
  yield ['session', ...columns, ...(costs ? ['cost'] : [])].join('\t');
  for await (const own of sessions) for (const row of rowsOf([own])) yield safe(lineOf(row, costs));
  yield lineOf({ name: 'total', sum: total }, costs);
}

function lineOf(row: Row, costs: boolean): string {
  return [row.name, ...cellsOf(row, { costs, text: numberText })].join('\t');
}

/** A row for each session, its descendants indented below it. */
function rowsOf(sessions: readonly SessionUsage[]): Row[] {
  const rows: Row[] = [];
  const left = sessions.map((own) => ({ own, depth: 0 })).reverse();
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { own, depth } = next;
    rows.push({ name: `${'  '.repeat(depth)}${own.session}`, sum: own, window: own.window });
    for (const child of (own.children ?? []).toReversed()) left.push({ own: child, depth: depth + 1 });
  }
  return rows;
}

function modelRows({ models }: SessionUsage): Row[] {
  if (models.length < 2) return [];
  return models.map((of) => ({ name: `  ${oneLine(of.model ?? '(unknown model)', 60)}`, sum: of }));
}

/** Rows of usage that the sum of the session excludes. */
function besideRows({ inherited, summaries }: SessionUsage): Row[] {
  return [
    ...(inherited === undefined ? [] : [{ name: '  (inherited)', sum: inherited }]),
    ...(summaries === undefined ? [] : [{ name: '  (summaries)', sum: summaries }]),
  ];
}

interface Cells {
  readonly costs: boolean;
  readonly text: (number: number | undefined) => string;
}

function cellsOf({ sum, window }: Row, { costs, text }: Cells): string[] {
  const { steps, usage, total, cost } = sum;
  const counts = [steps, ...Object.values(usageJson(usage)), total, window];
  return [...counts.map(text), ...(costs ? [numberText(cost)] : [])];
}

function shortText(number: number | undefined): string {
  return number === undefined ? '' : shortNumber(number);
}

/** A number without the errors of adding fractions. */
function numberText(number: number | undefined): string {
  if (number === undefined) return '';
  return String(Number.isInteger(number) ? number : Number(number.toPrecision(12)));
}
