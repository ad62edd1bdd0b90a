import type { Ref, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
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
 * await deck.saved.delete('release');
 * console.log((await deck.saved.list()).map(({ name }) => name)); // [ 'idea' ]
 * console.log(await deck.saved.exists('release')); // false
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
   * Deletes a session: its names are free, and its ULID alone finds it, which this returns. Nothing is erased:
   * `store.sessions.update(id, { lifecycle: 'active' })` brings it back.
   * @throws TAPE_NO_SESSION; TAPE_BUSY while a process runs it
   */
  delete(name: Ref): Promise<string>;
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
    delete: async (name) => (await store.sessions.update(name, { lifecycle: 'destroyed' })).id,
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
