import { type HomeStore, note } from '@tapedeck/tape';
import { isDeleted, sourceGoneEvent } from '@tapedeck/tape/internal';
import { appendBeside } from '../edges/beside.ts';
import type { Reconciled } from '../import/reconciled.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { Origins } from '../imported/origins.ts';
import type { Source, SourceTable } from '../sources/index.ts';

/**
 * Marks the sessions of sources whose files are gone, unless they were seen elsewhere: the tapes are then all that is left of
 * them. Records the sources as gone once the tapes say so. A conversation of which a process has a session is left to the
 * next import. Returns the names of the sessions that it marked.
 */
export function markSessionsGone(
  store: HomeStore,
  gone: readonly Source[],
  table: Pick<SourceTable, 'of' | 'put' | 'sessionsFile'>,
  at: number,
): readonly string[] {
  knownSessionsIn(store).keepIn(table.sessionsFile);
  const origins = new Origins(store);
  const paths = new Set(gone.map(({ path }) => path));
  const isThere = ({ path, goneAt }: Source) => goneAt === undefined && !paths.has(path);
  const marked: string[] = [];
  const settled: Source[] = [];
  for (const source of gone) {
    const isOnlyPlace = source.role === 'main' && !table.of(source).some(isThere);
    const sessions = isOnlyPlace && source.forgottenAt === undefined ? origins.allOf(source) : [];
    const fresh = sessions.filter((one) => one.sourceGone === undefined && !isDeleted(one));
    const refusals = fresh.map(({ id }) => say(store, id, { file: source.path }));
    marked.push(...fresh.filter((_, i) => refusals[i] === undefined).map(({ session }) => session));
    if (!refusals.includes('TAPE_BUSY')) settled.push({ ...source, goneAt: at });
  }
  table.put(settled);
  knownSessionsIn(store).save();
  return marked;
}

/** Takes the mark from sessions that an import has found in a file again. */
export function markSessionsBack(store: HomeStore, found: readonly Reconciled[]): void {
  for (const { session, created, refused } of found) {
    if (created || refused !== undefined) continue;
    const { id, sourceGone: file } = store.sessions.find(session) ?? {};
    if (id !== undefined && file !== undefined) say(store, id, { file, back: true });
  }
}

/** Says on a tape whether its source is there. Returns the code with which the tape refuses it. */
function say(
  store: HomeStore,
  id: string,
  payload: { readonly file: string; readonly back?: true },
): string | undefined {
  const before = [...store.entries.read(id, { own: true, name: sourceGoneEvent })].length;
  const key = `import:gone:${before + 1}`;
  return appendBeside(store, id, [{ ...note(sourceGoneEvent, payload), key }])?.code;
}
