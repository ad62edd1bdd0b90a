import type { PictureMark, SessionNode } from '@tapedeck/graph';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import { landmarksOf } from './anchors.ts';
import type { LineageMerge, LineageRow } from './data.ts';
import { refOf, shownAs } from './source.ts';

/** What stands on the lanes of sessions, and what a row of each says beside its label. */
export interface Marks {
  readonly list: readonly PictureMark[];
  readonly about: ReadonlyMap<PictureMark, Pick<LineageRow, 'shape' | 'merges'>>;
}

/** Landmarks of a session. */
const landmarksMax = 50;

/** The landmarks of sessions, and the merges into them. */
export function marksOf(
  store: SqliteTapeStore,
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
  const about = new Map<PictureMark, Pick<LineageRow, 'shape' | 'merges'>>();
  const namer = namerOf(store);
  const wanted = nodes.filter((node) => !isDeleted(node) && (of === undefined || of.has(node.id)));
  for (const { id } of wanted)
    for (const { seq, at, name, shape } of landmarksOf(store, { id }, { most, own: true }))
      about.set(
        { session: id, seq, at, label: `${name} @${seq}` },
        { shape: shape === 'anchor' ? 'anchor' : 'handoff' },
      );
  const into = new Set(merges ? wanted.map(({ id }) => id) : []);
  for (const merge of nodes.flatMap((node) => node.merges)) {
    if (!into.has(merge.into ?? '')) continue;
    const said = mergeOf(merge, namer);
    if (said === undefined) continue;
    const { seq } = said;
    about.set(
      { session: merge.into ?? '', seq, at: Date.parse(merge.at), label: labelOf(said) },
      { shape: 'merge', merges: [said] },
    );
  }
  return { list: [...about.keys()], about };
}

function labelOf({ child, range, state, seq, undone }: LineageMerge): string {
  const what = `${state === 'merged' ? '' : 'discarded '}${child}${range === undefined ? '' : ` ${range.join('-')}`}`;
  return `${what} @${seq}${undone === true ? ' (undone)' : ''}`;
}

/** Returns a function that gives the name of the session of a ULID; undefined for one that was deleted. */
export function namerOf(store: SqliteTapeStore): (id: string) => string | undefined {
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
  { type, child, into = '', seq, range, undone }: SessionNode['merges'][number],
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
