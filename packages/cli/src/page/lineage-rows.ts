import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted, isoTime, treeParentOf } from '@tapedeck/tape/internal';
import { toneOf } from '../output/session.ts';
import { type Stated, stated } from '../session/stated.ts';
import type { Drawn } from './closed.ts';
import type { LineageRow } from './data.ts';
import { type Marks, mergeOf, namerOf } from './marks.ts';
import { aboutMax } from './session-row.ts';
import { refOf, withName } from './source.ts';
import { flat } from './texts.ts';

/** Makes rows of an answer of the rows of a drawing: with what their sessions are in now, and where a click leads. */
export async function lineageRows(
  store: HomeStore,
  rows: readonly Drawn[],
  { about }: Marks,
): Promise<readonly LineageRow[]> {
  const ids = new Set(rows.flatMap(({ node, of }) => [node?.id ?? [], of?.id ?? []].flat()));
  const infos: SessionInfo[] = [
    ...store.readSessions({ ids: [...ids], all: true, deleted: false, allRealms: true, titles: true }),
  ];
  const states = new Map((await stated(store, infos)).map((one) => [one.info.id, one]));
  const parents = parentsOf(store, infos);
  const namer = namerOf(store);
  return rows.map((row) => {
    const { node, mark, of, depth, lanes, label, sessions, left = 0 } = row;
    const on = states.get(node?.id ?? of?.id ?? '');
    const named = on === undefined ? undefined : withName(refOf(store, on.info), on.info);
    const at = {
      depth,
      lanes,
      ...named,
      ...(on !== undefined && { id: on.info.id }),
    };
    if (mark !== undefined) {
      const { shape = 'anchor', merge } = about.get(mark) ?? {};
      const said = merge && mergeOf(merge, namer);
      return {
        ...{ ...at, shape, label, sessions, seq: mark.seq },
        ...(said !== undefined && { merges: [said] }),
      };
    }
    if (node === undefined) return { ...at, shape: 'more', label, sessions };
    if (isDeleted(node) || on === undefined)
      return { depth, lanes, shape: 'session', standing: 'ended', label: 'a deleted session', sessions };
    return {
      ...{ ...at, shape: 'session' as const, label },
      ...(row.shape !== 'mark' && row.shape !== 'more' && { standing: row.shape }),
      ...sessionFields(on),
      ...parents(on.info),
      merges: node.merges.flatMap((merge) => mergeOf(merge, namer) ?? []),
      sessions: sessions + left,
      ...(left > 0 && { closed: true }),
    };
  });
}

/** Finds the parents of sessions in the tree, unless they were deleted. */
function parentsOf(
  store: HomeStore,
  infos: readonly SessionInfo[],
): (info: SessionInfo) => Pick<LineageRow, 'parent'> {
  const ids = new Set(infos.flatMap((info) => treeParentOf(info).parentId ?? []));
  const found = store.readSessions({ ids: [...ids], all: true, deleted: false, allRealms: true });
  const names = new Map(Array.from(found, (parent) => [parent.id, refOf(store, parent)]));
  return (info) => {
    const parent = names.get(treeParentOf(info).parentId ?? '');
    return parent === undefined ? {} : { parent };
  };
}

function sessionFields({ info, state }: Stated) {
  const { kind, title = '', base, head, lastMessageAt, createdAt } = info;
  return {
    ...{ kind, state, tone: toneOf(state), about: flat(title, aboutMax) },
    ...{ base, head, at: isoTime(lastMessageAt ?? createdAt) },
  };
}
