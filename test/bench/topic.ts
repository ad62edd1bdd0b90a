import type { Sample } from './measure.ts';
import { median, ratioOf } from './measure.ts';

export type Unit = 'µs' | 'ms' | 'bytes' | 'MB' | '/s' | 'share' | 'entries' | 'calls';

/** One line of the table. */
export interface Row {
  readonly work: string;
  /** Which store did it, where several are compared. */
  readonly store?: string;
  readonly against: string;
  readonly ratio: number;
  /** The goal of the ratio: at most, or at least. */
  readonly goal: Goal | undefined;
  /** Medians, for orientation: they are of one machine. */
  readonly ours: number;
  readonly limit: number;
  readonly unit: Unit;
}

export type Goal = { readonly most: number } | { readonly least: number };

/** The input of a topic. */
export interface Bench {
  /** A directory that goes away with the run. */
  readonly dir: string;
  /** The first in a full run, the second in a quick one, which only shows that everything runs. */
  readonly size: <T>(full: T, quick: T) => T;
  /** Says what is under way, on stderr. */
  readonly say: (text: string) => void;
  /** Adds a line below the table: what its figures do not say. */
  readonly note: (text: string) => void;
}

export type Topic = (bench: Bench) => readonly Row[] | Promise<readonly Row[]>;

interface Comparison {
  readonly work: string;
  readonly store?: string;
  readonly against: string;
  readonly goal?: Goal;
  readonly unit: Unit;
}

/** Two samples of the same rounds as a row. Times are sampled in microseconds, and shown in what fits. */
export function compared(ours: Sample, limit: Sample, what: Comparison): Row {
  const scale = what.unit === 'ms' ? 1000 : 1;
  return {
    ...what,
    goal: what.goal,
    ratio: ratioOf(ours, limit),
    ours: median(ours) / scale,
    limit: median(limit) / scale,
  };
}

/** Two numbers as a row. */
export function counted(ours: number, limit: number, what: Comparison): Row {
  return { ...what, goal: what.goal, ratio: ours / limit, ours, limit };
}
