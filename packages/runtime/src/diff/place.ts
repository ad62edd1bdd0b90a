import type { Point, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { assertFields, type Fields } from '../fields.ts';

/** A session, and a point of it (default: its head). */
export interface DiffPlace {
  readonly session: string;
  readonly at?: Point;
}

/** A resolved point of a session. */
export interface Placed {
  readonly info: SessionInfo;
  readonly at: Seq;
  /** The positions visible there, oldest first. */
  readonly visible: readonly (readonly [Seq, Seq])[];
}

/** The fields of `DiffPlace`. */
const placeFields: Fields<DiffPlace> = { session: 'text', at: true };

/** @throws TAPE_NO_SESSION, TAPE_NO_ANCHOR, TAPE_NO_SEQ, SESSION_BAD_INPUT */
export async function placeOf(store: TapeStore, place: string | DiffPlace): Promise<Placed> {
  if (typeof place !== 'string') assertFields(place, placeFields, 'compare sessions');
  const { session, at: point = 'head' } = typeof place === 'string' ? { session: place } : place;
  const at = await store.entries.resolve(session, point);
  const info = await store.sessions.find(session);
  if (info === undefined) throw new TypeError('a resolved session has no row');
  const ranges = await store.views.ranges(info.id, { at });
  const visible = ranges.filter(({ hiddenBy }) => hiddenBy === undefined);
  return { info, at, visible: visible.map(({ from, to }) => [from, to]) };
}
