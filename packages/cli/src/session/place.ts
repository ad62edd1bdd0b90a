import type { Point, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { pointOf } from '../input.ts';

/** A session and, if given, a point of it. */
export interface SessionPoint {
  readonly session: string;
  readonly point?: Point;
}

/**
 * Parses `session[@point]`. Names may contain `@`: the longest existing name wins, and the rest is the point.
 * If no session matches, the whole text is the name.
 */
export function readPlace(store: SqliteTapeStore, text: string): SessionPoint {
  if (store.sessions.find(text) !== undefined) return { session: text };
  for (let at = text.lastIndexOf('@'); at > 0; at = text.lastIndexOf('@', at - 1)) {
    const session = text.slice(0, at);
    const point = text.slice(at + 1);
    if (point !== '' && store.sessions.find(session) !== undefined) return { session, point: pointOf(point) };
  }
  // Drops the point, so that the error names the missing session alone.
  const at = text.lastIndexOf('@');
  return at > 0 && /@(?:\d+|head)$/.test(text) ? { session: text.slice(0, at) } : { session: text };
}

/**
 * Finds a session by name, alias or id.
 * @throws TAPE_NO_SESSION with near names
 */
export function needSession(store: SqliteTapeStore, text: string): SessionInfo {
  const info = store.sessions.find(text);
  if (info !== undefined) return info;
  // `resolve` throws the error with the nearest names.
  store.entries.resolve(text, 'head');
  throw new TypeError(`session ${text} was created during the lookup`);
}
