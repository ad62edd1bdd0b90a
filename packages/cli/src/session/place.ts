import { type HomeStore, type Point, type Seq, type SessionInfo, TapeError } from '@tapedeck/tape';
import { isoTime } from '@tapedeck/tape/internal';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { commandLine, shellWord } from '../escape.ts';
import { pointOf, timeOf } from '../input.ts';
import { findSession, referred, withRef } from '../reference.ts';
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
export function readPlace(store: HomeStore, text: string): SessionPoint {
  if (store.sessions.find(text) !== undefined) return { session: text };
  for (const find of [store.sessions.find, (ref: string) => referred(store, ref)]) {
    const whole = find === store.sessions.find ? undefined : find(text);
    if (whole !== undefined) return { session: whole.session };
    for (let at = text.lastIndexOf('@'); at > 0; at = text.lastIndexOf('@', at - 1)) {
      const point = text.slice(at + 1);
      const info = point === '' ? undefined : find(text.slice(0, at));
      if (info !== undefined) return { session: withRef(info).session, point: pointIn(store, info, point) };
    }
  }
  // Drops the point, so that the error names the missing session alone.
  const at = text.lastIndexOf('@');
  return at > 0 && /@(?:\d+|head)$/.test(text) ? { session: text.slice(0, at) } : { session: text };
}

/** A session, and the positions of it that a text names the first and the last of. */
export interface SessionRange {
  readonly session: string;
  readonly from: Seq;
  readonly to: Seq;
}

/**
 * Parses `session@a..b`, whose ends are points, the start of the session without the first and its end without the last.
 * Undefined for another text, and for the name of a session. No anchor has two dots in its name.
 * @throws what resolving a point throws; UsageError for a range that begins after its end
 */
export function readRange(store: HomeStore, text: string): SessionRange | undefined {
  if (!/@.*\.\./s.test(text) || store.sessions.find(text) !== undefined) return undefined;
  for (let at = text.lastIndexOf('@'); at > 0; at = text.lastIndexOf('@', at - 1)) {
    const [whole, first = '', last = ''] = /^(.*?)\.\.@?(.*)$/s.exec(text.slice(at + 1)) ?? [];
    const info = whole === undefined ? undefined : findSession(store, text.slice(0, at));
    if (info === undefined) continue;
    const seqOf = (point: string, none: Seq) =>
      point === '' ? none : store.entries.resolve(info.id, pointIn(store, info, point));
    const [from, to] = [seqOf(first, info.floor + 1), seqOf(last, info.head)];
    if (from > to)
      throw new UsageError(
        `cannot read '${text}': the range begins at ${from}, and ends before it, at ${to}`,
      );
    return { session: withRef(info).session, from, to };
  }
  return undefined;
}

/**
 * Finds a session: by name, alias or id, by the beginning of one of these, as the parent of another (`NAME^`), or as one
 * that the user named before (`@{-1}`).
 * @throws TAPE_NO_SESSION with near names; UsageError for the beginning of several, and for a point
 */
export function needSession(store: HomeStore, text: string): SessionInfo {
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
export function assertNoPoint(store: HomeStore, text: string): void {
  if (!text.includes('@') || store.sessions.find(text) !== undefined) return;
  const session = sessionAt(store, text);
  if (session === undefined) return;
  throw new UsageError(
    `cannot use '${text}': it is an entry of '${session}', and this verb takes a session`,
    {
      data: { session },
      hint: `leave out the point: ${shellWord(session)}; or go on from there with: ${commandLine('fork', [text])}`,
    },
  );
}

/** The session that a text names an entry of; undefined for another text. */
function sessionAt(store: HomeStore, text: string): string | undefined {
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
export function pointIn(store: HomeStore, info: SessionInfo, text: string): Point {
  if (/^-\d+$/.test(text)) return before(info, text);
  const [, time] = /^\{(.+)\}$/.exec(text) ?? [];
  if (time === undefined) return pointOf(text);
  const at = timeOf(time, userOf(store)?.now ?? Date.now());
  if (at === undefined)
    throw new UsageError(`cannot read @{${time}}: it is no time`, {
      hint: 'write it as @{2026-11-21T10:00}, @{2 hours ago} or @{yesterday}',
    });
  return seqBy(store, info, at);
}

/** The position that is a number of positions before the last, such as `-3`. */
function before({ session, floor, head }: SessionInfo, text: string): Seq {
  const seq = head + Number(text);
  if (seq > floor) return seq;
  const has = head === floor ? 'it is empty' : `it has ${floor + 1} to ${head}`;
  throw new TapeError('TAPE_NO_SEQ', `cannot find ${session}@${text}: ${has}`, {
    data: { session, seq, from: floor + 1, to: head },
  });
}

/** How many entries are looked at for one with the time of its source. */
const near = 50;

/**
 * The last entry that was recorded by a time, at its source for an import. Times grow along a tape, but for records of an
 * import that have none, which have the time of the import, and for its merges, which stand behind what followed them.
 */
function seqBy(store: HomeStore, { session, id, floor, head }: SessionInfo, time: number): Seq {
  let [low, high] = [floor, head];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const [first, ...rest] = store.entries.read(id, { from: middle, to: Math.min(middle + near, high) });
    const dated = [first, ...rest].find((one) => one?.sourceAt !== undefined && one.meta.source !== 'merge');
    const entry = dated ?? first;
    if (entry !== undefined && (dated?.sourceAt ?? entry.at) <= time) low = entry.seq;
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
