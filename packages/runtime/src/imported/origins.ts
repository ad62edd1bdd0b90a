import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { importOriginIn, isDeleted } from '@tapedeck/tape/internal';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { isForgotten } from './copy-notes.ts';
import { knownSessionsIn } from './known-sessions.ts';
import { shortHash } from './short-hash.ts';

interface Found {
  /** The ULIDs of sessions, by their origins. */
  readonly live: Map<string, string>;
  /** By the marks of their origins. */
  readonly deleted: Map<string, SessionInfo>;
  /** Those that an import deleted, by the marks of their origins. */
  readonly returned: Map<string, readonly string[]>;
  /** The ULIDs of all sessions that came from a session of a tool, those of its conversation first. */
  readonly bySource: ReadonlyMap<string, readonly string[]>;
}

/**
 * Which session came from which conversation, whatever its name is now. Reads the home when the first one is sought that has
 * not the name that its source gives it.
 */
export class Origins {
  readonly #store: HomeStore;
  #found: Found | undefined;
  /** The last line of the lineage by which sessions are known, and those whose first entries were not there yet. */
  #g = 0;
  readonly #begun = new Set<string>();

  constructor(store: HomeStore) {
    this.#store = store;
  }

  /** Reads the home anew when the next one is sought: others have written. */
  forget(): void {
    this.#found = undefined;
  }

  /** The session with this origin; the oldest one, if the user had several made. */
  find(origin: string): SessionInfo | undefined {
    const id = this.#read().live.get(origin);
    const found = id === undefined ? undefined : this.#store.sessions.find(id);
    // This import may have deleted it.
    return found === undefined || isDeleted(found) ? undefined : found;
  }

