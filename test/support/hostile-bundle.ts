import { hash } from 'node:crypto';

/** The records of a bundle, without its end. */
export function recordsOf(bundle: string): Record<string, unknown>[] {
  return bundle
    .trimEnd()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** A bundle of records or lines, with an end that is right for them. */
export function sealed(records: readonly (object | string)[]): string {
  const lines = records.map((record) => `${typeof record === 'string' ? record : JSON.stringify(record)}\n`);
  const count = (field: string) => lines.filter((line) => line.startsWith(`{"${field}":`)).length;
  const end = {
    lines: lines.length,
    sessions: count('tape'),
    entries: count('e'),
    sha256: hash('sha256', lines.join('')),
  };
  return `${lines.join('')}${JSON.stringify({ end })}\n`;
}

/** A value in which one leaf, chosen by a number, is replaced. */
export function withLeaf(value: unknown, at: number, put: unknown): unknown {
  let left = at;
  const visit = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(visit);
    if (typeof one === 'object' && one !== null)
      return Object.fromEntries(Object.entries(one).map(([key, field]) => [key, visit(field)]));
    left -= 1;
    return left === -1 ? put : one;
  };
  return visit(value);
}

/** How many leaves a value has. */
export function leavesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, one) => sum + leavesOf(one), 0);
}
