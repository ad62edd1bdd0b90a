import type { Ref, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import type { Purged } from '@tapedeck/tape/store';
import { undeleteSession } from '../history/undelete.ts';
import type { DeckParts } from '../session/parts.ts';
import type { Session } from '../session/session.ts';
import { isBranch } from '../terms/terms.ts';

/** What a list says of a saved session. */
export interface SavedSession {
  /** The name of its last rename, else the one that it was created with. */
  readonly name: string;
  /** All names that find it, the one that it was created with first. */
  readonly names: readonly string[];
  readonly id: string;
  /** Its title, else the beginning of its first prompt. */
  readonly title?: string;
  /** The time of its last message, or of its creation without one: milliseconds since the epoch. */
  readonly modifiedAt: number;
  readonly messageCount: number;
}

/** The receipt of a deletion. */
export interface DeletedSession {
  /** The ULID, which alone finds the session, and brings it back. */
  readonly id: string;
  /** The names that are free now, the one that it was created with first. */
  readonly names: readonly string[];
  /** Whether it was deleted before: nothing is written. */
  readonly repeated: boolean;
}

/**
 * The sessions of a deck as a program for people keeps them: by names. Each is on its tape from its first entry, so saving
 * gives a name, and nothing is lost without it.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.run('Plan the release.');
 * await deck.saved.save(main, 'release');
 * await deck.saved.clone('release', 'idea');
 * const { id, names } = await deck.saved.delete('release');
 * console.log(names, await deck.saved.exists('release')); // [ 'main', 'release' ] false
 * console.log((await deck.saved.undelete(id)).name); // main
 * console.log((await deck.saved.list()).length); // 2
 * ```
 */
export interface SavedSessions {
  /** Lists active sessions, without children and ephemeral ones; the one with the newest message comes first. */
  list(): Promise<readonly SavedSession[]>;
  /** Opens the first session of `list`; undefined without any. */
  last(): Promise<Session | undefined>;
  /** Whether a session has a name, an alias or a ULID, and is not deleted. */
  exists(name: Ref): Promise<boolean>;
  /**
   * Opens a session by a name, an alias or its ULID. Creates none.
   * @throws TAPE_NO_SESSION
   */
  load(name: Ref): Promise<Session>;
  /**
   * Gives a session a further name; its others go on to find it.
   * @throws TAPE_NO_SESSION; TAPE_BAD_NAME; TAPE_EXISTS when something else has the name
   */
  save(session: Session | Ref, name: string): Promise<SavedSession>;
  /**
   * Gives a session a new name, which is its title, too. Its own name goes on to find it; the one of an earlier rename,
   * by which it is named here, does not.
   * @throws as `save`; TAPE_BUSY while a process runs it
   */
  rename(name: Ref, to: string): Promise<SavedSession>;
  /**
   * Makes a branch with everything that the session shows, under a name of its own.
   * @throws TAPE_NO_SESSION; TAPE_BAD_NAME; TAPE_EXISTS; SESSION_BUSY while a process runs it
   */
  clone(name: Ref, to: string): Promise<Session>;
  /**
   * Deletes a session: its names are free, and its ULID alone finds it. Nothing is erased: `undelete` brings it back.
   * @throws TAPE_NO_SESSION; TAPE_BUSY while a process runs it
   */
  delete(name: Ref): Promise<DeletedSession>;
  /**
   * Brings back a deleted session by its ULID, with all of its names, as it was before: active or archived. One that is not
   * deleted stays as it is.
   * @throws TAPE_NO_SESSION; TAPE_ARCHIVED for one that was purged; TAPE_EXISTS when something else has one of its names now
   */
  undelete(id: string): Promise<SavedSession>;
  /**
   * Erases the content of a session for good, and frees its names: see `store.sessions.purge`. The receipt says what was
   * erased, and what may still quote it.
   * @throws TAPE_NO_SESSION; TAPE_CONFLICT while forks inherit its entries; TAPE_UNSETTLED; TAPE_BUSY while a process runs it
   */
  purge(name: Ref, reason: string): Promise<Purged>;
}

/** Makes `deck.saved`. */
export function savedSessions(parts: Pick<DeckParts, 'store' | 'session'>): SavedSessions {
  const { store } = parts;
  const load = async (name: Ref): Promise<Session> => parts.session(await need(store, name));
  const list = async () => (await store.sessions.list({ titles: true })).filter(isForPeople);
  return {
    list: async () => (await list()).map(savedOf),
    last: async () => {
      const [newest] = await list();
      return newest === undefined ? undefined : parts.session(newest);
    },
    exists: async (name) => {
      const info = await store.sessions.find(name);
      return info !== undefined && !isDeleted(info);
    },
    load,
    save: async (session, name) => {
      const ref = typeof session === 'string' ? session : session.id;
      const { id, session: own, aliases } = await need(store, ref);
      const isNamed = own === name || aliases.includes(name);
      if (!isNamed) await store.sessions.update(id, { alias: { name, reason: 'saved' } });
      return savedOf(await need(store, id));
    },
    rename: async (name, to) => savedOf(await store.sessions.update(name, { name: to })),
    clone: async (name, to) => await (await load(name)).branch(undefined, { name: to }),
    delete: async (name) => {
      const info = await need(store, name);
      if (isDeleted(info)) return { id: info.id, names: [], repeated: true };
      await store.sessions.update(info.id, { lifecycle: 'destroyed' });
      return { id: info.id, names: [info.session, ...info.aliases], repeated: false };
    },
    undelete: async (id) => savedOf(await undeleteSession(store, id)),
    purge: async (name, reason) => await store.sessions.purge(name, reason),
  };
}

/** @throws TAPE_NO_SESSION */
async function need(store: TapeStore, ref: Ref): Promise<SessionInfo> {
  // `resolve`, unlike `find`, throws for an unknown session.
  await store.entries.resolve(ref, 'head');
  const info = await store.sessions.find(ref);
  if (info === undefined) throw new TypeError('a resolved session has no row');
  return info;
}

/** A root, or a branch. Children work for their parents. */
function isForPeople(info: SessionInfo): boolean {
  return info.parentId === undefined || isBranch(info);
}

function savedOf({
  session,
  aliases,
  id,
  title,
  createdAt,
  lastMessageAt,
  messageCount,
}: SessionInfo): SavedSession {
  return {
    name: title !== undefined && aliases.includes(title) ? title : session,
    names: [session, ...aliases],
    id,
    ...(title !== undefined && { title }),
    modifiedAt: lastMessageAt ?? createdAt,
    messageCount,
  };
}
