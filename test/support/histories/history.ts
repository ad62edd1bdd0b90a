import {
  type Draft,
  type ForkRequest,
  result,
  type Seq,
  type SqliteTapeStore,
  TapeError,
} from '@tapedeck/tape';
import { normalise } from '@tapedeck/tape/store';
import { CopiedSession } from '../copying-model.ts';
import { type Random, seeded } from '../seeded.ts';
import { anyDrafts } from './drafts.ts';
import type { Tally } from './tally.ts';
import { Words } from './words.ts';

const sessionsMax = 4;

/**
 * Sessions that grow step by step, in a store that many histories share. Every step is one number, so that a history
 * is defined by its numbers and can be cut short.
 */
export class History {
  readonly store: SqliteTapeStore;
  readonly sessions: CopiedSession[] = [];
  readonly #tally: Tally;
  readonly #words = new Words();
  /** The drafts to append to the current session, together. */
  #waiting: Draft[] = [];
  #current: CopiedSession;
  /** Ids of calls of a session without an answer yet. */
  readonly #asked = new Map<CopiedSession, string[]>();
  /** Positions of results. */
  readonly #results = new Map<CopiedSession, Seq[]>();
  /** Every own entry of a session, as it was when it was written. */
  readonly #written = new Map<CopiedSession, string[]>();

  constructor(store: SqliteTapeStore, name: string, tally: Tally) {
    this.store = store;
    this.#tally = tally;
    this.#current = this.#begin(new CopiedSession(store.sessions.open(name).session));
  }

  /** Does what numbers say, and writes all of it down. */
  play(steps: readonly number[]): void {
    for (const [i, step] of steps.entries()) this.#step(seeded(step), i < 3);
    this.#flush();
  }

  /** The entries of the sessions' own tapes now, and as they were written. */
  facts(): { readonly found: string; readonly written: string } {
    const found = this.sessions.flatMap(({ name }) =>
      [...this.store.entries.read(name, { own: true })].map((entry) => JSON.stringify(entry)),
    );
    const written = this.sessions.flatMap((session) => this.#written.get(session) ?? []);
    return { found: found.join('\n'), written: written.join('\n') };
  }

  /** A history begins with something that is said. */
  #step(random: Random, isEarly: boolean): void {
    const choice = random.below(100);
    if (choice < 81 || isEarly) this.#say(random);
    else if (choice < 86) this.#rewind(random);
    else if (choice < 88) this.#unrewind();
    else if (choice < 93) this.#fork(random);
    else if (choice < 97) this.#merge(random);
    else if (choice < 98) this.#result();
    else this.#turnTo(random.of(this.sessions));
  }

  #say(random: Random): void {
    const session = this.#current;
    const drafts = anyDrafts({
      random,
      words: this.#words,
      floor: session.floor,
      head: session.head + this.#waiting.length,
      asked: this.#asked.get(session) ?? [],
      results: this.#results.get(session) ?? [],
      count: this.#tally.count,
    });
    this.#waiting.push(...drafts.flatMap(normalise));
  }

  #rewind(random: Random): void {
    this.#flush();
    const { name, floor, head } = this.#current;
    // Mostly to what was said lately; now and then to where the session begins.
    const to = Math.max(floor, head - random.below(random.chance(70) ? 6 : head - floor + 1));
    this.store.history.rewind(name, to);
    this.#tally.count('rewind');
    this.#sync(this.#current);
  }

  #unrewind(): void {
    this.#flush();
    if (this.#current.lastRewind() === undefined) return;
    this.store.history.unrewind(this.#current.name);
    this.#tally.count('unrewind');
    this.#sync(this.#current);
  }

  #fork(random: Random): void {
    this.#flush();
    if (this.sessions.length >= sessionsMax) return;
    const parent = this.#current;
    const request: ForkRequest = {
      name: `${this.sessions[0]?.name ?? ''}.${this.sessions.length}`,
      ...this.#span(parent, random),
      ...(random.chance(40) && { intention: { nextSteps: this.#words.next('said') } }),
    };
    const { session: name, base, range } = this.store.lineage.fork(parent.name, request);
    const floor = range === null ? base : range[0] - 1;
    const child = this.#begin(new CopiedSession(name, { parent, floor, base }));
    this.#asked.set(child, [...(this.#asked.get(parent) ?? [])]);
    if (base <= parent.base) this.#tally.count('fork of what was inherited');
    this.#tally.count('fork');
    // Sometimes the parent continues.
    if (random.chance(70)) this.#current = child;
  }

  /** Which part of its parent a child inherits. */
  #span(parent: CopiedSession, random: Random): ForkRequest {
    const { floor, head } = parent;
    const position = () => floor + 1 + random.below(head - floor);
    const cut = random.chance(50) ? head : position();
    const ending = cut === head ? {} : { cut };
    const choice = random.below(10);
    if (choice === 0 || choice > 6) this.#tally.count(choice === 0 ? 'fresh fork' : 'fork of all');
    if (choice === 0) return { inherit: 'nothing' };
    if (choice <= 2) {
      this.#tally.count('fork of a window');
      return { ...ending, inherit: { last: 1 + random.below(4) } };
    }
    if (choice > 6) return ending;
    this.#tally.count('fork since a point');
    const anchors = parent.seen(head).filter((seq) => seq <= cut && parent.at(seq).kind === 'anchor');
    const since = choice > 4 && anchors.length > 0 ? random.of(anchors) : Math.min(position(), cut);
    return { ...ending, inherit: { since } };
  }

  #merge(random: Random): void {
    this.#flush();
    const children = this.sessions.filter(({ parent }) => parent !== undefined);
    if (children.length === 0) return;
    const child = random.of(children);
    const into = random.chance(20) ? this.sessions[0] : child.parent;
    if (into === undefined) return;
    const done = this.#settled(() =>
      this.store.lineage.merge(child.name, { into: into.name, ...(random.chance(15) && { context: false }) }),
    );
    this.#tally.count(done === undefined ? 'merge refused' : done.repeated ? 'merge again' : 'merge');
    this.#sync(into);
  }

  #result(): void {
    this.#flush();
    this.store.entries.append(this.#current.name, [result(this.#words.next('said'))]);
    this.#tally.count('result of a child');
    this.#sync(this.#current);
  }

  #turnTo(session: CopiedSession): void {
    this.#flush();
    this.#current = session;
  }

  /** The result of an act; undefined where open calls forbid it. */
  #settled<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      if (error instanceof TapeError && error.code === 'TAPE_UNSETTLED') return undefined;
      throw error;
    }
  }

  #flush(): void {
    if (this.#waiting.length === 0) return;
    this.store.entries.append(this.#current.name, this.#waiting);
    this.#waiting = [];
    this.#sync(this.#current);
  }

  #begin(session: CopiedSession): CopiedSession {
    this.sessions.push(session);
    this.#asked.set(session, []);
    this.#results.set(session, []);
    this.#written.set(session, []);
    this.#sync(session);
    return session;
  }

  /** Takes in what the store has written at a session's end. */
  #sync(session: CopiedSession): void {
    const [written, results] = [this.#written.get(session), this.#results.get(session)];
    for (const entry of this.store.entries.read(session.name, { own: true, from: session.head + 1 })) {
      session.add(entry);
      written?.push(JSON.stringify(entry));
      if (entry.kind === 'tool-result') results?.push(entry.seq);
    }
  }
}
