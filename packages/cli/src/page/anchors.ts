import type { Entry, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';

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
  store: Pick<SqliteTapeStore, 'entries'>,
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

/** Whether something was done to a session that can be undone, of the last that was. */
export function hasActs({ entries }: Pick<SqliteTapeStore, 'entries'>, id: string): boolean {
  const own = (kind: Entry['kind']) => [...entries.read(id, { own: true, kind, last: 50 })];
  return (
    own('rewind').length > 0 || own('compaction').length > 0 || own('anchor').some((entry) => !isBegin(entry))
  );
}

/** Whether an anchor neither begins a session nor belongs to a merge. */
function isSet(entry: Entry): boolean {
  return !isBegin(entry) && entry.name?.startsWith('merge/') !== true;
}

/** Whether an anchor is one with which a session begins. */
export function isBegin({ name = '' }: Entry): boolean {
  return /^(?:session|fork)\/|^intention$/.test(name);
}
