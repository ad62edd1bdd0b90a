import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from '../tape/append.ts';
import { findTape } from '../tape/find.ts';
import { type Lifecycle, type Ref, selectTape, type TapeRow } from '../tape/tape.ts';
import type { Travelling } from './scope.ts';

/** What of one session goes to a side that has some of it. */
export interface BundlePart {
  readonly session: Ref;
  /** The last position that the other side has. Default: it has nothing. */
  readonly after?: Seq | undefined;
  /** The last position that travels. Default: the head. */
  readonly to?: Seq | undefined;
}

/** What each session of a home is now: what another side compares, to find what it lacks. */
export interface SessionHead {
  readonly session: string;
  readonly id: string;
  readonly parent: string | null;
  readonly base: Seq;
  readonly head: Seq;
  readonly hash: string;
  readonly lifecycle: Lifecycle;
  /** The events of the lineage about it, in order. */
  readonly events: readonly string[];
  /** The sessions under which links put it, by the events of these. */
  readonly above: ReadonlyMap<string, string>;
}

/**
 * The sessions of a part, parents first. An ancestor that is not named is there without entries: the other side has it.
 * @throws TAPE_NO_SESSION, and TAPE_NO_SEQ for a position that a session does not have
 */
export function travellingParts(
  db: Db,
  parts: readonly BundlePart[],
  need: (ref: Ref) => TapeRow,
): readonly Travelling[] {
  const chosen = new Map<number, { readonly tape: TapeRow; readonly after: Seq; readonly to: Seq }>();
  for (const { session, after, to } of parts) {
    const tape = need(session);
    chosen.set(tape.id, { tape, after: after ?? tape.base_seq, to: to ?? tape.head_seq });
  }
  for (const { tape } of [...chosen.values()])
    for (let at = tape; at.parent_id !== null && at.parent_id < at.id; ) {
      const parent = db.get<TapeRow>(`${selectTape} WHERE t.id = @id`, { id: at.parent_id });
      if (parent === undefined || chosen.has(parent.id)) break;
      chosen.set(parent.id, { tape: parent, after: parent.head_seq, to: parent.head_seq });
      at = parent;
    }
  return [...chosen.values()]
    .sort((a, b) => a.tape.id - b.tape.id)
    .map(({ tape, after, to }) => ({
      tape,
      shown: { lo: 0, hi: to },
      start: { after, after_hash: hashAt(db, tape, after) },
      end: { head: to, head_hash: hashAt(db, tape, to) },
    }));
}

function hashAt(db: Db, tape: TapeRow, seq: Seq): string {
  const found = ownHash(db, tape, seq);
  if (found !== undefined) return found;
  throw new TapeError(
    'TAPE_NO_SEQ',
    `cannot export '${tape.name}' from @${seq}: it has no such entry of its own`,
    {
      data: { session: tape.name, seq },
    },
  );
}

/** The hash of an own entry of a session, or of what its first one follows. */
export function ownHash(db: Db, tape: TapeRow, seq: Seq): string | undefined {
  if (seq === tape.base_seq) return hex(tape.base_hash);
  if (seq === tape.head_seq) return hex(tape.head_hash);
  return db.get<{ hash: string }>(
    'SELECT lower(hex(hash)) AS hash FROM entry WHERE tape_id = @id AND seq = @seq',
    { id: tape.id, seq },
  )?.hash;
}

/** The sessions of a realm in the order in which they came, also those that are deleted. */
export function headsOf(db: Db, realm: string): readonly SessionHead[] {
  return db.read(() => {
    const events = Map.groupBy(
      db.all<{ id: number; event: string; above: string | null }>(
        `SELECT l.tape_id AS id, l.event_id AS event, p.ulid AS above FROM lineage l
           LEFT JOIN tape p ON l.type = 'link' AND p.id = l.peer_id ORDER BY l.g`,
      ),
      ({ id }) => id,
    );
    return db
      .all<Omit<SessionHead, 'events' | 'above'> & { row: number }>(
        `SELECT t.id AS row, t.name AS session, t.ulid AS id, p.ulid AS parent, t.base_seq AS base, t.head_seq AS head,
           lower(hex(t.head_hash)) AS hash, t.lifecycle FROM tape t LEFT JOIN tape p ON p.id = t.parent_id
           WHERE t.realm = @realm AND t.lifecycle <> 'staging' ORDER BY t.id`,
        { realm },
      )
      .map(({ row, ...head }) => {
        const own = events.get(row) ?? [];
        const above = new Map(own.flatMap((one) => (one.above === null ? [] : [[one.event, one.above]])));
        return { ...head, events: own.map(({ event }) => event), above };
      });
  });
}

/** The session of a reference, if an entry of its own, or what its first one follows, has this hash at this position. */
export function hasPoint(
  db: Db,
  realm: string,
  { session, seq, hash }: { readonly session: Ref; readonly seq: Seq; readonly hash: string },
): boolean {
  const tape = findTape(db, realm, session);
  return tape !== undefined && ownHash(db, tape, seq) === hash;
}

/** The session of an id, if it is here. */
export function rowOf({ db }: Writer, ulid: string): TapeRow | undefined {
  return db.get<TapeRow>(`${selectTape} WHERE t.ulid = @ulid`, { ulid });
}
