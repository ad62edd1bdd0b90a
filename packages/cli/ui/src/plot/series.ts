import type { UsageRow } from '../../../src/page/data.ts';

/** The counts of tokens that a plot stacks, which have no token in common. */
export const counts = [
  ['cacheRead', 'Read from cache'],
  ['cacheWrite', 'Written to cache'],
  ['input', 'Other input'],
  ['output', 'Output'],
  ['reasoning', 'Reasoning'],
] as const;

/** Seconds since 1970 of a day in UTC. */
function secondsOf(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / 1000;
}

/** All days from the first with calls to the last, those without calls too: as many as can be plotted. */
export function filledDays(days: readonly UsageRow[], most = 400): readonly UsageRow[] {
  const [first] = days;
  const last = days.at(-1);
  if (first === undefined || last === undefined) return [];
  const all = (secondsOf(last.key) - secondsOf(first.key)) / 86_400 + 1;
  if (!(all <= most)) return days;
  const known = new Map(days.map((row) => [row.key, row]));
  return Array.from({ length: all }, (_, i) => {
    const key = new Date((secondsOf(first.key) + i * 86_400) * 1000).toISOString().slice(0, 10);
    return known.get(key) ?? { ...nothing, key };
  });
}

const nothing = {
  ...{ steps: 0, input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

/** The data of a plot: the days, and each count upon those below it, the highest first. */
export function stacked(days: readonly UsageRow[]): readonly (readonly number[])[] {
  const tops = counts.map((_, level) =>
    days.map((row) => counts.slice(0, level + 1).reduce((sum, [count]) => sum + row[count], 0)),
  );
  return [days.map(({ key }) => secondsOf(key)), ...tops.toReversed()];
}
