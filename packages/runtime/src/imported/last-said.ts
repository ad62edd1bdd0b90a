import type { HomeStore, Seq, SessionInfo } from '@tapedeck/tape';
import { text } from '../plan/text.ts';
import { ofStore } from './of-store.ts';

/** The times of the last messages of a session, the last one first, as far as they were read. */
interface Tail {
  readonly headHash: string;
  readonly times: number[];
  /** The last position that was not read; 0 where nothing is left. */
  to: Seq;
}

/** How many messages are read at once. */
const pageSize = 100;

/** When something was said last in sessions before a time. Of each no more is read than what was said since. */
class LastSaid {
  readonly #store: HomeStore;
  readonly #tails = new Map<string, Tail>();

  constructor(store: HomeStore) {
    this.#store = store;
  }

  /** In milliseconds since 1970; less than any time where nothing was said before. */
  before(info: SessionInfo, time: number): number {
    const { lastMessageAt: last } = info;
    // Nearly always it was left before that.
    if (last !== undefined && last < time) return last;
    const tail = this.#tailOf(info);
    for (let i = 0; ; i += 1) {
      while (i >= tail.times.length && tail.to > 0) this.#readOn(info.id, tail);
      const at = tail.times[i];
      if (at === undefined) return Number.NEGATIVE_INFINITY;
      if (at < time) return at;
    }
  }

  #tailOf({ id, head, headHash }: SessionInfo): Tail {
    const known = this.#tails.get(id);
    if (known?.headHash === headHash) return known;
    const tail = { headHash, times: [], to: head };
    this.#tails.set(id, tail);
    return tail;
  }

  #readOn(id: string, tail: Tail): void {
    const page = [...this.#store.entries.read(id, { kind: 'message', to: tail.to, last: pageSize })];
    for (const { meta } of page.toReversed()) {
      // The report of a subagent stands behind what was said later.
      if (meta.source === 'merge') continue;
      const at = Date.parse(text(meta.timestamp) ?? '');
      if (Number.isFinite(at)) tail.times.push(at);
    }
    tail.to = page.length < pageSize ? 0 : (page[0]?.seq ?? 1) - 1;
  }
}

/** What is known of when something was said last in the sessions of a home. */
export const lastSaidIn: (store: HomeStore) => LastSaid = ofStore((store) => new LastSaid(store));
