import type { HomeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** The kind of the entries that record the derived edges inside of a session. No view shows them. */
export const derivedKind = 'x-derived';

/** An edge inside of a session that no record names. */
export interface RecordedEdge {
  readonly of: string;
  readonly from: string;
  readonly why: string;
  readonly evidence?: string;
}

/** The derived edges inside of a session, as its last import found them. */
export function derivedIn(store: Pick<HomeStore, 'entries'>, session: string): readonly RecordedEdge[] {
  const edges = new Map<string, RecordedEdge>();
  for (const { payload } of store.entries.read(session, { own: true, kind: derivedKind })) {
    if (!isObject(payload) || typeof payload.of !== 'string') continue;
    const { of, from, why, evidence } = payload;
    edges.delete(of);
    if (payload.gone !== true)
      edges.set(of, {
        ...{ of, from: String(from), why: String(why) },
        ...(typeof evidence === 'string' && { evidence }),
      });
  }
  return [...edges.values()];
}
