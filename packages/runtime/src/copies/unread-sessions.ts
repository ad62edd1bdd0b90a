import type { HomeStore, Seq, SessionInfo } from '@tapedeck/tape';
import type { HomeHead } from '@tapedeck/tape/internal';
import { forgottenEvent } from '../imported/copy-notes.ts';

/**
 * Which sessions of a home have to be looked at: new ones, and those that were written since they were looked at. `begin` and `end`
 * of an import say when others may have written.
 */
export class UnreadSessions {
  readonly #store: HomeStore;
  /** All sessions that were forked from one, by the ULID of that. */
  readonly #forks = new Map<string, Set<string>>();
  /** Up to where the tapes were read. */
  readonly #heads = new Map<string, Seq>();
  /** Those that were written since, or may have been. */
  readonly #wrote = new Set<string>();
  /** The last line of the lineage that was read. */
  #g = 0;
  /** Where the home was when the last import began. */
  #begun: HomeHead | undefined;
  /** The state of the home behind the last import. */
  #changes: number | undefined;
  #round = 0;
  /** For which of these times what others wrote was looked for. */
  #noted = 0;

  constructor(store: HomeStore) {
    this.#store = store;
  }

  /** How often others may have written. */
  get round(): number {
    return this.#round;
  }

  /** @param changing those that are looked at anew where others have written */
  begin(changing: Iterable<string>): void {
    // What was erased during the last import counts as written since; a server tells of commits late.
    const begun = this.#begun ?? this.#store.homeHead();
    const { head, isErased } = this.#store.changesBehind(begun, forgottenEvent);
    this.#begun = head;
    if (!isErased && this.#changes === this.#store.changes()) return;
    this.#round += 1;
    for (const id of changing) this.#wrote.add(id);
  }

  end(): void {
    this.#changes = this.#store.changes();
  }

  /** A session was written. */
  wrote(id: string): void {
    this.#wrote.add(id);
  }

  /** Takes note of what others have written since all was read. */
  noteOthers(): void {
    if (this.#noted === this.#round) return;
    this.#noted = this.#round;
    if (this.#g === 0) return;
    for (const { id, head } of this.#store.sessions.list(everySession))
      if (this.#heads.get(id) !== head) this.#wrote.add(id);
  }

  /** The sessions that were forked from one, the oldest first. */
  forksOf(id: string): Iterable<string> {
    return this.#forks.get(id) ?? [];
  }

  /** Those that have to be looked at now, and the first time `all` of the home. */
  take(): { readonly all: readonly SessionInfo[]; readonly fresh: readonly SessionInfo[] } {
    const isFirst = this.#g === 0;
    const fresh = new Set<string>();
    const types = ['session', 'fork'] as const;
    for (const { g, session, parent } of this.#store.lineage.read({ from: this.#g + 1, types })) {
      this.#g = g;
      if (parent !== null) this.#forks.set(parent, (this.#forks.get(parent) ?? new Set()).add(session));
      fresh.add(session);
    }
    // What was written of others since may change how they begin.
    for (const id of this.#wrote) fresh.add(id);
    this.#wrote.clear();
    const listed = isFirst || fresh.size > listedFrom ? this.#store.sessions.list(everySession) : [];
    const infos = new Map(listed.map((info) => [info.id, info]));
    const taken = {
      all: isFirst ? listed : [],
      fresh: [...fresh].flatMap((id) => infos.get(id) ?? this.#store.sessions.find(id) ?? []),
    };
    for (const { id, head } of [...taken.all, ...taken.fresh]) this.#heads.set(id, head);
    return taken;
  }
}

/** Deleted ones, and those of other homes, too. */
const everySession = { all: true, allRealms: true } as const;

/** More sessions than these are found at once with the list of all. */
const listedFrom = 100;
