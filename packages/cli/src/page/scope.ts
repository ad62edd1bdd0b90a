import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted, isSummarizer } from '@tapedeck/tape/internal';

/** A session of an exported file, and which of its entries are in it. */
export interface Scoped {
  readonly info: SessionInfo;
  /** The positions of its own entries, both included; those that it inherits, too, where no other session of the file has them. */
  readonly from: number;
  readonly to: number;
}

/** Which sessions are exported: one with what it inherits, with all of its ancestors, or with all that is below it, too. */
export type Scope = 'session' | 'lineage' | 'tree';

/** The sessions of an exported file, by their ULIDs. */
export function scopeOf(store: HomeStore, info: SessionInfo, scope: Scope): ReadonlyMap<string, Scoped> {
  const infos = new Map([[info.id, { info, upTo: info.head, floor: info.floor }]]);
  let upTo = info.base;
  for (let at = parentOf(store, info); at !== undefined && !infos.has(at.id); at = parentOf(store, at)) {
    const isPart = scope === 'session';
    infos.set(at.id, { info: at, upTo: isPart ? upTo : at.head, floor: isPart ? info.floor : at.floor });
    upTo = Math.min(upTo, at.base);
  }
  if (scope === 'tree')
    for (const one of store.sessions.list({ under: info.id, all: true, deleted: false }))
      if (!isSummarizer(one)) infos.set(one.id, { info: one, upTo: one.head, floor: one.floor });
  const found = new Map<string, Scoped>();
  for (const [id, { info: one, upTo: to, floor }] of infos) {
    const isAlone = !infos.has(one.parentId ?? '');
    const from = Math.max(isAlone ? one.floor : one.base, floor) + 1;
    // A part of an ancestor can be empty.
    if (from <= to || one.id === info.id || scope !== 'session') found.set(id, { info: one, from, to });
  }
  return found;
}

/** The session that another was forked from, unless it was deleted. */
function parentOf(store: HomeStore, { parentId }: SessionInfo): SessionInfo | undefined {
  const info = parentId === undefined ? undefined : store.sessions.find(parentId);
  return info === undefined || isDeleted(info) ? undefined : info;
}
