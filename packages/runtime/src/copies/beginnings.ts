import type { Draft, HomeStore } from '@tapedeck/tape';
import { compactedWhen, compactionIn, compactionOf, saidBy } from '../imported/first-said.ts';
import { recalled } from '../imported/recalled.ts';
import type { Beginning, BeginningFacts } from '../imported/session-facts.ts';
import { type Group, join } from './group.ts';
import type { Kin, Said } from './kin.ts';

/** A session with a compaction. */
interface Compacted {
  readonly id: string;
  readonly kin: Kin;
  readonly said: Said;
  /** Whether it precedes all messages. */
  readonly isLeading: boolean;
}

/**
 * What copies of sessions may begin with: the first message that each shows, its compactions, and the messages behind lost
 * parents. They are known by when they were said, and are read when others of that time are sought: most never are.
 */
export class Beginnings {
  readonly #store: HomeStore;
  /** The sessions that have one, by its time. */
  readonly #byTime = new Map<string, Map<string, Kin>>();
  /** Those with a compaction that was not read yet, by its time. */
  readonly #unread = new Map<string, Compacted[]>();
  /** Those with a compaction, and those that begin with it. */
  readonly #compacted = new Map<string, Group>();
  readonly #compactedFirst = new Map<string, Group>();

  constructor(store: HomeStore) {
    this.#store = store;
  }

  /** Takes note of how a session begins by now. */
  take(id: string, kin: Kin, { shown, compactions, leading, rejoined }: BeginningFacts): void {
    const known = new Map(kin.begins.map((said) => [said.seq, said]));
    const saidOf = (one: Beginning): Said => {
      const said = known.get(one.seq);
      return said?.when === one.when ? said : { seq: one.seq, when: one.when };
    };
    for (const { when } of kin.begins) this.#byTime.get(when)?.delete(id);
    const own = compactions.map(saidOf);
    kin.begins = [...(shown === undefined ? [] : [saidOf(shown)]), ...own, ...rejoined.map(saidOf)];
    for (const { when } of kin.begins) {
      const others = this.#byTime.get(when) ?? new Map<string, Kin>();
      this.#byTime.set(when, others.set(id, kin));
    }
    const { leading: before = 0, compactions: had = [] } = kin.beginning ?? {};
    for (const [i, said] of own.entries()) {
      const isLeading = i < leading;
      if (i < had.length && (!isLeading || i < before)) continue;
      const others = this.#unread.get(said.when) ?? [];
      this.#unread.set(said.when, [...others, { id, kin, said, isLeading }]);
    }
  }

  /**
   * The sessions that have a beginning of one.
   * @param looked the beginnings for which they were sought before: those of this one are added
   */
  *alike(id: string, kin: Kin, looked: Set<string>): Generator<Kin> {
    for (const said of kin.begins) {
      const as = this.#readAs(id, said);
      if (looked.has(as)) continue;
      looked.add(as);
      for (const [otherId, other] of this.#byTime.get(said.when) ?? []) {
        const has = (one: Said) => one.when === said.when && this.#readAs(otherId, one) === as;
        if (other.begins.some(has)) yield other;
      }
    }
  }

  /** What the messages behind lost parents are known by. */
  rejoinedIn(id: string, { begins, beginning }: Kin): readonly string[] {
    const rejoined = new Set(beginning?.rejoined.map(({ seq }) => seq));
    return begins.filter(({ seq }) => rejoined.has(seq)).map((said) => this.#readAs(id, said));
  }

  /** The sessions that have a compaction, or only those that begin with it. */
  compactedAt(compaction: Draft, { isFirst }: { readonly isFirst: boolean }): Group | undefined {
    const when = compactedWhen(compaction);
    for (const { id, kin, said, isLeading } of this.#unread.get(when) ?? []) {
      const as = this.#readAs(id, said);
      for (const groups of [this.#compacted, ...(isLeading ? [this.#compactedFirst] : [])])
        kin.groups.add(join(groups, as, { id, isMain: kin.isMain }));
    }
    this.#unread.delete(when);
    return (isFirst ? this.#compactedFirst : this.#compacted).get(compactionIn(compaction));
  }

  /** What the entry of a session is known by in all copies of it. */
  #readAs(id: string, said: Said): string {
    if (said.as !== undefined) return said.as;
    const { seq } = said;
    const [entry] = this.#store.entries.read(id, { from: seq, to: seq });
    if (entry?.mark === 'boundary') said.as = compactionOf(entry);
    else
      for (const one of recalled(this.#store, id, entry === undefined ? [] : [entry])) said.as = saidBy(one);
    said.as ??= '';
    return said.as;
  }
}
