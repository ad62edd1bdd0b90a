import type { HomeStore, Seq } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import { isOf } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';

/**
 * The session that is the parent of a conversation. A parent that went on here, or was rewritten, has several: what is below one
 * of them stays there, unless its result came to the one that this import wrote, and not to that.
 * @param session that of the conversation
 * @param written the session of its parent to which this import wrote
 */
export function parentSession(
  store: HomeStore,
  plan: ImportPlan,
  conversation: ConversationPlan,
  { session, written }: { readonly session: string; readonly written: string },
): string {
  const info = store.sessions.find(session);
  const { parentId = '' } = info === undefined ? {} : treeParentOf(info);
  const now = store.sessions.find(parentId);
  if (now === undefined || isDeleted(now) || now.session === written) return written;
  const over = plan.conversations.find(({ key }) => key === conversation.parent?.key);
  if (over === undefined || !isOf(store, now.id, { plan, conversation: over })) return written;
  const isThere = receivedIn(store, now.id, conversation) !== undefined;
  return isThere || receivedIn(store, written, conversation) === undefined ? now.session : written;
}

/** The position at which a session has the result of a subagent: that of the last writing of its draft. */
export function receivedIn(
  store: HomeStore,
  session: string,
  { received }: Pick<ConversationPlan, 'received'>,
): Seq | undefined {
  let place: Seq | undefined;
  for (let again = 0; received !== undefined; again += 1) {
    const key = `u:${received}${again === 0 ? '' : `~again${again}`}`;
    const last = [...store.entries.read(session, { key })].at(-1);
    if (last === undefined) break;
    place = last.seq;
  }
  return place;
}
