import type { Draft, Seq } from '@tapedeck/tape';
import { type CopiedPlaces, lastUpTo } from './places.ts';

/** Where a copy has the message after a line of the log. */
interface Shown {
  readonly seq: Seq;
  /** The line in whose place it is. */
  readonly line: Seq;
  /** Where it is again. */
  readonly again: Again | undefined;
}

/** The newest entry that has the message again and is not left out, and those before it. */
interface Again {
  readonly entry: number;
  readonly before: Again | undefined;
}

/** How a boundary is copied. */
interface Bound {
  /** The entry of the copy at which its tail begins. */
  readonly kept: number;
  /** Entries of that tail that have the message again, and are left out. */
  readonly omitted: readonly number[];
  /** Whether it hides the message in its place, so that the message follows it. */
  readonly hides: boolean;
}

/**
 * What a fork was asked, as a message in the copy of its log. A view of the fork has it once: in its place, or after the
 * tail of a boundary that hides its place. A copy has the message again after such a boundary, and leaves it out of the
 * tail of a later one. Nothing is changed that an earlier view shows: a rewind can lead back to it.
 */
export class CopiedTask {
  readonly message: Draft;
  readonly #seq: Seq;
  readonly #shown: Shown[];

  /** @param seq the line that says what was asked */
  constructor(seq: Seq, message: Draft) {
    this.message = message;
    this.#seq = seq;
    this.#shown = [{ seq, line: seq, again: undefined }];
  }

  /** Takes a rewind. Returns whether it hides the message, which then has its place after it. */
  rewind(seq: Seq, to: Seq): boolean {
    const hides = to < this.#seq;
    this.#shown.push(hides ? { seq, line: seq, again: undefined } : { ...this.#at(to), seq });
    return hides;
  }

  /** Takes a boundary with a tail from a line on, which is planned next. */
  bound(seq: Seq, keep: Seq, places: Pick<CopiedPlaces, 'before' | 'count'>): Bound {
    const { line, again } = this.#at(seq);
    const hides = keep > this.#seq;
    // What lies between the place of the message and that after a rewind is hidden.
    const kept = places.before(hides ? Math.max(keep, line + 1) : keep);
    const omitted: number[] = [];
    let left = again;
    for (; left !== undefined && left.entry >= kept; left = left.before) omitted.unshift(left.entry);
    const entry = places.count + (omitted.length === 0 ? 1 : 2);
    this.#shown.push({ seq, line, again: hides ? { entry, before: left } : left });
    return { kept, omitted, hides };
  }

  #at(seq: Seq): Shown {
    return lastUpTo(this.#shown, seq) ?? { seq, line: this.#seq, again: undefined };
  }
}
