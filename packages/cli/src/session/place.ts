import type { Point, Seq, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { isoTime } from '@tapedeck/tape/internal';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import { pointOf, timeOf } from '../input.ts';
import { findSession, referred } from '../reference.ts';
import { userOf } from '../user.ts';

/** A session and, if given, a point of it. */
export interface SessionPoint {
  readonly session: string;
  readonly point?: Point;
}

/**
 * Parses `session[@point]`. Names may contain `@`: the longest existing name wins, and the rest is the point. Without an
 * existing name, the longest reference to a session wins. If nothing matches, the whole text is the name.
 */
export function readPlace(store: SqliteTapeStore, text: string): SessionPoint {
  if (store.sessions.find(text) !== undefined) return { session: text };
  for (const find of [store.sessions.find, (ref: string) => referred(store, ref)]) {
    const whole = find === store.sessions.find ? undefined : find(text);
    if (whole !== undefined) return { session: whole.session };
    for (let at = text.lastIndexOf('@'); at > 0; at = text.lastIndexOf('@', at - 1)) {
      const point = text.slice(at + 1);
      const info = point === '' ? undefined : find(text.slice(0, at));
      if (info !== undefined) return { session: info.session, point: pointIn(store, info, point) };
    }
  }
  // Drops the point, so that the error names the missing session alone.
  const at = text.lastIndexOf('@');
  return at > 0 && /@(?:\d+|head)$/.test(text) ? { session: text.slice(0, at) } : { session: text };
}

/**
 * Finds a session: by name, alias or id, by the beginning of one of these, as the parent of another (`NAME^`), or as one
 * that the user named before (`@{-1}`).
 * @throws TAPE_NO_SESSION with near names; UsageError for the beginning of several, and for a point
 */
export function needSession(store: SqliteTapeStore, text: string): SessionInfo {
  const info = findSession(store, text);
  if (info !== undefined) {
    userOf(store)?.uses(info.id);
    return info;
  }
  assertNoPoint(store, text);
  // `resolve` throws the error with the nearest names.
  store.entries.resolve(text, 'head');
  throw new TypeError(`session ${text} was created during the lookup`);
}

/**
 * Refuses an entry of a session where the session itself is needed.
 * @throws UsageError
 */
export function assertNoPoint(store: SqliteTapeStore, text: string): void {
  if (!text.includes('@') || store.sessions.find(text) !== undefined) return;
  const session = sessionAt(store, text);
  if (session === undefined) return;
  throw new UsageError(
    `cannot use '${text}': it is an entry of '${session}', and this verb takes a session`,
    {
      data: { session },
      hint: `leave out the point: ${shellWord(session)}; or go on from there with: tape fork ${shellWord(text)}`,
    },
  );
}

/** The session that a text names an entry of; undefined for another text. */
function sessionAt(store: SqliteTapeStore, text: string): string | undefined {
  try {
    const { session, point } = readPlace(store, text);
    if (point === undefined) return undefined;
    store.entries.resolve(session, point);
    return session;
  } catch {
    return undefined;
  }
}

/** Reads a point: as `pointOf`, or `-3`, three positions before the last, or `{TIME}`, the last entry by that time. */
export function pointIn(store: SqliteTapeStore, info: SessionInfo, text: string): Point {
  if (/^-\d{1,15}$/.test(text)) return info.head + Number(text);
  const [, time] = /^\{(.+)\}$/.exec(text) ?? [];
  if (time === undefined) return pointOf(text);
  const at = timeOf(time, userOf(store)?.now ?? Date.now());
  if (at === undefined)
    throw new UsageError(`cannot read @{${time}}: it is no time`, {
      hint: 'write it as @{2026-11-21T10:00}, @{2 hours ago} or @{yesterday}',
    });
  return seqBy(store, info, at);
}

/** How many entries are looked at for one with the time of its source. */
const near = 50;

/**
 * The last entry that was recorded by a time, at its source for an import. Times grow along a tape, but for records of an
 * import that have none: those have the time of the import.
 */
function seqBy(store: SqliteTapeStore, { session, id, floor, head }: SessionInfo, time: number): Seq {
  let [low, high] = [floor, head];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const [first, ...rest] = store.entries.read(id, { from: middle, to: Math.min(middle + near, high) });
    const entry = [first, ...rest].find((one) => one?.sourceAt !== undefined) ?? first;
    if (entry !== undefined && (entry.sourceAt ?? entry.at) <= time) low = entry.seq;
    else high = middle - 1;
  }
  if (low > floor) return low;
  throw new NotFoundError(
    `cannot find an entry of '${session}' from before ${isoTime(time)}: all are later`,
    {
      session,
    },
  );
}
