import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import { withAncestors } from '../imported/ancestors.ts';
import { isAgentOf, isUntouched } from '../imported/by-import.ts';
import { isReturned } from '../imported/copy-notes.ts';
import { type Origins, originOf } from '../imported/origins.ts';
import { OwnSessions } from '../imported/own-sessions.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { sharedWith } from './fork-of.ts';
import { link } from './link.ts';
import { isMerged } from './merge-ended.ts';
import { parentSession } from './parent-session.ts';
import { deleteFor } from './returned.ts';

/**
 * Deletes the session of a subagent whose result came to another session than those from which it was forked, such as the branch
 * that its call is in since a prompt was typed anew: a session is merged only into what it was forked from. So it is forked anew,
 * from the session that shows its result. So is one that begins with what its parent knew, and came before that was here. One that
 * is merged stays, unless an import took that back, and so does one that has anything else than imports wrote.
 * @param written the session of its parent to which this import wrote
 */
export function deleteMisplaced(
  store: HomeStore,
  plan: ImportPlan,
  conversation: ConversationPlan,
  { written, origins }: { readonly written: string; readonly origins: Origins },
): void {
  const { kind, ended, parent } = conversation;
  if (kind !== 'subagent' || (ended === undefined && parent?.inherits !== true)) return;
  const [session, ...others] = new OwnSessions(store, { plan, conversation, as: undefined, origins }).all();
  const info = session === undefined || others.length > 0 ? undefined : store.sessions.find(session);
  if (session === undefined || info === undefined || isMerged(store, info)) return;
  const above = store.sessions.find(parentSession(store, plan, conversation, { session, written }));
  if (above === undefined) return;
  const lacksBeginning =
    parent?.inherits === true &&
    info.base === info.floor &&
    sharedWith(store, { conversation, session: above.session, earlier: [] }).length > 0;
  if (!lacksBeginning && (ended === undefined || isBelow(store, info, above))) return;
  // What it called is forked anew behind it.
  const called = plan.conversations.filter((one) => one.parent?.key === conversation.key);
  if (!isUntouched(store, info, (child) => isAgentOf(store, plan, child, called))) return;
  // What it counted counts below that, too.
  const { call } = parent ?? {};
  link(store, session, above.session, { type: 'subagent', ...(call !== undefined && { call }) });
  const origin = originOf(store, info.id);
  if (deleteFor(store, info.id, above.id) && origin !== undefined) origins.noteReturned(origin, info.id);
}

/** Whether a session was forked from another one, or from a fork of that which is still there. */
function isBelow(store: HomeStore, { parentId }: SessionInfo, { id }: SessionInfo): boolean {
  const parent = store.sessions.find(parentId ?? '');
  const isEnded = parent !== undefined && isDeleted(parent) && isReturned(store, parent.id);
  return !isEnded && withAncestors(store, parentId).includes(id);
}
