import type { Entry, HomeStore, Meta, Seq } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { withAncestors } from './ancestors.ts';

/**
 * Entries of a session, with what redactions have left of those that were erased: when their source said them, and in answer to
 * which request.
 */
export function* recalled(store: HomeStore, session: string, entries: Iterable<Entry>): Generator<Entry> {
  let left: ReadonlyMap<Seq, Meta> | undefined;
  for (const entry of entries) {
    if (entry.payload !== null || entry.absent === true) {
      yield entry;
      continue;
    }
    left ??= leftIn(store, session);
    yield { ...entry, meta: left.get(entry.seq) ?? {} };
  }
}

/** What is left of the erased entries of a session, by their positions: each redaction is on the tape that has the entry. */
function leftIn(store: HomeStore, session: string): ReadonlyMap<Seq, Meta> {
  const left = new Map<Seq, Meta>();
  let reach = Number.POSITIVE_INFINITY;
  for (const id of withAncestors(store, store.sessions.find(session)?.id)) {
    const base = store.sessions.find(id)?.base ?? 0;
    for (const { ref = 0, payload } of store.entries.read(id, { own: true, kind: 'redaction' }))
      if (ref > base && ref <= reach && isObject(payload) && isObject(payload.was))
        left.set(ref, payload.was);
    reach = Math.min(reach, base);
  }
  return left;
}
