import type { SeenRange } from '../../../src/page/data.ts';

/** A part of a strip of positions: where it begins and how wide it is, of 100. */
interface Segment {
  readonly x: number;
  readonly width: number;
  readonly in: boolean;
}

/** The positions of a view as a strip, from the first to the last. What is less than a hair wide is a hair wide. */
export function stripOf(ranges: readonly SeenRange[]): readonly Segment[] {
  const [first] = ranges;
  if (first === undefined) return [];
  const end = Math.max(...ranges.map(({ to }) => to)) + 1;
  const all = end - first.from;
  return ranges.map((range) => ({
    x: (100 * (range.from - first.from)) / all,
    width: Math.max(0.2, (100 * (range.to + 1 - range.from)) / all),
    in: range.in,
  }));
}

/** Positions in words: `@7`, `@7–12`. */
export function positions(from: number, to: number): string {
  return from === to ? `@${from}` : `@${from}–${to}`;
}

/** How much a number is more or less than another: `+1,200`, `−30`, `±0`. */
export function difference(now: number, before: number): string {
  const by = now - before;
  const sign = by > 0 ? '+' : by < 0 ? '−' : '±';
  return `${sign}${Math.abs(by).toLocaleString('en-US')}`;
}
