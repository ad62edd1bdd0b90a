import type { Entry, HomeStore, SessionInfo } from '@tapedeck/tape';

/** Something that a person finds a place by: an anchor, a handoff or a compaction. */
export interface Landmark {
  readonly seq: number;
  readonly at: number;
  readonly name: string;
  readonly shape: 'anchor' | 'handoff' | 'compaction';
}

/** How many anchors are looked at for those that a person set: merges and forks are anchors, too. */
const lookedMax = 1_000;

/** The last landmarks of a session, oldest first; with `own`, those on its own tape. */
export function landmarksOf(
  store: Pick<HomeStore, 'entries'>,
  { id }: Pick<SessionInfo, 'id'>,
  { most, own = false }: { readonly most: number; readonly own?: boolean },
): readonly Landmark[] {
  const only = own ? { own } : {};
  const anchors = [
    ...store.entries.read(id, { ...only, kind: 'anchor', last: Math.min(lookedMax, 5 * most) }),
  ];
  const compactions = [...store.entries.read(id, { ...only, kind: 'compaction', last: most })];
  const found = [...anchors.filter(isSet), ...compactions].sort((a, b) => a.seq - b.seq);
  return found.slice(-most).map(({ seq, at, sourceAt = at, name = '', kind, mark }) => ({
    seq,
    at: sourceAt,
    name: kind === 'compaction' ? 'compaction' : name,
    shape: kind === 'compaction' ? kind : mark === 'boundary' ? 'handoff' : 'anchor',
  }));
}

/** Whether an anchor neither begins a session nor belongs to a merge. */
function isSet({ name = '' }: Entry): boolean {
  return !/^(?:session|fork|merge)\/|^intention$/.test(name);
}
