import { setImmediate } from 'node:timers/promises';
import { seeded } from './random.ts';

/** Something to be measured. `prepare` is not timed. */
export interface Work {
  readonly prepare?: (times: number) => void;
  readonly act: (i: number) => unknown;
}

/** Microseconds an act, one number for each round. */
export type Sample = readonly number[];

export interface Effort {
  readonly rounds: number;
  /** How often each work is done in a round. */
  readonly times: number;
}

/** What a round took: by the clock, and of the processor. The second does not wait for the disk. */
interface Taken<Name extends string> {
  readonly wall: Readonly<Record<Name, Sample>>;
  readonly cpu: Readonly<Record<Name, Sample>>;
}

/** As `measureBoth`, by the clock alone. */
export function measure<Name extends string>(
  works: Readonly<Record<Name, Work>>,
  effort: Effort,
): Readonly<Record<Name, Sample>> {
  return measureBoth(works, effort).wall;
}

/**
 * Measures several works in one run: each round does every work in turn, so that a disk or a machine that is slow for
 * a while is slow for all of them. The order is another one in every round, because what one work leaves behind for
 * the disk slows down the next. The first rounds warm up and do not count.
 */
export function measureBoth<Name extends string>(
  works: Readonly<Record<Name, Work>>,
  { rounds, times }: Effort,
): Taken<Name> {
  const names = Object.keys(works) as Name[];
  const none = () =>
    Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  const [wall, cpu] = [none(), none()];
  const warmUp = Math.ceil(rounds / 5);
  const random = seeded(1);
  for (let round = -warmUp; round < rounds; round += 1)
    for (const name of shuffled(names, random)) {
      const { prepare, act } = works[name];
      prepare?.(times);
      const before = process.cpuUsage();
      const start = performance.now();
      for (let i = 0; i < times; i += 1) act(i);
      const spent = performance.now() - start;
      const { user, system } = process.cpuUsage(before);
      if (round < 0) continue;
      wall[name].push((spent * 1000) / times);
      cpu[name].push((user + system) / times);
    }
  return { wall, cpu };
}

/** As `measure`, for acts that report their own result: what a process took, or how much memory it had. */
export async function gather<Name extends string, Result = number>(
  acts: Readonly<Record<Name, () => Promise<Result>>>,
  rounds: number,
  { warmUp = 1 }: { warmUp?: number } = {},
): Promise<Readonly<Record<Name, readonly Result[]>>> {
  const names = Object.keys(acts) as Name[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<Name, Result[]>;
  const random = seeded(1);
  for (let round = -warmUp; round < rounds; round += 1)
    for (const name of shuffled(names, random)) {
      // What an act leaves is garbage when the event loop turns, as at the end of a process.
      await setImmediate();
      const value = await acts[name]();
      if (round >= 0) samples[name].push(value);
    }
  return samples;
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

export function median(sample: Sample): number {
  const sorted = sample.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle) - 1] ?? Number.NaN)) / 2;
}

/** The median of the rounds' ratios: what slowed a whole round down cancels out. */
export function ratioOf(ours: Sample, limit: Sample): number {
  return median(ours.map((value, round) => value / (limit[round] ?? Number.NaN)));
}
