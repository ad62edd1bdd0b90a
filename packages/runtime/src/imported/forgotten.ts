import { type Draft, type HomeStore, type JsonObject, note } from '@tapedeck/tape';
import { importedEvent } from '@tapedeck/tape/internal';
import { ImportError } from '../lines/errors.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { markOf, type Origins, originOf } from './origins.ts';
import { originKey } from './session-facts.ts';

/** The name of the event by which a tape knows that the source of its session was forgotten. */
const forgottenEvent = 'import/forgotten';

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

/** Whether the source of a session was forgotten. */
function isForgotten(store: HomeStore, session: string): boolean {
  const [event] = store.entries.read(session, { own: true, name: forgottenEvent, limit: 1 });
  return event !== undefined;
}

/**
 * Why nothing of a plan is taken whose source was forgotten, with the session that knows it; undefined for any other one. Who
 * names a session of its own (`as`) takes it again.
 */
export function refusalOf(
  store: HomeStore,
  { format, session }: Pick<ImportPlan, 'format' | 'session'>,
  { as, origins }: { readonly as: string | undefined; readonly origins: Origins },
): { readonly session: string; readonly refused: ImportError } | undefined {
  const origin = JSON.stringify({ format, session });
  const named = store.sessions.find(as ?? session);
  const isOwn = named !== undefined && originOf(store, named.id) === origin;
  const found = isOwn
    ? named
    : as === undefined
      ? (origins.find(origin) ?? origins.findDeleted(origin))
      : undefined;
  if (found === undefined || !isForgotten(store, found.id)) return undefined;
  const why = 'its source was forgotten';
  return {
    session: found.session,
    refused: new ImportError('IMPORT_FORGOTTEN', `cannot import into '${found.session}': ${why}`, {
      data: { session: found.session, id: found.id, why },
    }),
  };
}
