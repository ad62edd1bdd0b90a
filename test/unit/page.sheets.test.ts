import type { LivePage, TimelineItem } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';
import { counts, filledDays, stacked } from '../../packages/cli/ui/src/plot/series.ts';
import { aligned } from '../../packages/cli/ui/src/reading/aligned.ts';
import { difference, positions, stripOf } from '../../packages/cli/ui/src/reading/strip.ts';

type Day = Awaited<ReturnType<LivePage['usage']>>['days'][number];

function item(seq: number, role: 'user' | 'assistant', more: Partial<TimelineItem> = {}): TimelineItem {
  const about = { owner: 'main', inherited: false, kind: 'message' as const };
  return { ...about, seq, role, parts: [], commands: [], ...more };
}

function day(key: string, output: number): Day {
  const read = { input: 1, cacheRead: 10, cacheWrite: 100, reasoning: 1_000 };
  return { key, steps: 1, output, ...read, total: 1_111 + output };
}

test('two timelines are side by side turn by turn', () => {
  const a = [
    item(1, 'assistant'),
    item(2, 'user'),
    item(3, 'assistant'),
    item(4, 'assistant'),
    item(5, 'user'),
  ];
  const b = [item(2, 'user'), item(3, 'assistant'), item(4, 'user', { aside: true }), item(8, 'user')];
  expect(aligned(a, b).map((pair) => [pair.a?.seq, pair.b?.seq])).toEqual([
    [1, undefined],
    [2, 2],
    [3, 3],
    [4, 4],
    [5, 8],
  ]);
  expect(aligned([], [])).toEqual([]);
});

test('the ranges of a view fill a strip from the first position to the last', () => {
  const ranges = [
    { from: 11, to: 20, in: false, why: 'summarised' },
    { from: 21, to: 30, in: true, why: 'in view' },
  ];
  expect(stripOf(ranges)).toEqual([
    { x: 0, width: 50, in: false },
    { x: 50, width: 50, in: true },
  ]);
  expect(stripOf([])).toEqual([]);
  const [, hair] = stripOf([
    { from: 1, to: 1_000_000, in: true, why: '' },
    { from: 1_000_001, to: 1_000_001, in: false, why: '' },
  ]);
  expect(hair?.width).toBe(0.2);
});

test('positions and differences are in words', () => {
  expect([positions(7, 7), positions(7, 12)]).toEqual(['@7', '@7–12']);
  expect([difference(1_500, 300), difference(300, 330), difference(3, 3)]).toEqual(['+1,200', '−30', '±0']);
});

test('a plot has the days without calls, and each count upon those below it', () => {
  const days = filledDays([day('2026-02-27', 5), day('2026-03-01', 7)]);
  expect(days.map(({ key, total }) => [key, total])).toEqual([
    ['2026-02-27', 1_116],
    ['2026-02-28', 0],
    ['2026-03-01', 1_118],
  ]);
  const [seconds, ...tops] = stacked(days);
  expect(seconds).toEqual(['2026-02-27', '2026-02-28', '2026-03-01'].map((key) => Date.parse(key) / 1000));
  expect(tops).toHaveLength(counts.length);
  expect(tops[0]).toEqual([1_116, 0, 1_118]);
  expect(tops.at(-1)).toEqual([10, 0, 10]);
});

test('days far apart, or that are no days, are plotted as they are', () => {
  const far = [day('2001-01-01', 1), day('2026-01-01', 1)];
  expect(filledDays(far)).toBe(far);
  const odd = [day('never', 1), day('2026-01-01', 1)];
  expect(filledDays(odd)).toBe(odd);
  expect(filledDays([])).toEqual([]);
});
