import type { SessionInfo as Info } from '@tapedeck/tape';
import { isDeleted, originOf, treeParentOf } from '@tapedeck/tape/internal';
import { type Stated, stated } from '../session/stated.ts';
import { landmarksOf } from './anchors.ts';
import { canUndoNewest } from './can-undo.ts';
import type { Command, SessionInfo } from './data.ts';
import { lastMerge } from './merges.ts';
import { sessionRow } from './session-row.ts';
import { lineOf, needShown, type PageSource, refOf, shownAs, withName } from './source.ts';
import { waitingCalls } from './waiting.ts';

/** Landmarks of an answer. */
const landmarksMax = 200;

/** A session with what its page shows around its timeline. */
export async function session(
  source: PageSource,
  { session: ref }: { readonly session: string },
): Promise<SessionInfo> {
  const { store } = source;
  const { id } = needShown(store, ref);
  const [info = needShown(store, id)] = store.readSessions({
    ids: [id],
    all: true,
    counts: true,
    titles: true,
  });
  const [{ state } = { state: '' }] = await stated(store, [info]);
  return await sessionInfo(source, { info, state });
}

/** The same of a session that was read with its counts; with `own`, it has the landmarks of its own tape alone. */
export async function sessionInfo(
  source: PageSource,
  { info, state }: Pick<Stated, 'info' | 'state'>,
  { own = false }: { readonly own?: boolean } = {},
): Promise<SessionInfo> {
  const { store } = source;
  const { parentId, fromAnchor } = originOf(info);
  const origin = parentId === undefined ? undefined : store.sessions.find(parentId);
  const merged = lastMerge(store, info);
  // One that was deleted cannot be opened.
  const parent = shownAs(store, treeParentOf(info).parentId ?? '');
  const { parent: _, ...row } = sessionRow({ info, state });
  return {
    ...row,
    ...withName(refOf(store, info), info),
    ...(parent !== undefined && { parent: refOf(store, parent) }),
    floor: info.floor,
    aliases: info.aliases,
    ...(origin !== undefined && !isDeleted(origin) && { origin: refOf(store, origin) }),
    ...(fromAnchor !== undefined && { fromAnchor }),
    ...(merged !== undefined && { merged }),
    commands: await commandsOf(source, info, state),
    waiting: await waitingCalls(source, info),
    anchors: landmarksOf(store, info, { most: landmarksMax, own }).map(({ seq, name, shape }) => ({
      seq,
      name,
      shape,
    })),
  };
}

/** What a person can do with a session as it is. */
async function commandsOf(source: PageSource, info: Info, state: string): Promise<readonly Command[]> {
  const name = refOf(source.store, info);
  const command = (what: string, verb: string, ...options: readonly string[]): Command => ({
    what,
    line: lineOf(source, verb, [name], options),
  });
  if (info.lifecycle === 'archived') return [command('Bring it back', 'archive', '--undo')];
  const { isSettled } = await import('@tapedeck/runtime/internal');
  const isChild = info.parentId !== undefined && !/^(?:merged|discarded)\b/.test(state) && isSettled(info);
  return [
    ...(state === 'interrupted' ? [command('Go on where it was interrupted', 'recover')] : []),
    ...(state === 'busy' ? [command('Follow it', 'log', '--follow'), command('Stop it', 'abort')] : []),
    command('Continue it', 'chat'),
    command('Fork it', 'fork'),
    ...(isChild ? [command('Merge it into its parent', 'merge'), command('Discard it', 'discard')] : []),
    command('Print it', 'log', '--full'),
    ...((await canUndoNewest(source.store, info)) ? [command('Undo the last act', 'undo')] : []),
    command('Archive it', 'archive'),
  ];
}