  /**
   * A session that had this origin, and was deleted or purged; also one that another process has made since the home was read, as
   * it does for a source that it forgets.
   */
  findDeleted(origin: string): SessionInfo | undefined {
    const { deleted } = this.#read();
    for (const id of this.#madeSince()) this.#begun.add(id);
    for (const id of this.#begun) {
      const info = this.#store.sessions.find(id);
      const mark = info && markIn(this.#store, info);
      if (info === undefined || mark === undefined) continue;
      this.#begun.delete(id);
      if (isForgotten(this.#store, id)) deleted.set(mark, info);
    }
    return deleted.get(markOf(origin));
  }

  /** The ULIDs of those sessions with this origin that an import deleted, since another one has all that they had. */
  returnedOf(origin: string): readonly string[] {
    return this.#read().returned.get(markOf(origin)) ?? [];
  }

  /** Takes note that an import has deleted a session with this origin, since another one has all that it had. */
  noteReturned(origin: string, id: string): void {
    if (this.#found === undefined) return;
    const { live, returned } = this.#found;
    if (live.get(origin) === id) live.delete(origin);
    returned.set(markOf(origin), [...this.returnedOf(origin), id]);
  }

  /**
   * The sessions that came from a session of a tool: its conversation, then its branches and subagents. Those that the user
   * deleted are among them, unless they were purged.
   */
  allOf({ tool, session }: { readonly tool: string; readonly session: string }): readonly SessionInfo[] {
    const ids = this.#read().bySource.get(sourceOf(tool, session)) ?? [];
    return ids.flatMap((id) => this.#store.sessions.find(id) ?? []);
  }

  /** The sessions that were made without a parent since this was called last. */
  #madeSince(): readonly string[] {
    const lines = [...this.#store.lineage.read({ from: this.#g + 1, types: ['session'] })];
    this.#g = lines.at(-1)?.g ?? this.#g;
    return lines.map(({ session }) => session);
  }

  #read(): Found {
    if (this.#found !== undefined) return this.#found;
    // Before it is listed: what is made meanwhile is looked at twice.
    this.#madeSince();
    const { begun, ...found } = foundIn(this.#store);
    for (const id of begun) this.#begun.add(id);
    this.#found = found;
    return found;
  }
}

/** Reads where the sessions of a home come from. `begun` are those whose first entries are not there yet. */
function foundIn(store: HomeStore): Found & { readonly begun: readonly string[] } {
  const live = new Map<string, string>();
  const deleted = new Map<string, SessionInfo>();
  const returned = new Map<string, readonly string[]>();
  const bySource = new Map<string, readonly string[]>();
  const begun: string[] = [];
  const addTo = (source: string, id: string, isMain: boolean) => {
    const others = bySource.get(source) ?? [];
    bySource.set(source, isMain ? [id, ...others] : [...others, id]);
  };
  const known = knownSessionsIn(store);
  for (const info of store.sessions.list({ all: true, deleted: false })) {
    const { origin: from } = known.of(info);
    const origin = from && JSON.stringify(from);
    if (origin === undefined) {
      if (info.head <= 1) begun.push(info.id);
      continue;
    }
    if (!live.has(origin)) live.set(origin, info.id);
    addTo(sourceOf(from?.format, from?.session), info.id, from?.conversation === undefined);
  }
  for (const info of store.sessions.list({ deleted: true })) {
    const mark = markIn(store, info);
    const { isReturned, origin } = known.of(info);
    if (mark === undefined) continue;
    if (isReturned === true) returned.set(mark, [...(returned.get(mark) ?? []), info.id]);
    else {
      deleted.set(mark, info);
      if (origin !== undefined) addTo(sourceOf(origin.format, origin.session), info.id, false);
    }
  }
  return { live, deleted, returned, bySource, begun };
}

/** The ULIDs of the sessions of a home as {@link Origins.allOf} has them, by {@link sourceOf} of the session of a tool. */
export function sessionsBySource(store: HomeStore): ReadonlyMap<string, readonly string[]> {
  return foundIn(store).bySource;
}

/** The mark of an origin, which is left of it when its session is purged. */
function markIn(store: HomeStore, info: SessionInfo): string | undefined {
  const { origin, mark = origin && markOf(JSON.stringify(origin)) } = knownSessionsIn(store).of(info);
  return mark;
}

/** Where a session says that it comes from, as a text to compare. */
export function originOf(store: HomeStore, session: string): string | undefined {
  const found = importOriginIn(store, session);
  return found && JSON.stringify(found.origin);
}

/** Whether a session is one of those that a conversation of a plan has: the first, or one that an import made beside it. */
export function isOf(
  store: HomeStore,
  session: string,
  {
    plan: { format, session: source },
    conversation: { key, kind },
  }: {
    readonly plan: Pick<ImportPlan, 'format' | 'session'>;
    readonly conversation: Pick<ConversationPlan, 'key' | 'kind'>;
  },
): boolean {
  const { origin: from } = importOriginIn(store, session) ?? {};
  if (from?.format !== format || from.session !== source) return false;
  const { conversation } = from;
  return conversation === undefined ? kind === 'main' : String(conversation).replace(/#\d+$/, '') === key;
}

/** What an origin is known by where its text must not be kept. Pure. */
export function markOf(origin: string): string {
  return shortHash(origin);
}

/** A session of a tool, as a text to compare. */
export function sourceOf(tool: unknown, session: unknown): string {
  return `${String(tool)} ${String(session)}`;
}

/** The session that a tool's own session is here, if it has that name. */
export function sessionOf(
  store: HomeStore,
  { format, session }: Pick<ImportPlan, 'format' | 'session'>,
): SessionInfo | undefined {
  const info = store.sessions.find(session);
  const isIt = info !== undefined && originOf(store, info.session) === JSON.stringify({ format, session });
  return isIt ? info : undefined;
}

/** The session that the main conversation of a plan has here, whatever its name is. */
export function mainOf(
  store: HomeStore,
  { format, session }: Pick<ImportPlan, 'format' | 'session'>,
  origins: Origins,
): SessionInfo | undefined {
  return sessionOf(store, { format, session }) ?? origins.find(JSON.stringify({ format, session }));
}

/** The session of which a plan says that it is a copy, where that is here. */
export function sourceNamedBy(
  store: HomeStore,
  { format, copyOf }: Pick<ImportPlan, 'format' | 'copyOf'>,
): SessionInfo | undefined {
  return copyOf === undefined ? undefined : sessionOf(store, { format, session: copyOf });
}
