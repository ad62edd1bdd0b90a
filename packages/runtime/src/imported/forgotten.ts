import { type Draft, type HomeStore, type JsonObject, note, type SessionInfo } from '@tapedeck/tape';
import { importedEvent, originKey } from '@tapedeck/tape/internal';
import { ImportError } from '../lines/errors.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { forgottenEvent, isForgotten } from './copy-notes.ts';
import { markOf, type Origins, originOf } from './origins.ts';

/** The event that an imported session gets when its source is forgotten. It has no content of the source. */
export function forgottenDraft(): Draft {
  return { ...note(forgottenEvent, {}), key: 'import:forgotten' };
}

/**
 * The event by which a session says what it was imported from. Its key says it, too, where its content was erased.
 * @param timestamp when the last message was that the session inherits of its own conversation
 */
export function originDraft(origin: JsonObject, timestamp?: string): Draft {
  const meta = timestamp === undefined ? undefined : { source: 'import', timestamp };
  return { ...note(importedEvent, origin, meta), key: `${originKey}${markOf(JSON.stringify(origin))}` };
}

/** Why nothing of a plan is taken, with the session that knows it. */
interface Refusal {
  readonly session: string;
  readonly refused: ImportError;
}

/**
 * Why nothing of a plan is taken whose source was forgotten, with the session that knows it; undefined for any other one. Who
 * names a session of its own (`as`) takes it again.
 */
export function refusalOf(
  store: HomeStore,
  { format, session }: Pick<ImportPlan, 'format' | 'session'>,
  { as, origins }: { readonly as: string | undefined; readonly origins: Origins },
): Refusal | undefined {
  const origin = JSON.stringify({ format, session });
  const named = store.sessions.find(as ?? session);
  const isOwn = named !== undefined && originOf(store, named.id) === origin;
  const found = isOwn
    ? named
    : as === undefined
      ? (origins.find(origin) ?? origins.findDeleted(origin))
      : undefined;
  return found === undefined ? undefined : refusalBy(store, found);
}

function refusalBy(store: HomeStore, { id, session }: SessionInfo): Refusal | undefined {
  if (!isForgotten(store, id)) return undefined;
  const why = 'its source was forgotten';
  return {
    session,
    refused: new ImportError('IMPORT_FORGOTTEN', `cannot import into '${session}': ${why}`, {
      data: { session, id, why },
    }),
  };
}
