import type { Point, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';

/** A session and, if one was named, a point of it. */
export interface SessionPoint {
  readonly session: string;
  readonly point?: Point;
}

/**
 * Reads `session[@point]`. Names may contain `@`, so the longest existing name wins and the point is what follows it;
 * with none existing, the whole text is the name.
 */
export function readPlace(store: SqliteTapeStore, text: string): SessionPoint {
  if (store.find(text) !== undefined) return { session: text };
  for (let at = text.lastIndexOf('@'); at > 0; at = text.lastIndexOf('@', at - 1)) {
    const session = text.slice(0, at);
    const point = text.slice(at + 1);
    if (point !== '' && store.find(session) !== undefined) return { session, point: pointOf(point) };
  }
  // So that the error names the session that is missing, not the session and its point.
  const at = text.lastIndexOf('@');
  return at > 0 && /@(?:\d+|head)$/.test(text) ? { session: text.slice(0, at) } : { session: text };
}

/** A point as it is written on the command line: `42` and `@42` are positions. */
export function pointOf(text: string): Point {
  return /^\d+$/.test(text) ? `@${Number(text)}` : text;
}

/**
 * The session that a text names.
 * @throws TAPE_NO_SESSION with near names
 */
export function needSession(store: SqliteTapeStore, text: string): SessionInfo {
  const info = store.find(text);
  if (info !== undefined) return info;
  // Any read of a missing session throws the error that names the nearest.
  store.resolve(text, 'head');
  throw new TypeError(`session ${text} appeared while it was looked for`);
}
