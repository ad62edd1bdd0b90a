import type { Entry, HomeStore, SessionInfo } from '@tapedeck/tape';
import { titleEvent } from '@tapedeck/tape/internal';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { isReturned } from './copy-notes.ts';
import { isOfImport } from './imported.ts';
import { isOf } from './origins.ts';

/** Whether an import, or the fork that it made, has written an entry. */
export function isByImport(entry: Entry): boolean {
  const { name = '', key = '', mark, meta } = entry;
  if (isOfImport(entry) || mark === 'rewind') return true;
  // The message of a merge says whether an import made it.
  if (name.startsWith('merge/')) return true;
  if (meta.source === 'merge') return meta.context === false;
  const isTitle = name === titleEvent && key.includes('import:title');
  return isTitle || name.startsWith('import/') || name === 'fork/start' || name === 'session/start';
}

/**
 * Whether all that a session has is by imports: no person has written to it, has given it a state, a name, a place or a child, or
 * has brought it back.
 * @param mayHave says of a child that it is no reason to keep the session
 */
export function isUntouched(
  store: HomeStore,
  { id, lifecycle, aliases, link }: SessionInfo,
  mayHave: (child: SessionInfo) => boolean = () => false,
): boolean {
  if (lifecycle !== 'active' || aliases.length > 0 || link?.type === 'moved') return false;
  if (!store.sessions.list({ parent: id, all: true, deleted: false }).every(mayHave)) return false;
  if (isReturned(store, id)) return false;
  return [...store.entries.read(id, { own: true })].every((entry) => isByImport(entry));
}

/** Whether a session is a subagent of a plan, and where an import has put it, which places it anew. */
export function isAgentOf(
  store: HomeStore,
  plan: ImportPlan,
  { id, link }: SessionInfo,
  conversations: readonly ConversationPlan[] = plan.conversations,
): boolean {
  if (link?.type === 'moved') return false;
  return conversations.some((one) => one.kind === 'subagent' && isOf(store, id, { plan, conversation: one }));
}
