import type { JsonObject, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { isDeleted, isObject } from '@tapedeck/tape/internal';
import type { ImportPlan } from './plan.ts';

interface Found {
  /** The ULIDs of sessions, by their origins. */
  readonly live: ReadonlyMap<string, string>;
  /** By their origins, or by their names where nothing of them is left. */
  readonly deleted: ReadonlyMap<string, SessionInfo>;
  /** The ULIDs of all sessions that came from a session of a tool. */
  readonly bySource: ReadonlyMap<string, readonly string[]>;
}

/**
 * Which session came from which conversation, whatever its name is now. Reads the home when the first one is sought that has
 * not the name that its source gives it.
 */
export class Origins {
  readonly #store: SqliteTapeStore;
  #found: Found | undefined;

  constructor(store: SqliteTapeStore) {
    this.#store = store;
  }

  /** The session with this origin; the oldest one, if the user had several made. */
  find(origin: string): SessionInfo | undefined {
    const name = this.#read().live.get(origin);
    return name === undefined ? undefined : this.#store.sessions.find(name);
  }

  /** A session that had this origin, or at least the name, and was deleted. */
  findDeleted(origin: string, name: string): SessionInfo | undefined {
    const { deleted } = this.#read();
    return deleted.get(origin) ?? deleted.get(name);
  }

  /** The sessions that came from a session of a tool: its conversation, with branches and subagents. */
  allOf({ tool, session }: { readonly tool: string; readonly session: string }): readonly SessionInfo[] {
    const ids = this.#read().bySource.get(sourceOf(tool, session)) ?? [];
    return ids.flatMap((id) => this.#store.sessions.find(id) ?? []);
  }

  #read(): Found {
    if (this.#found !== undefined) return this.#found;
    const live = new Map<string, string>();
    const deleted = new Map<string, SessionInfo>();
    const bySource = new Map<string, string[]>();
    for (const info of this.#store.sessions.list({ all: true })) {
      const from = payloadOf(this.#store, info.id);
      const origin = from && JSON.stringify(from);
      if (isDeleted(info)) deleted.set(origin ?? info.session, info);
      else if (origin !== undefined) {
        if (!live.has(origin)) live.set(origin, info.id);
        const source = sourceOf(from?.format, from?.session);
        bySource.set(source, [...(bySource.get(source) ?? []), info.id]);
      }
    }
    this.#found = { live, deleted, bySource };
    return this.#found;
  }
}

/** Where a session says that it comes from, as a text to compare. */
export function originOf(store: SqliteTapeStore, session: string): string | undefined {
  const payload = payloadOf(store, session);
  return payload && JSON.stringify(payload);
}

function payloadOf(store: SqliteTapeStore, session: string): JsonObject | undefined {
  const [source] = store.entries.read(session, { own: true, name: 'import/source', limit: 1 });
  return isObject(source?.payload) ? source.payload : undefined;
}

/** A session of a tool, as a text to compare. */
export function sourceOf(tool: unknown, session: unknown): string {
  return `${String(tool)} ${String(session)}`;
}

/** The name of the session that a tool's own session is here. */
export function sessionOf(
  store: SqliteTapeStore,
  { format, session }: Pick<ImportPlan, 'format' | 'session'>,
): string | undefined {
  const name = store.sessions.find(session)?.session;
  if (name === undefined) return undefined;
  const [origin] = store.entries.read(name, { own: true, name: 'import/source', limit: 1 });
  return JSON.stringify(origin?.payload) === JSON.stringify({ format, session }) ? name : undefined;
}
