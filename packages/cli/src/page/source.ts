import type { SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import { NotFoundError } from '../errors/kinds.ts';
import { shellLine } from '../escape.ts';

/** What the page shows is read from. */
export interface PageSource {
  readonly store: SqliteTapeStore;
  /** The name of the home. */
  readonly title: string;
  readonly version: string;
  /** The beginning of a command, `tape log`, as its user can type it from anywhere: with the home where that is needed. */
  inHome(line: string): string;
  /** Checks the home, or a session of it: what `tape check --json` prints. */
  check(session: string | undefined): Promise<Checked>;
  now(): number;
}

/** What `tape check --json` prints, as far as the page shows it. */
export interface Checked {
  readonly sessions: number;
  readonly entries: number;
  readonly sections: Readonly<Record<string, { readonly findings: readonly CheckedFinding[] }>>;
}

interface CheckedFinding {
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
export function needShown(store: SqliteTapeStore, ref: string): SessionInfo {
  const info = shownAs(store, ref);
  if (info !== undefined) return info;
  throw new NotFoundError(`cannot show '${ref}': there is no such session`, { session: ref });
}

/** The same, or undefined. */
export function shownAs(store: SqliteTapeStore, ref: string): SessionInfo | undefined {
  const info = ref === '' ? undefined : store.sessions.find(ref);
  return info === undefined || isDeleted(info) ? undefined : info;
}

/** What commands and addresses name a session by: its name, or its ULID where the name means another one. */
export function refOf(store: SqliteTapeStore, { session, id }: Pick<SessionInfo, 'session' | 'id'>): string {
  return store.sessions.find(session)?.id === id ? session : id;
}

/** Makes the line of a command of words that a shell reads as they are. */
export function lineOf(
  { inHome }: Pick<PageSource, 'inHome'>,
  verb: string,
  ...words: readonly string[]
): string {
  // A name of a session can have the words of a command in it.
  return [inHome(`tape ${verb}`), ...words.map((word) => shellLine(word))].join(' ');
}
