import type { Seq } from '@tapedeck/tape';
import type { Shown } from '../imported/imported.ts';

/** An entry by all that precedes it: conversations that are equal up to there share it. */
export interface Step extends Pick<Shown, 'kind' | 'mark' | 'name' | 'key' | 'content'> {
  readonly before: Step | undefined;
  /** The key of the compaction with which those up to this one begin, if they do. */
  readonly begunAt: string | undefined;
  /** The number of entries up to this one. */
  readonly count: number;
  /** Of a boundary: the key of the first entry that it keeps in view. */
  readonly kept: string | undefined;
  /** What it says and when, whatever its key. */
  readonly said: string;
  /** When its source said it; not a number where that does not tell. */
  readonly time: number;
  readonly isAnswer: boolean;
  after: readonly Step[];
  /** The tapes that have it, each where it was written. */
  places: readonly Place[];
  /** The sessions that show it last. */
  ends: readonly Member[];
}

/** Where a tape has an entry of its own. */
export interface Place {
  readonly member: Member;
  readonly seq: Seq;
}

/** A session of a family. */
export interface Member {
  readonly id: string;
  /** Its name. */
  readonly session: string;
  readonly base: Seq;
  readonly parent: Member | undefined;
  /** Takes forks. */
  isActive: boolean;
  /** What it shows behind each of its own entries that change that, by their positions. */
  readonly seqs: Seq[];
  readonly steps: Step[];
  /** What it shows last. */
  end: Step;
  /** How far its tape was read. */
  read: Seq;
}

/** What a session shows, the last entry first. */
export function pathOf(member: Member | undefined): readonly Step[] {
  const path: Step[] = [];
  for (let at = member?.end; at?.before !== undefined; at = at.before) path.push(at);
  return path;
}

/** The entry with a number among those up to another one. */
export function stepIn(end: Step, count: number): Step | undefined {
  let at: Step | undefined = end;
  while (at !== undefined && at.count > count) at = at.before;
  return at?.count === count ? at : undefined;
}

/** Whether an entry is among those up to another one. */
export function isUpTo(step: Step, end: Step): boolean {
  return stepIn(end, step.count) === step;
}

/** Whether a session has what is at a place, of its own or from those that it was forked from. */
export function isOn(of: Member, { member, seq }: Place): boolean {
  let to = Number.POSITIVE_INFINITY;
  for (let at: Member | undefined = of; at !== undefined; at = at.parent) {
    if (at === member) return seq <= to;
    to = Math.min(to, at.base);
  }
  return false;
}
