import { derivedIn } from '@tapedeck/runtime/import';
import type { HomeStore, Seq, SessionInfo } from '@tapedeck/tape';

/** An edge that an import concluded: no record of the source names it. */
export interface DerivedRow {
  readonly session: string;
  /** The position behind the edge; null for an edge between two sessions, or an entry that is not there. */
  readonly seq: Seq | null;
  /** The session before it: the same one, or its parent in the tree; null for a root. */
  readonly parent: string | null;
  readonly parent_seq: Seq | null;
  readonly type: string;
  readonly evidence?: string;
}

/** The derived edges of a session: the one to its parent in the tree, and those inside of it. */
export function derivedRows(store: HomeStore, { id, session, link }: SessionInfo): readonly DerivedRow[] {
  const above =
    link?.derived === true
      ? [
          {
            ...{ session, seq: null, parent: link.parent ?? null, parent_seq: null, type: link.type },
            ...(link.evidence !== undefined && { evidence: link.evidence }),
          },
        ]
      : [];
  const inside = derivedIn(store, id);
  if (inside.length === 0) return above;
  const places = new Map<string, Seq>();
  for (const { key, seq } of store.entries.read(id))
    if (key !== undefined) places.set(key.replace(/^u:/, '').replace(/~again\d+$/, ''), seq);
  return [
    ...above,
    ...inside.map(({ of, from, why, evidence }) => ({
      ...{ session, seq: places.get(of) ?? null, parent: session, parent_seq: places.get(from) ?? null },
      type: why,
      ...(evidence !== undefined && { evidence }),
    })),
  ];
}

/** An edge as people read it. */
export function derivedText({
  session,
  seq,
  parent,
  parent_seq: from,
  type,
  evidence = '',
}: DerivedRow): string {
  const at = (name: string, position: Seq | null) => (position === null ? name : `${name}@${position}`);
  const before = parent === null ? 'is a root' : `follows ${at(parent, from)}`;
  return `${at(session, seq)} ${before} (${type})${evidence === '' ? '' : `: ${evidence}`}`;
}
