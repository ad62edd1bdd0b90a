import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Calm } from '../../packages/cli/ui/src/data/calm.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('the first of many changes is shown at once, and all others together a little later', async () => {
  const acts: number[] = [];
  const calm = new Calm(() => acts.push(Date.now()));
  const began = Date.now();
  for (let i = 0; i < 100; i += 1) {
    calm.changed();
    await vi.advanceTimersByTimeAsync(10);
  }
  await vi.advanceTimersByTimeAsync(5_000);
  expect(acts.map((at) => at - began)).toEqual([0, 400, 800, 1200]);
  calm.changed();
  expect(acts).toHaveLength(5);
});

test('what takes long is done less often, never twice at a time, and not again once it is stopped', async () => {
  let [now, most, done] = [0, 0, 0];
  const calm = new Calm(async () => {
    now += 1;
    most = Math.max(most, now);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    now -= 1;
    done += 1;
  });
  for (let i = 0; i < 190; i += 1) {
    calm.changed();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect({ most, done }).toEqual({ most: 1, done: 4 });
  calm.stop();
  calm.changed();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(done).toBe(4);
});
