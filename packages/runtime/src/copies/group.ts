import type { SharedCounts } from '../imported/ledger.ts';
import type { Family } from './family.ts';

/** Sessions that have something in common. */
export class Group {
  readonly ids: Set<string> = new Set();
  /** Those that are main conversations. */
  readonly mains: string[] = [];
  family?: Family;
  counts?: SharedCounts;
  /** Those that have something new. */
  readonly #fresh = new Set<string>();
  /** When all of them were read. */
  #round = -1;

  add(id: string, isMain: boolean): void {
    if (this.ids.has(id)) return;
    this.ids.add(id);
    if (isMain) this.mains.push(id);
    this.#fresh.add(id);
  }

  /** One of them has something new. */
  refresh(id: string): void {
    this.#fresh.add(id);
  }

  /** Frees the memory of what was read of them: it is read again when it is sought. */
  forget(): void {
    delete this.family;
    this.#round = -1;
  }

  /** Takes those that have to be read: all of them where others may have written since the last time. */
  takeFresh(round: number): readonly string[] {
    const fresh = [...(this.#round === round ? this.#fresh : this.ids)];
    this.#fresh.clear();
    this.#round = round;
    return fresh;
  }
}

/** Puts a session into the group of a name, and returns that. */
export function join(
  groups: Map<string, Group>,
  name: string,
  { id, isMain }: { readonly id: string; readonly isMain: boolean },
): Group {
  const group = groups.get(name) ?? new Group();
  groups.set(name, group);
  group.add(id, isMain);
  return group;
}
