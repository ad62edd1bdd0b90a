import type { HomeStore, Seq } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import { copiesIn } from '../copies/copies.ts';
import { importedIn } from '../imported/imported.ts';
import { isOf, sourceOf } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { callAt, sharedWith } from './fork-of.ts';
import { isOfOtherWay } from './other-way.ts';

/**
 * The session that is the parent of a conversation. A parent that went on here, or was rewritten, has several: what is below one
 * of them stays there, unless its result came to the one that this import wrote, and not to that. So it is where another copy of
 * the file, which went on elsewhere, says that another conversation is the parent.
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
  if (now === undefined || isDeleted(now) || now.session === written)
    return callerOf(store, plan, conversation, written);
  const over = plan.conversations.find(({ key }) => key === conversation.parent?.key);
  const isOwn = over !== undefined && isOf(store, now.id, { plan, conversation: over });
  if (!isOwn && !leadsTo(store, conversation, { now: now.session, written })) return written;
  const isThere = receivedIn(store, now.id, conversation) !== undefined;
  if (!isThere && receivedIn(store, written, conversation) !== undefined) return written;
  return isOwn || isOfOtherWay(store, plan, now) ? now.session : written;
}

/**
 * The session that shows the call of a subagent: that of its parent or, where another copy of the file has left the call there, a
 * branch of its source.
 * @param written the session of its parent to which this import wrote
 */
export function callerOf(
  store: HomeStore,
  { format, session }: ImportPlan,
  { kind, parent }: ConversationPlan,
  written: string,
): string {
  const call = kind === 'subagent' ? parent?.call : undefined;
  // A session that a person deleted stays what its subagents belong to.
  if (call === undefined || store.sessions.find(written) === undefined) return written;
  if (showsCall(store, written, call)) return written;
  for (const [id] of copiesIn(store).tools.branchesOf(sourceOf(format, session))) {
    const branch = store.sessions.find(id);
    if (branch !== undefined && !isDeleted(branch) && showsCall(store, id, call)) return branch.session;
  }
  return written;
}

/** Whether a session shows a call. */
export function showsCall(store: HomeStore, session: string, call: string): boolean {
  return callAt(importedIn(store, session).shown, call) !== undefined;
}

/** Whether a session leads to a conversation as far as another one does: a branch leaves it as late, a subagent is called there. */
function leadsTo(
  store: HomeStore,
  conversation: ConversationPlan,
  { now, written }: { readonly now: string; readonly written: string },
): boolean {
  const { kind, parent } = conversation;
  if (kind === 'branch') {
    const common = (session: string) => sharedWith(store, { conversation, session, earlier: [] }).length;
    return common(now) >= common(written);
  }
  const { call } = parent ?? {};
  return kind === 'subagent' && call !== undefined && showsCall(store, now, call);
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
