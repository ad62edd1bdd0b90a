import type { Point, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';

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

/** @throws TAPE_NO_SESSION, TAPE_NO_ANCHOR, TAPE_NO_SEQ */
export async function placeOf(store: TapeStore, { session, at: point = 'head' }: DiffPlace): Promise<Placed> {
  const at = await store.entries.resolve(session, point);
  const info = await store.sessions.find(session);
  if (info === undefined) throw new TypeError('a resolved session has no row');
  return { info, at, visible: await store.visible(info.id, { at }) };
}
