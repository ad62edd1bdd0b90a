import type { SessionFacts } from '../imported/session-facts.ts';

/** A moment at which a program left a session by a `/clear`, or began one behind it: no record says which follows which. */
export interface Clear {
  /** The session of a tool. */
  readonly source: string;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly isLeft: boolean;
}

/** Milliseconds that are kept together. */
const span = 10_000;

/** The moments of all sessions of a home, by their times. */
export class Clears {
  readonly #bySpan = new Map<number, Map<string, Clear>>();

  /** Takes note of those of a session of a tool, each once. */
  take(source: string, { clearedAt, leftAt = [] }: Pick<SessionFacts, 'clearedAt' | 'leftAt'>): void {
    if (clearedAt !== undefined) this.#add(source, clearedAt, false);
    for (const at of leftAt) this.#add(source, at, true);
  }

  /** Those that are at most so far from a time. */
  around(time: number, far: number): readonly Clear[] {
    const found: Clear[] = [];
    for (let of = Math.floor((time - far) / span); of <= Math.floor((time + far) / span); of += 1)
      for (const one of this.#bySpan.get(of)?.values() ?? [])
        if (Math.abs(one.at - time) <= far) found.push(one);
    return found;
  }

  #add(source: string, when: string, isLeft: boolean): void {
    const at = Date.parse(when);
    if (!Number.isFinite(at)) return;
    const of = Math.floor(at / span);
    const there = this.#bySpan.get(of) ?? new Map<string, Clear>();
    this.#bySpan.set(of, there.set(`${at} ${isLeft} ${source}`, { source, at, isLeft }));
  }
}
