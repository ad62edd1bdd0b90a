import type { HomeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import type { FoundFile } from '../discovery/index.ts';
import { nothing, type Reconciled } from '../import/reconciled.ts';
import { deletedHere } from '../imported/own-sessions.ts';
import type { SourcePlan } from '../plan/format.ts';
import { isUnchanged, type SessionOfFile, type Source, type SourceTable } from '../sources/index.ts';
import type { FileImport } from './file-import.ts';

/**
 * What a file is that was read before and has not changed, by its place, size and time; undefined for any other one, and where a
 * deleted session that took nothing of it is back.
 */
export function asItWas(
  store: HomeStore,
  file: FoundFile,
  table: SourceTable | undefined,
): FileImport | undefined {
  const source = table?.at(file.path);
  if (source === undefined || !isRecorded(file, source)) return undefined;
  const seen = 'unchanged';
  if (source.lacks === undefined) return { file, seen };
  const lacking = lackingStill(store, source.lacks);
  const error = lacking?.find(({ refused }) => refused !== undefined)?.refused;
  return lacking && error && { file, seen, lacking, error };
}

/** Whether the table has of a file what it is now. */
export function isRecorded({ facts }: FoundFile, source: Source): boolean {
  return source.goneAt === undefined && isUnchanged(source, facts);
}

/** What the table keeps of the sessions of a file, by what was written of them; undefined where none was deleted. */
export function lackingOf(
  plan: SourcePlan,
  done: readonly Reconciled[],
): (file: FoundFile) => readonly SessionOfFile[] | undefined {
  const fileOf = new Map(plan.conversations.map(({ key, file }) => [key, file]));
  return ({ path }) => {
    const key = plan.files.get(path);
    const own = done.filter(({ conversation }) => key !== undefined && fileOf.get(conversation) === key);
    if (own.every(({ refused }) => refused === undefined)) return undefined;
    const sessions = own.map(({ conversation, session, refused }) => {
      const { session: name, id } = refused?.data ?? {};
      const deleted = { session: String(name), id: String(id) };
      return { conversation, session, ...(refused !== undefined && { deleted }) };
    });
    return sessions.some(({ deleted }) => deleted?.id === 'undefined') ? [] : sessions;
  };
}

/** What would be written of the sessions of a file, as long as those are deleted that were; undefined where one is back. */
function lackingStill(
  store: HomeStore,
  sessions: readonly SessionOfFile[],
): readonly Reconciled[] | undefined {
  const all: Reconciled[] = [];
  for (const { conversation, session, deleted } of sessions) {
    const info = deleted && store.sessions.find(deleted.id);
    const isBack =
      deleted !== undefined && (info === undefined || !isDeleted(info) || isHere(store, session));
    if (isBack) return undefined;
    const refused = deleted && info && deletedHere(deleted.session, info);
    all.push({ conversation, session, ...nothing, ...(refused !== undefined && { refused }) });
  }
  return all;
}

function isHere(store: HomeStore, session: string): boolean {
  return store.sessions.find(session) !== undefined;
}
