import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import { NotFoundError } from '../errors/kinds.ts';
import { commandWords, safe } from '../escape.ts';
import { flat } from './texts.ts';

/** What the page shows is read from. */
export interface PageSource {
  readonly store: HomeStore;
  /** The name of the home. */
  readonly title: string;
  readonly version: string;
  /** The beginning of a command, `tape log`, as its user can type it from anywhere: with the home where that is needed. */
  inHome(line: string): string;
  now(): number;
}

/** The same, of a home that can be checked. */
export interface LiveSource extends PageSource {
  /** Checks the home, or the session of a ULID: what `tape check --json` prints. */
  check(session: string | undefined): Promise<Checked>;
}

/** What `tape check --json` prints, as far as the page shows it. */
export interface Checked {
  readonly sessions: number;
  readonly entries: number;
  readonly sections: Readonly<Record<string, { readonly findings: readonly CheckedFinding[] }>>;
  /** How many findings there are, where only the worst are here. */
  readonly total?: number;
}

export interface CheckedFinding {
  readonly id: string;
  readonly code: string;
  readonly weight: 'damage' | 'incomplete' | 'note';
  readonly session: string | null;
  readonly seq: number | null;
  readonly message: string;
  readonly next: string | null;
}

/**
 * Finds a session that the page can show: by name, alias or ULID.
 * @throws NotFoundError, also for one that was deleted
 */
export function needShown(store: HomeStore, ref: string): SessionInfo {
  const info = shownAs(store, ref);
  if (info !== undefined) return info;
  throw new NotFoundError(`cannot show '${ref}': there is no such session`, { session: ref });
}

/** The same, or undefined. */
export function shownAs(store: HomeStore, ref: string): SessionInfo | undefined {
  const info = ref === '' ? undefined : store.sessions.find(ref);
  return info === undefined || isDeleted(info) ? undefined : info;
}

/**
 * What commands and addresses name a session by: its name, or its ULID where the name means another one, or is not what a
 * reader sees of it.
 */
export function refOf(store: HomeStore, { session, id }: Pick<SessionInfo, 'session' | 'id'>): string {
  return isPlain(session) && store.sessions.find(session)?.id === id ? session : id;
}

/** The same of a session of the realm of the home that is not deleted: its name means no other one. */
export function ownRefOf({ session, id }: Pick<SessionInfo, 'session' | 'id'>): string {
  return isPlain(session) ? session : id;
}

/** What names the parent of a session in the tree; undefined for one without. */
export function parentRefOf(info: SessionInfo): string | undefined {
  const { parent, parentId } = treeParentOf(info);
  // One of another realm, or that was deleted, is named by its ULID already.
  return parent === undefined || parentId === undefined
    ? undefined
    : ownRefOf({ session: parent, id: parentId });
}

/** Characters of a name; the store makes none that has more. */
const nameMax = 200;

/** Whether a name is what a reader sees of it, and no range of positions. */
function isPlain(name: string): boolean {
  return name !== '' && flat(safe(name), nameMax) === name && !name.includes('..');
}

/** A reference to a session, with its name as a reader sees it where that is another text. */
export function withName(
  ref: string,
  { session }: Pick<SessionInfo, 'session'>,
): { readonly session: string; readonly name?: string } {
  const name = flat(safe(session), nameMax);
  return ref === session || name === '' ? { session: ref } : { session: ref, name };
}

/** Returns a function that says what commands name an entry of a session by. A name can be that of another one and a position. */
export function placesOf(store: HomeStore, info: SessionInfo): (seq: number) => string {
  const ref = refOf(store, info);
  const isShared = store.sessions.list({ prefix: `${ref}@`, all: true, limit: 1 }).length > 0;
  return (seq) => {
    const place = `${ref}@${seq}`;
    return isShared && store.sessions.find(place) !== undefined ? `${info.id}@${seq}` : place;
  };
}

/** Makes the line of a command of words that a shell reads as they are, and of options. */
export function lineOf(
  { inHome }: Pick<PageSource, 'inHome'>,
  verb: string,
  words: readonly string[],
  options: readonly string[] = [],
): string {
  // A name of a session can have the words of a command in it.
  return `${inHome(`tape ${verb}`)} ${commandWords(words, options)}`.trimEnd();
}
