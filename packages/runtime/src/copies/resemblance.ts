import type { Entry, HomeStore } from '@tapedeck/tape';
import { ofStore } from '../imported/of-store.ts';
import { type Likely, likelyPlaces, type Source } from './alike.ts';
import type { Cleaning } from './alike-but-secrets.ts';
import { copiesIn } from './copies.ts';
import { Family } from './family.ts';
import { areIn, includes } from './includes.ts';
import { isUpTo, type Point, Points } from './points.ts';
import type { Member, Step } from './step.ts';

/**
 * The sessions of a home that begin alike, under the same ids or others, as far as an import has read them. Each entry is read
 * once.
 */
class Resemblance {
  readonly #store: HomeStore;
  readonly #family: Family;
  readonly #points = new Points();
  /** What each was as it was read. */
  readonly #states = new Map<string, string>();
  /** What was said of each last. */
  readonly #said = new Map<string, string>();

  constructor(store: HomeStore) {
    this.#store = store;
    this.#family = new Family(store);
  }

  /** Whether a session was found to begin like another one. */
  has(id: string): boolean {
    return this.#family.member(id) !== undefined;
  }

  /**
   * Where the main conversations belong that begin like those of the source of a session, or like one that does: that of the
   * source, and those of which something else was said before, sources before their copies.
   */
  placesAround(id: string): readonly Likely[] {
    const copies = copiesIn(this.#store);
    const alike = copies.resembling(id);
    if (alike.size < 2) return [];
    const sources: Source[] = [];
    for (const [source, ids] of alike) {
      const [main, ...branches] = ids.map((one) => this.#member(one));
      if (main?.isActive !== true) continue;
      const others = branches.flatMap((one) => (one?.isActive === true ? one : []));
      others.sort((a, b) => (a.session < b.session ? -1 : 1));
      for (const said of copies.rejoinedIn(main.id)) this.#points.rejoin(said);
      sources.push({
        id: source,
        members: [main, ...others],
        names: copies.namedSource(main.id),
        isCleared: copies.tools.isCleared(main.id),
      });
    }
    const firstOf = (one: string) => copies.firstOf(one);
    return likelyPlaces(sources, { points: this.#points, firstOf }).filter((one) => {
      const { source, shared, count } = one;
      const said = `${copies.round} ${source?.id} ${source?.common} ${source?.before} ${shared} ${count}`;
      const isSaid = this.#said.get(one.id) === said;
      this.#said.set(one.id, said);
      return one.id === id || !isSaid;
    });
  }

  /**
   * The messages that a session says, but for those among so many entries with which it begins as others do: also those that
   * precede the compaction with which its source begins, wherever that was found. Lazy.
   */
  *messagesBehind(id: string, shared: number): Generator<Entry> {
    const end = this.#member(id)?.end;
    if (end === undefined) return;
    const steps: Step[] = [];
    // What was said here is no part of a source.
    for (let at: Step | undefined = end; at?.key === '' && at.before !== undefined; at = at.before)
      steps.push(at);
    for (
      let at: Point | undefined = this.#points.at(end);
      at?.step !== undefined && at.count > shared;
      at = at.before
    )
      steps.push(at.step);
    for (const step of steps.reverse()) {
      const entry = step.kind === 'message' ? this.#family.entryOf(step) : undefined;
      if (entry !== undefined) yield entry;
    }
  }

  /** How many entries sessions show of what something begins with, by their ids: those that show most of it first. */
  beginning(
    said: Iterable<readonly string[]>,
    ids: readonly string[],
  ): readonly (readonly [id: string, common: number])[] {
    const ends = ids.flatMap((id) => {
      const end = this.#member(id)?.end;
      return end === undefined ? [] : [[id, this.#points.at(end)] as const];
    });
    const way = new Set(this.#points.along(said));
    const common = (end: Point): number => {
      let at: Point | undefined = end;
      while (at !== undefined && !way.has(at)) at = at.before;
      return at?.count ?? 0;
    };
    return ends.map(([id, end]) => [id, common(end)] as const).toSorted(([, a], [, b]) => b - a);
  }

  /** A session of some others that shows all that one shows, with its secrets or without, or one of several that do so together. */
  showing(id: string, others: readonly string[], clean: Cleaning): string | undefined {
    for (const one of [...others, id]) this.#family.read(one);
    const whole = others.find((one) => includes(this.#family, one, id, clean) || this.#says(one, id));
    return whole ?? (areIn(this.#family, others, id, clean) ? others[0] : undefined);
  }

  /** Whether a session says all that another one says, whatever ids it was given where both were forked from a copy. */
  #says(id: string, other: string): boolean {
    const [end, part] = [id, other].map((one) => this.#family.member(one)?.end);
    return end !== undefined && part !== undefined && isUpTo(this.#points.at(part), this.#points.at(end));
  }

  /** Says again where a session belongs. */
  forget(id: string): void {
    this.#said.delete(id);
  }

  #member(id: string): Member | undefined {
    const state = copiesIn(this.#store).stateOf(id);
    if (this.#states.get(id) !== state) this.#family.read(id);
    this.#states.set(id, state);
    return this.#family.member(id);
  }
}

/** What is known of the sessions of a home that begin alike. */
export const resemblanceIn: (store: HomeStore) => Resemblance = ofStore((store) => new Resemblance(store));
