import type { PageData } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';
import { toPrint } from '../../packages/cli/ui/src/reading/to-print.ts';

type Timeline = Awaited<ReturnType<PageData['timeline']>>;

/** A session that answers as a server does: at most 200 positions, and less of long ones. */
function sessionOf(head: number, { chars = 10, faultAt = Number.POSITIVE_INFINITY } = {}) {
  return (from: number, last: number): Timeline => {
    if (from >= faultAt) throw new Error('it has ended');
    const to = Math.min(last, from + 199);
    const items = Array.from({ length: to - from + 1 }, (_, i) => ({
      ...{ seq: from + i, owner: 'main', inherited: false, kind: 'message' as const, commands: [] },
      parts: [{ type: 'text' as const, text: 'x'.repeat(chars) }],
    }));
    return { items, from, to, floor: 0, head };
  };
}

const printed = (head: number, at: number, how?: Parameters<typeof sessionOf>[1]) => {
  const { items, from, to, error } = toPrint(sessionOf(head, how), { floor: 0, head, at });
  expect(items.map(({ seq }) => seq)).toEqual(Array.from({ length: to - from + 1 }, (_, i) => from + i));
  return error === undefined ? [from, to] : [from, to, String(error)];
};

test('all of a session is printed, from wherever it is read', () => {
  expect(printed(1, 1)).toEqual([1, 1]);
  expect(printed(999, 700)).toEqual([1, 999]);
  expect(printed(5_000, 5_000)).toEqual([1, 5_000]);
});

test('of a longer one as much as can be is printed from there, or its end', () => {
  expect(printed(100_000, 40_000)).toEqual([40_000, 44_999]);
  expect(printed(100_000, 99_000)).toEqual([95_001, 100_000]);
});

test('the part is shorter where texts are long, and ends where nothing is answered', () => {
  expect(printed(5_000, 1, { chars: 20_000 })).toEqual([1, 400]);
  expect(printed(5_000, 1, { faultAt: 401 })).toEqual([1, 400, 'Error: it has ended']);
});
