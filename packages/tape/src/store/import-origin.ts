import type { Entry } from '../entry/entry.ts';
import { importedEvent } from '../entry/import-source.ts';
import { isObject, type JsonObject } from '../entry/json.ts';
import type { HomeStore } from './home.ts';

/**
 * What an entry says of where its session was imported from: the format, the session of the tool and, of another one than the main
 * one, the conversation. Undefined for any other entry, and for one that was erased.
 */
export function importOriginBy(entry: Pick<Entry, 'name' | 'payload'> | undefined): JsonObject | undefined {
  return entry?.name === importedEvent && isObject(entry.payload) ? entry.payload : undefined;
}

/** Where a session says that it was imported from, and at which position; undefined for one that was not. */
export function importOriginIn(
  store: Pick<HomeStore, 'entries'>,
  session: string,
): { readonly origin: JsonObject; readonly seq: number } | undefined {
  const [entry] = store.entries.read(session, { own: true, name: importedEvent, limit: 1 });
  const origin = importOriginBy(entry);
  return origin && entry && { origin, seq: entry.seq };
}
