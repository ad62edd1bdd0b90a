import { type Entry, type HomeStore, note } from '@tapedeck/tape';
import type { Cleaning } from '../copies/alike-but-secrets.ts';
import { copiesIn } from '../copies/copies.ts';
import { resemblanceIn } from '../copies/resemblance.ts';
import { isAgentOf, isUntouched } from '../imported/by-import.ts';
import { returnedEvent } from '../imported/copy-notes.ts';
import { importedIn, isOfImport } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { sourceOf } from '../imported/origins.ts';
import { type ImportPlan, isAside } from '../plan/plan.ts';
import { appendBeside } from './beside.ts';
import { isOfOtherWay } from './other-way.ts';
import { isRefusal } from './refusal.ts';

/**
 * Deletes the sessions of branches that are none any more: the user has returned to the end of one, and gone on from there, or
 * a record that the file lacked has led elsewhere what it shows, so that other sessions of the source show all of it. One that
 * has anything else stays: an entry of a run or of a person, a child that is no subagent of the plan, another name. So does one
 * that another copy of the file has still.
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
    if (isOfOtherWay(store, plan, info)) return;
    const own = store.entries.read(id, { own: true });
    if (haveAsides(store, ids, own)) deleteFor(store, id, other);
  };
  for (const id of [...left].reverse()) visit(id);
}

/** Deletes a session, and says on it for which other one. False for one that is in use: it stays until a later import. */
export function deleteFor(store: HomeStore, id: string, other: string): boolean {
  try {
    giveWay(store, id, other);
    return true;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return false;
  }
}

/**
 * Deletes a session, and says on it for which other one.
 * @throws TAPE_ARCHIVED, TAPE_BUSY for one that takes nothing
 */
export function giveWay(store: HomeStore, id: string, other: string): void {
  const said = { ...note(returnedEvent, { session: other }), key: 'import:returned' };
  const refused = appendBeside(store, id, [said]);
  if (refused !== undefined) throw refused;
  copiesIn(store).wrote(id);
  store.sessions.update(id, { lifecycle: 'destroyed' });
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
