import type { SessionNode } from '@tapedeck/graph';
import type { HomeStore } from '@tapedeck/tape';
import { isDeleted, isSummarizer } from '@tapedeck/tape/internal';

/**
 * Deleted sessions are in no list: their ULIDs alone find them. A graph has one only where it is above a session that is
 * not deleted, or where the user has named it.
 */

/** The ids of the deleted sessions that a graph need not have, with the sessions that wrote their summaries. */
export function goneAmong(nodes: readonly SessionNode[], named?: string): ReadonlySet<string> {
  if (!nodes.some(isDeleted)) return new Set();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const held = new Set<string>();
  for (const node of nodes) {
    if (node.id !== named && (isDeleted(node) || isWriter(node))) continue;
    for (let at: SessionNode | undefined = node; at !== undefined && !held.has(at.id); ) {
      held.add(at.id);
      at = byId.get(at.parent ?? '');
    }
  }
  const gone = new Set(nodes.filter((node) => isDeleted(node) && !held.has(node.id)).map(({ id }) => id));
  for (const node of nodes) if (isWriter(node) && gone.has(node.parent ?? '')) gone.add(node.id);
  return gone;
}

function isWriter({ parent, kind }: SessionNode): boolean {
  return parent !== undefined && isSummarizer({ parentId: parent, kind });
}

/** The same of all sessions of a store: deleted ones are few. */
export function goneIn(store: HomeStore): ReadonlySet<string> {
  const gone = new Set<string>();
  for (const { id } of store.readSessions({ deleted: true, allRealms: true })) {
    const below = store.sessions.list({ under: id, all: true, deleted: false });
    if (!below.every(isSummarizer)) continue;
    for (const one of [id, ...below.map((info) => info.id)]) gone.add(one);
  }
  return gone;
}
