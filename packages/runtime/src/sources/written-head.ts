import type { HomeStore, Seq } from '@tapedeck/tape';

/** The newest entry of a home when a table was written: the tapes had all by then that the table says of files. */
export interface WrittenHead {
  /** The ULID of the session. */
  readonly id: string;
  readonly seq: Seq;
  readonly hash: string;
}

/** The newest entry of a home, whichever session has it; undefined where that is of an import which is under way. */
export function newestIn(store: HomeStore): WrittenHead | undefined {
  const { entry, line } = store.homeHead();
  const [id] = store.writtenBehind({ entry: entry - 1, line }).entries;
  const info = id === undefined ? undefined : store.sessions.find(id);
  return info && { id: info.id, seq: info.head, hash: info.headHash };
}

/** Whether the tapes have what they had when a table was written. One that was purged had it. */
export function isThere(store: HomeStore, { id, seq, hash }: WrittenHead): boolean {
  const info = store.sessions.find(id);
  if (info?.lifecycle === 'purged') return true;
  if (info === undefined || info.head < seq) return false;
  // Most imports come before anything else is written to it: nothing is read then.
  if (info.head === seq) return info.headHash === hash;
  const [entry] = store.entries.read(id, { from: seq, to: seq });
  return entry?.hash === hash;
}
