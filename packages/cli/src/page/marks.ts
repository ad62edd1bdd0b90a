import type { MergeRecord, PictureMark, SessionNode } from '@tapedeck/graph';
import type { HomeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import { landmarksOf } from './anchors.ts';
import type { LineageMerge, LineageRow } from './data.ts';
import { refOf, shownAs } from './source.ts';

/** What stands on the lanes of sessions, and what each is. */
export interface Marks {
  readonly list: readonly PictureMark[];
  readonly about: ReadonlyMap<PictureMark, About>;
}

interface About {
  readonly shape: Exclude<LineageRow['shape'], 'session' | 'more'>;
  readonly merge?: MergeRecord;
}

/** Landmarks of a session. */
const landmarksMax = 50;

/** The landmarks of sessions, and the merges into them. */
export function marksOf(
  store: HomeStore,
  nodes: readonly SessionNode[],
  {
    of,
    most = landmarksMax,
    merges = true,
  }: {
    /** The sessions whose marks are read; all of them without. */
    readonly of: ReadonlySet<string> | undefined;
    readonly most?: number;
    readonly merges?: boolean;
  },
): Marks {
  const about = new Map<PictureMark, About>();
  const living = nodes.filter((node) => !isDeleted(node));
  const wanted = new Set(living.map(({ id }) => id).filter((id) => of === undefined || of.has(id)));
  for (const id of wanted)
    for (const { seq, at, name, shape } of landmarksOf(store, { id }, { most, own: true }))
      about.set(
        { session: id, seq, at, label: `${name} @${seq}` },
        { shape: shape === 'anchor' ? 'anchor' : 'handoff' },
      );
  for (const { session, merges: own } of merges ? living : [])
    for (const merge of own) {
      const { into = '', seq, at } = merge;
      if (seq === undefined || !wanted.has(into)) continue;
      about.set(
        { session: into, seq, at: Date.parse(at), label: labelOf(session, merge) },
        { shape: 'merge', merge },
      );
    }
  return { list: [...about.keys()], about };
}

function labelOf(child: string, { type, range, seq, undone }: MergeRecord): string {
  const what = `${type === 'merge' ? '' : 'discarded '}${child}${range === undefined ? '' : ` ${range.join('-')}`}`;
  return `${what} @${seq}${undone === true ? ' (undone)' : ''}`;
}

/** Returns a function that gives the name of the session of a ULID; undefined for one that was deleted. */
export function namerOf(store: HomeStore): (id: string) => string | undefined {
  const known = new Map<string, string | undefined>();
  return (id) => {
    if (!known.has(id)) {
      const info = shownAs(store, id);
      known.set(id, info && refOf(store, info));
    }
    return known.get(id);
  };
}

/** A merge by the names that its sessions have; undefined where one of them was deleted. */
export function mergeOf(
  { type, child, into = '', seq, range, undone }: MergeRecord,
  namer: (id: string) => string | undefined,
): LineageMerge | undefined {
  const [from, to] = [namer(child), namer(into)];
  if (from === undefined || to === undefined || seq === undefined) return undefined;
  return {
    ...{ child: from, into: to, seq, state: type === 'merge' ? 'merged' : 'discarded' },
    ...(range !== undefined && { range }),
    ...(undone === true && { undone }),
  };
}
