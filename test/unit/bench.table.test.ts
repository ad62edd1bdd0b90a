import { expect, test } from 'vitest';
import { measure, ratioOf } from '../bench/measure.ts';
import { bytesOf, payloads, take } from '../bench/payload.ts';
import { table } from '../bench/table.ts';
import { counted } from '../bench/topic.ts';

test('a slowdown of a whole round does not change a ratio', () => {
  expect(ratioOf([2, 20, 2], [1, 10, 1])).toBe(2);
  // Nor does one bad moment of one of the two.
  expect(ratioOf([2, 20, 2], [1, 1, 1])).toBe(2);
});

test('every measurement runs equally often in every round, after its preparation', () => {
  const done: string[] = [];
  const samples = measure(
    {
      a: { act: (i) => done.push(`a${i}`) },
      b: { prepare: (times) => done.push(`b for ${times}`), act: (i) => done.push(`b${i}`) },
    },
    { rounds: 5, times: 2 },
  );
  expect(samples.a.length).toBe(5);
  expect(samples.b.length).toBe(5);
  // One more round than requested warms up.
  for (const act of ['a0', 'a1', 'b for 2', 'b0', 'b1'])
    expect(done.filter((each) => each === act).length, act).toBe(6);
  expect(done.join(' ')).toMatch(/b for 2 b0 b1/);
});

test('a run is compared with a saved one, row by row', () => {
  const row = (work: string, ours: number) => counted(ours, 100, { work, against: 'a', unit: 'ms' });
  const lines = table([row('w', 150), row('new', 120), row('x', 90)], {
    markdown: true,
    before: [row('x', 100), row('w', 100)],
  }).split('\n');
  expect(lines).toEqual([
    '| work | against | ratio | goal | median | limit | before | change |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    '| w | a | 1.50 |  | 150 ms | 100 ms | 1.00 | +50 % |',
    '| new | a | 1.20 |  | 120 ms | 100 ms |  |  |',
    '| x | a | 0.900 |  | 90.0 ms | 100 ms | 1.00 | -10 % |',
  ]);
});

test('a missed goal is marked, whichever side it is on', () => {
  const row = (ours: number, goal: { most: number } | { least: number }) =>
    counted(ours, 100, { work: 'w', against: 'a', unit: 'ms', goal });
  const lines = table([row(110, { most: 1.2 }), row(130, { most: 1.2 }), row(80, { least: 0.9 })], {
    markdown: true,
  }).split('\n');
  expect(lines.slice(2)).toEqual([
    '| w | a | 1.10 | ≤ 1.2 | 110 ms | 100 ms |',
    '| w | a | 1.30 | ≤ 1.2 ! | 130 ms | 100 ms |',
    '| w | a | 0.800 | ≥ 0.9 ! | 80.0 ms | 100 ms |',
  ]);
});

test('the measured entries are the same in every run, and have their stated size', () => {
  const texts = take(payloads(), 5000).map(bytesOf);
  expect(texts).toEqual(take(payloads(), 5000).map(bytesOf));
  const lengths = texts.map((text) => text.length);
  expect(lengths.reduce((sum, length) => sum + length, 0) / lengths.length).toSatisfy(
    (mean: number) => mean > 1200 && mean < 1500,
  );
  expect(lengths.filter((length) => length > 10_000).length).toSatisfy((n: number) => n > 50 && n < 150);
});
