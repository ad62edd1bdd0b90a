import type { Conversation, FileImport, ImportingOptions, SourceTable } from '@tapedeck/runtime/import';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { type HomeHead, isDeleted, treeParentOf } from '@tapedeck/tape/internal';

/** What the import of a transcript that the user named did. */
interface NamedImport {
  readonly done: readonly FileImport[];
  /** The names of the sessions that have it, where nothing had to be read. */
  readonly here: readonly string[];
}

/**
 * Imports what is new in a transcript that the user named. Where the table says that nothing is, and not all of its sessions are
 * here, reads it all the same: one that was deleted or purged has to be named. So it does where the table does not say which
 * sessions have the file: those of another base may, and those of a file that is no main one are not known.
 */
export async function importNamed(
  store: HomeStore,
  conversation: Conversation,
  how: ImportingOptions,
): Promise<NamedImport> {
  const { importConversation } = await import('@tapedeck/runtime/import');
  const { tool, session, files } = conversation;
  const isSettled = files[0]?.role === 'main' && store.otherRealms().length === 0;
  const again = how.again === true || !isSettled;
  const done = await importConversation(store, conversation, { ...how, again });
  const isLacking = done.some(({ lacking }) => lacking !== undefined);
  if (!isLacking && done.some(({ brought, error }) => brought !== undefined || error !== undefined))
    return { done, here: [] };
  const sessions = isLacking ? [] : await sessionsOf(store, { tool: tool.name, session }, how.table);
  if (sessions.length > 0 && !sessions.some(isDeleted) && !isPurgedBeside(store, sessions)) {
    const names = sessions.map((one) => one.session);
    // A session that was given another name has what was read then.
    return {
      done,
      here: names.includes(session) ? [session, ...names.filter((one) => one !== session)] : names,
    };
  }
  return { done: await importConversation(store, conversation, { ...how, again: true }), here: [] };
}

/** The sessions of a home by their sources, and how far the home had come. */
interface Read {
  readonly head: HomeHead;
  readonly bySource: ReadonlyMap<string, readonly string[]>;
}

/**
 * By the table with which many files are imported. Each opens the home for itself: where none of them has changed, the sessions are
 * read once for all.
 */
const readFor = new WeakMap<SourceTable, Read>();

/** The sessions that came from a session of a tool, without those that were purged. */
async function sessionsOf(
  store: HomeStore,
  source: { readonly tool: string; readonly session: string },
  table: SourceTable | undefined,
): Promise<readonly SessionInfo[]> {
  const { sessionsBySource, sourceOf } = await import('@tapedeck/runtime/internal');
  const head = store.homeHead();
  const before = table && readFor.get(table);
  const isAsItWas = before?.head.entry === head.entry && before.head.line === head.line;
  const bySource = isAsItWas ? before.bySource : sessionsBySource(store);
  if (table !== undefined && !isAsItWas) readFor.set(table, { head, bySource });
  return (bySource.get(sourceOf(source.tool, source.session)) ?? []).flatMap(
    (id) => store.sessions.find(id) ?? [],
  );
}

/** Whether a session was purged that is right above or below one of some: it may be of their file, and says no more of which it was. */
function isPurgedBeside(store: HomeStore, sessions: readonly SessionInfo[]): boolean {
  const ids = new Set(sessions.map(({ id }) => id));
  const above = new Set(sessions.map((one) => treeParentOf(one).parentId));
  return store.sessions
    .list({ deleted: true })
    .some(
      (one) => one.lifecycle === 'purged' && (above.has(one.id) || ids.has(treeParentOf(one).parentId ?? '')),
    );
}
