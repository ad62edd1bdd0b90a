import { type HomeStore, type SessionInfo, TapeError } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import { NotFoundError, UsageError } from './errors/kinds.ts';
import { userOf } from './user.ts';

/**
 * Finds a session: by name, alias or id, by the beginning of one of these, as the parent of another (`NAME^`), or as one
 * that the user named before (`@{-1}`).
 * @throws UsageError for the beginning of several
 */
export function findSession(store: HomeStore, text: string): SessionInfo | undefined {
  return named(store, text) ?? referred(store, text);
}

/** Finds the session of a name, an alias or an id. A deleted one has no name: its id is in the place of it. */
function named(store: HomeStore, text: string): SessionInfo | undefined {
  const info = store.sessions.find(text);
  return info === undefined ? undefined : withRef(info);
}

/** A session under the word by which a reference finds it: a deleted one has no name, but its id. */
export function withRef(info: SessionInfo): SessionInfo {
  return isDeleted(info) ? { ...info, session: info.id } : info;
}

/**
 * Finds the session of a verb that creates a missing one, for which the beginning of a name is another name. Without
 * `creates`, as `findSession` does.
 */
export function findMeant(
  store: HomeStore,
  text: string,
  { creates }: { readonly creates: boolean },
): SessionInfo | undefined {
  return creates ? (named(store, text) ?? relative(store, text)) : findSession(store, text);
}

/** Finds the session that a text refers to without being its name, alias or id. */
export function referred(store: HomeStore, text: string): SessionInfo | undefined {
  return relative(store, text) ?? beginning(store, text) ?? ofId(store, text) ?? cutName(store, text);
}

/**
 * Finds the session with the only ULID that begins with a text, in either case.
 * @throws UsageError for the beginning of several
 */
export function ofId(store: HomeStore, text: string): SessionInfo | undefined {
  if (!/^[0-7][0-9a-hjkmnp-tv-z]{0,25}$/i.test(text)) return undefined;
  const found = store.sessions.list({ idPrefix: text, all: true, allRealms: true, limit: candidatesMax + 1 });
  return onlyOf(
    text,
    found.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    (info, others) => `${distinctId(info, others)} (${info.session})`,
  );
}

/** The beginning of an id that no other of some has. */
function distinctId({ id }: SessionInfo, others: readonly SessionInfo[]): string {
  const isShared = (length: number) =>
    others.some((other) => other.id !== id && other.id.startsWith(id.slice(0, length)));
  let length = 1;
  while (isShared(length)) length += 1;
  return id.slice(0, length);
}

/** Finds the session of `@{-1}` or `NAME^`; undefined for another text. */
export function relative(store: HomeStore, text: string): SessionInfo | undefined {
  const [, back] = /^@\{-([1-9]\d{0,2})\}$/.exec(text) ?? [];
  if (back !== undefined) return usedBefore(store, Number(back));
  if (!text.endsWith('^') || text.length === 1) return undefined;
  const ref = text.slice(0, -1);
  const child = findSession(store, ref);
  if (child === undefined) return undefined;
  const parent = child.parentId === undefined ? undefined : named(store, child.parentId);
  if (parent !== undefined) return parent;
  throw new NotFoundError(`cannot find the parent of '${child.session}': it has none`, {
    session: child.session,
  });
}

function usedBefore(store: HomeStore, back: number): SessionInfo {
  const found = userOf(store)
    ?.recent.flatMap((id) => named(store, id) ?? [])
    .at(back - 1);
  if (found !== undefined) return found;
  throw new NotFoundError(
    `cannot find @{-${back}}: you have named ${back === 1 ? 'no' : 'fewer'} sessions in this home`,
  );
}

/** Number of sessions that the error for an ambiguous text names. */
const candidatesMax = 8;

/** Finds the session with the only name or alias that begins with a text. */
function beginning(store: HomeStore, text: string): SessionInfo | undefined {
  if (text === '') return undefined;
  const found = store.sessions.list({ prefix: text, all: true, limit: candidatesMax + 1 });
  // A deletion that is repeated must not go on with the forks that are named after the session.
  return found.length > 0 && wasName(store, text) ? undefined : onlyOf(text, found);
}

/** Whether a text is the whole name of a session that was deleted or purged, and of no other now. */
function wasName(store: HomeStore, text: string): boolean {
  try {
    store.entries.resolve(text, 'head');
    return false;
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_NO_SESSION') throw error;
    return error.data.deleted !== undefined || error.data.purged !== undefined;
  }
}

/**
 * Returns a function that counts the characters at the beginning of a name that are no beginning of another name or
 * alias: all of them, where others begin with the whole name; 1 for what is no session.
 */
export function distinctIn(store: HomeStore): (name: string) => number {
  const known = new Map<string, number>();
  const isOnly = (prefix: string) => store.sessions.list({ prefix, all: true, limit: 2 }).length === 1;
  const count = (name: string) => {
    if (store.sessions.find(name) === undefined) return 1;
    let [least, most] = [1, name.length];
    while (least < most) {
      const middle = Math.floor((least + most) / 2);
      if (isOnly(name.slice(0, middle))) most = middle;
      else least = middle + 1;
    }
    return least;
  };
  return (name) => {
    const found = known.get(name) ?? count(name);
    known.set(name, found);
    return found;
  };
}

/** Finds the session whose name a table has cut: `main-check-…d6c46`, with one or three dots for what is left out. */
function cutName(store: HomeStore, text: string): SessionInfo | undefined {
  const [, start, end = ''] = /^(.+?)(?:…|\.\.\.)(.*)$/s.exec(text) ?? [];
  if (start === undefined) return undefined;
  const begun = store.sessions.list({ prefix: start, all: true });
  const fits = (name: string) =>
    name.length >= start.length + end.length && name.startsWith(start) && name.endsWith(end);
  const found = begun.filter(({ session, aliases }) => fits(session) || aliases.some(fits));
  return onlyOf(text, found.slice(0, candidatesMax + 1));
}

/** @throws UsageError for several sessions */
function onlyOf(
  text: string,
  found: readonly SessionInfo[],
  shownOf: (info: SessionInfo, others: readonly SessionInfo[]) => string = ({ session }) => session,
): SessionInfo | undefined {
  const [only, another] = found;
  if (another === undefined) return only;
  const named = found.slice(0, candidatesMax);
  const candidates = named.map(({ session }) => session);
  const more = found.length > candidatesMax ? ', and more' : '';
  const shown = named.map((info) => shownOf(info, found)).join(', ');
  throw new UsageError(`cannot tell which session '${text}' is: ${shown}${more}`, {
    data: { candidates },
    hint: 'write more of it',
  });
}
