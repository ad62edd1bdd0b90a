import type { HomeStore } from '@tapedeck/tape';
import { Family } from './family.ts';
import type { Group } from './group.ts';

/** The memory of so many families is kept: files of one family are seldom far from each other. */
const familiesMax = 200;

/** What was read of sessions that begin with the same message, as trees: that of those which were sought last. */
export class Families {
  readonly #store: HomeStore;
  /** Those of which a family was read, the one that was sought last at the end. */
  readonly #kept = new Set<Group>();

  constructor(store: HomeStore) {
    this.#store = store;
  }

  /**
   * The sessions of a group, as a tree.
   * @param round how often others may have written
   */
  of(group: Group, round: number): Family {
    this.#keep(group);
    const family = group.family ?? new Family(this.#store);
    group.family = family;
    for (const id of group.takeFresh(round)) family.read(id);
    return family;
  }

  /** Keeps what was read of a group, in place of that of the group that was sought longest ago. */
  #keep(group: Group): void {
    this.#kept.delete(group);
    this.#kept.add(group);
    const [oldest] = this.#kept;
    if (this.#kept.size <= familiesMax || oldest === undefined) return;
    oldest.forget();
    this.#kept.delete(oldest);
  }
}
