import { type Draft, type HomeStore, note } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { text } from '../plan/text.ts';

/** The event of a session whose source names the session of which its beginning is a copy. */
export const copyEvent = 'import/copy-of';

/** The event of a session that begins behind a `/clear`: the session with which the run began that cleared. */
export const clearedEvent = 'import/cleared';

/** The event of a session to which a run came that began with another one: that, and when it first wrote there. */
export const visitedEvent = 'import/visited';

/** The event of a session that begins behind a `/clear` of which no record names the run: when that was. */
export const clearedAtEvent = 'import/cleared-at';

/** The event of a session that its program left by a `/clear`, and when. */
export const leftAtEvent = 'import/left-at';

/** The event of a session that begins with another one's entries under other ids. */
export const resumedEvent = 'import/resumed';

/** The event of a branch of such a session that begins with more of the other one. */
const resumedBranchEvent = 'import/resumed-branch';

/**
 * Says that a session was resumed from another one, by the id of that, and which keys the first and the last of what it
 * inherits have in its source.
 */
export function resumedNote(session: string, { first, last }: { first: string; last: string }): Draft {
  return { ...note(resumedEvent, { session, first, last }), key: 'import:resumed' };
}

/** Says the same of a branch. */
export function resumedBranchNote(session: string, last: string): Draft {
  return { ...note(resumedBranchEvent, { session, last }), key: 'import:resumed' };
}

/** The key that the last of what a session inherits from the one that was resumed has in its own source. */
export function lastResumed(store: HomeStore, id: string): string | undefined {
  const names = [resumedEvent, resumedBranchEvent];
  const [event] = names.flatMap((name) => [...store.entries.read(id, { own: true, name, limit: 1 })]);
  return isObject(event?.payload) ? text(event.payload.last) : undefined;
}

/**
 * The key that the first message of a fork has in its source, which has it under other ids than the session that was resumed;
 * undefined for any other session, empty where it was not recorded.
 */
export function resumedAs(store: HomeStore, id: string): string | undefined {
  const [event] = store.entries.read(id, { own: true, name: resumedEvent, limit: 1 });
  return event && (isObject(event.payload) ? (text(event.payload.first) ?? '') : '');
}

/** The event of a session that another program went on with: it is a fork of what was exported, and a copy of none. */
export const continuedEvent = 'import/continued';

/** Says that a session continues an exported one, by the id of that. */
export function continuedNote(session: string): Draft {
  return { ...note(continuedEvent, { session }), key: 'import:continued' };
}

/** The session that another one continues, after an export; undefined for one that continues none. */
export function continuedFrom(store: HomeStore, id: string): string | undefined {
  const [event] = store.entries.read(id, { own: true, name: continuedEvent, limit: 1 });
  return isObject(event?.payload) ? text(event.payload.session) : undefined;
}

/** The event by which a tape knows that the source of its session was forgotten. */
export const forgottenEvent = 'import/forgotten';

/** Whether the source of a session was forgotten. */
export function isForgotten(store: HomeStore, id: string): boolean {
  return [...store.entries.read(id, { own: true, name: forgottenEvent, limit: 1 })].length > 0;
}

/** The event of a session that was deleted since another one shows all of it. */
export const returnedEvent = 'import/returned';

/** Whether a session was deleted since another one shows all of it. */
export function isReturned(store: HomeStore, id: string): boolean {
  return [...store.entries.read(id, { own: true, name: returnedEvent, limit: 1 })].length > 0;
}
