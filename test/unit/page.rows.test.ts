import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';
import { PagedRows } from '../../packages/cli/ui/src/data/paged-rows.ts';

/** A list of numbers, which is read in parts, as from a server. */
function listOf(length: number, { isCounted = true, part = 200 } = {}) {
  const asked: number[] = [];
  const list = { length, asked, fault: undefined as Error | undefined };
  const rows = new PagedRows<string>(
    async (offset): Promise<Page<string>> => {
      asked.push(offset);
      await sleep(1);
      if (list.fault !== undefined) throw list.fault;
      // Where the length is not known, an offset is no number of rows.
      const from = isCounted ? offset : offset / 1000;
      const end = Math.min(from + part, list.length);
      return {
        rows: Array.from({ length: Math.max(0, end - from) }, (_, i) => `row ${from + i} of ${list.length}`),
        ...(isCounted && { total: list.length }),
        ...(end < list.length && { next: isCounted ? end : end * 1000 }),
      };
    },
    () => {},
  );
  return { rows, list };
}

test('of a list whose length is known the parts in view are loaded alone', async () => {
  const { rows, list } = listOf(10_000);
  rows.want(0, 40);
  await expect.poll(() => rows.at(0)).toBe('row 0 of 10000');
  expect({ count: rows.count, isCounted: rows.isCounted, asked: list.asked }).toEqual({
    count: 10_000,
    isCounted: true,
    asked: [0],
  });
  rows.want(9_950, 9_999);
  await expect.poll(() => rows.at(9_999)).toBe('row 9999 of 10000');
  expect(rows.at(5_000)).toBeUndefined();
  rows.want(390, 410);
  await expect.poll(() => rows.at(410)).toBe('row 410 of 10000');
  expect(list.asked).toEqual([0, 9_800, 200, 400]);
});

test('a part that is short is continued from its end', async () => {
  const { rows, list } = listOf(300, { part: 70 });
  rows.want(0, 150);
  await expect.poll(() => rows.at(150)).toBeDefined();
  expect(list.asked).toEqual([0, 70, 140]);
});

test('of a list whose length is not known each part is loaded after the one before, as far as is looked', async () => {
  const { rows, list } = listOf(1_000, { isCounted: false });
  rows.want(0, 40);
  await expect.poll(() => rows.isLoaded).toBe(true);
  expect({ count: rows.count, isCounted: rows.isCounted }).toEqual({ count: 201, isCounted: false });
  rows.want(450, 500);
  await expect.poll(() => rows.at(500)).toBe('row 500 of 1000');
  expect(list.asked).toEqual([0, 200_000, 400_000]);
  rows.want(980, 999);
  await expect.poll(() => rows.isCounted).toBe(true);
  expect(rows.count).toBe(1_000);
});

test('when something changed, what is in view is loaded anew and shown as it was until then', async () => {
  const { rows, list } = listOf(1_000);
  rows.want(400, 440);
  await expect.poll(() => rows.at(400)).toBe('row 400 of 1000');
  list.length = 1_001;
  rows.again();
  expect(rows.at(400)).toBe('row 400 of 1000');
  await expect.poll(() => rows.at(400)).toBe('row 400 of 1001');
  expect(rows.count).toBe(1_001);
  rows.patch((text) => text.toUpperCase());
  expect(rows.at(400)).toBe('ROW 400 OF 1001');
});

test('a list that became shorter ends where it ends now', async () => {
  const { rows, list } = listOf(1_000);
  rows.want(990, 999);
  await expect.poll(() => rows.at(999)).toBeDefined();
  list.length = 10;
  rows.again();
  await expect.poll(() => rows.count).toBe(10);
});

test('a part that is refused says why, and is loaded again when the list is', async () => {
  const { rows, list } = listOf(1_000);
  list.fault = new Error('no answer');
  rows.want(0, 10);
  await expect.poll(() => rows.error).toBe(list.fault);
  rows.want(0, 20);
  await sleep(5);
  expect(list.asked).toEqual([0]);
  list.fault = undefined;
  rows.again();
  await expect.poll(() => rows.at(0)).toBe('row 0 of 1000');
  expect(rows.error).toBeUndefined();
});
