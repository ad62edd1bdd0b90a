import { type Entry, type HomeStore, note, type SessionInfo } from '@tapedeck/tape';
import { titleEvent } from '@tapedeck/tape/internal';
import type { Cleaning } from '../copies/alike-but-secrets.ts';
import { copiesIn } from '../copies/copies.ts';
import { resemblanceIn } from '../copies/resemblance.ts';
import { isReturned, returnedEvent } from '../imported/copy-notes.ts';
import { importedIn, isOfImport } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { isOf, sourceOf } from '../imported/origins.ts';
import { type ConversationPlan, type ImportPlan, isAside } from '../plan/plan.ts';
import { appendBeside } from './beside.ts';
import { isRefusal } from './refusal.ts';

/**
 * Deletes the sessions of branches that are none any more: the user has returned to the end of one, and gone on from there, or
 * a record that the file lacked has led elsewhere what it shows, so that other sessions of the source show all of it. One that
 * has anything else stays: an entry of a run or of a person, a child that is no subagent of the plan, another name.
 * @param sessions the sessions of the plan
 * @param clean what this import replaces: an earlier one may have kept it, or the other way round
 */
export function deleteReturned(
  store: HomeStore,
  plan: ImportPlan,
  sessions: readonly string[],
  clean: Cleaning,
): void {
  const { format, session, conversations } = plan;
  const [copies, resemblance] = [copiesIn(store), resemblanceIn(store)];
  const keys = new Set(conversations.map(({ key }) => key));
  const ids = new Set(sessions.flatMap((name) => store.sessions.find(name)?.id ?? []));
  const gone = copies.tools
    .branchesOf(sourceOf(format, session))
    .filter(([id, conversation]) => !ids.has(id) && !keys.has(conversation.replace(/#\d+$/, '')));
  const left = new Set(gone.map(([id]) => id));
  const visit = (id: string): void => {
    if (!left.delete(id)) return;
    // One with a branch of its own would stay.
    for (const child of store.sessions.list({ parent: id, all: true, deleted: false })) visit(child.id);
    const info = store.sessions.find(id);
    if (info === undefined || !isUntouched(store, info, (child) => isAgentOf(store, plan, child))) return;
    const other = resemblance.showing(id, [...ids], clean);
    if (other === undefined) return;
    const own = store.entries.read(id, { own: true });
    if (haveAsides(store, ids, own)) deleteFor(store, id, other);
  };
  for (const id of [...left].reverse()) visit(id);
}

/**
 * Whether all that a session has is by imports: no one has written to it, has given it a state, a name, a place or a child, or has
 * brought it back.
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

/** Deletes a session, and says on it for which other one. False for one that is in use: it stays until a later import. */
export function deleteFor(store: HomeStore, id: string, other: string): boolean {
  const said = { ...note(returnedEvent, { session: other }), key: 'import:returned' };
  if (appendBeside(store, id, [said]) !== undefined) return false;
  copiesIn(store).wrote(id);
  try {
    store.sessions.update(id, { lifecycle: 'destroyed' });
    return true;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return false;
  }
}

/** Whether an import, or the fork that it made, has written an entry. */
export function isByImport(entry: Entry): boolean {
  const { name = '', key = '', mark, meta } = entry;
  if (isOfImport(entry) || mark === 'rewind') return true;
  // The message of a merge says whether an import made it.
  if (name.startsWith('merge/')) return true;
  if (meta.source === 'merge') return meta.context === false;
  const isTitle = name === titleEvent && key.includes('import:title');
  return isTitle || name.startsWith('import/') || name === 'fork/start';
}

/** Whether some sessions have those records of another one that are no part of a conversation. */
function haveAsides(store: HomeStore, ids: Iterable<string>, entries: Iterable<Entry>): boolean {
  const asides = [...entries].filter(
    (entry) => isOfImport(entry) && isAside(entry) && entry.kind !== 'x-derived',
  );
  const left = new Set(asides.map(keyOf));
  for (const id of ids) {
    if (left.size === 0) break;
    for (const key of importedIn(store, id).known) left.delete(key);
  }
  return left.size === 0;
}
