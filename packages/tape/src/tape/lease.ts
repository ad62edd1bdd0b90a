import { crashPoint } from '../crash-point.ts';
import { TapeError } from '../errors.ts';
import { type Owner, type OwnerRow, ownerOf, provablyDead } from '../owner.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { TapeRow } from './tape.ts';

/**
 * The right to write a session, held for a run or an act. Time only decides when it may be taken over; what
 * keeps a superseded owner out is the epoch, checked inside every append (R7).
 */
export interface Lease {
  readonly session: string;
  /** ULID of the session. */
  readonly id: string;
  readonly owner: string;
  readonly epoch: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** A row of `lease`. */
export interface LeaseRow extends OwnerRow {
  readonly tape_id: number;
  readonly epoch: number;
  readonly expires_at: number;
}

export const leaseTtlMs = 30_000;

/** The live lease of a tape: not expired, and its owner not provably dead. */
export function liveLease(db: Db, tapeId: number, now: number): LeaseRow | undefined {
  const row = db.get<LeaseRow>('SELECT * FROM lease WHERE tape_id = @tapeId', { tapeId });
  if (row === undefined || row.expires_at <= now) return undefined;
  return provablyDead(ownerOf(row)) ? undefined : row;
}

/** Who is writing which session. */
export interface SessionOwner {
  readonly session: string;
  /** ULID of the session. */
  readonly id: string;
  readonly owner: Owner;
  readonly epoch: number;
}

/** Everybody who is writing a session now, in the order of the sessions' making. */
export function liveOwners(db: Db, now: number): SessionOwner[] {
  return db
    .all<LeaseRow & { name: string; ulid: string }>(
      `SELECT lease.*, tape.name, tape.ulid FROM lease JOIN tape ON tape.id = lease.tape_id
         WHERE expires_at > @now ORDER BY tape_id`,
      { now },
    )
    .map((row) => ({ session: row.name, id: row.ulid, owner: ownerOf(row), epoch: row.epoch }))
    .filter(({ owner }) => !provablyDead(owner));
}

/**
 * Takes the lease of a tape, from a dead or expired owner too.
 * @throws TAPE_BUSY naming the holder.
 */
export function acquireLease(
  db: Db,
  tape: TapeRow,
  { owner, now, ttlMs = leaseTtlMs }: { owner: Owner; now: number; ttlMs?: number | undefined },
): Lease {
  assertIdle(db, tape, now);
  const epoch = tape.epoch + 1;
  const expiresAt = now + ttlMs;
  db.run('UPDATE tape SET epoch = @epoch WHERE id = @id', { epoch, id: tape.id });
  crashPoint('lease/epoch');
  db.run(
    `INSERT INTO lease (tape_id, owner, epoch, pid, pid_start, boot_id, host, expires_at)
       VALUES (@id, @owner, @epoch, @pid, @start, @boot, @host, @expiresAt)
       ON CONFLICT DO UPDATE SET owner = @owner, epoch = @epoch, pid = @pid, pid_start = @start, boot_id = @boot,
         host = @host, expires_at = @expiresAt`,
    {
      id: tape.id,
      owner: owner.id,
      epoch,
      expiresAt,
      pid: owner.pid ?? null,
      start: owner.pidStart ?? null,
      boot: owner.bootId ?? null,
      host: owner.host ?? null,
    },
  );
  crashPoint('lease/row');
  return { session: tape.name, id: tape.ulid, owner: owner.id, epoch, expiresAt };
}

/**
 * The heartbeat: the only thing that extends a lease.
 * @throws TAPE_FENCED when another owner has taken the session over.
 */
export function extendLease(
  db: Db,
  tape: TapeRow,
  { lease, now, ttlMs = leaseTtlMs }: { lease: Lease; now: number; ttlMs?: number | undefined },
): Lease {
  const expiresAt = now + ttlMs;
  const extended = db.run(
    'UPDATE lease SET expires_at = @expiresAt WHERE tape_id = @id AND owner = @owner AND epoch = @epoch',
    { id: tape.id, owner: lease.owner, epoch: lease.epoch, expiresAt },
  );
  if (extended === 0 || tape.epoch !== lease.epoch) throw fenced(tape.name);
  return { ...lease, expiresAt };
}

/**
 * Gives the lease back, unless the inbox holds something that can be done: then it is still the caller's, who drains and tries
 * again. The check and the release are one act, so nothing posted in between is stranded. The
 * epoch moves on, so that a lease given back can never write again.
 */
export function releaseLease(
  db: Db,
  tape: TapeRow,
  lease: Lease,
  { inputs = false }: { inputs?: boolean | undefined } = {},
): boolean {
  if (tape.epoch !== lease.epoch) throw fenced(tape.name);
  if (inboxWaits(db, tape, inputs)) return false;
  db.run('DELETE FROM lease WHERE tape_id = @id AND owner = @owner', { id: tape.id, owner: lease.owner });
  crashPoint('lease/row-gone');
  db.run('UPDATE tape SET epoch = epoch + 1 WHERE id = @id', { id: tape.id });
  crashPoint('lease/epoch-moved');
  return true;
}

/**
 * Whether the inbox holds something that can be done now: while calls are open, merges stay where they are; what is
 * for runs counts for an owner that runs.
 */
function inboxWaits(db: Db, tape: TapeRow, inputs: boolean): boolean {
  const settled = tape.settled_seq === tape.head_seq ? 1 : 0;
  return (
    db.get(
      `SELECT 1 FROM inbox WHERE tape_id = @id AND CASE body ->> '$.type'
         WHEN 'append' THEN 1 WHEN 'merge' THEN @settled = 1 ELSE @inputs = 1 END LIMIT 1`,
      { id: tape.id, settled, inputs: inputs ? 1 : 0 },
    ) !== undefined
  );
}

/**
 * The epoch under which an act may write a tape: the lease's own, or, for an act without a lease, the next one,
 * which fences whoever let a lease run out.
 * @throws TAPE_FENCED, TAPE_BUSY
 */
export function writeEpoch(
  db: Db,
  tape: TapeRow,
  { lease, now }: { lease?: Lease | undefined; now: number },
): number {
  if (lease !== undefined) {
    if (lease.id !== tape.ulid)
      throw new TypeError(`a lease on '${lease.session}' cannot write '${tape.name}'`);
    if (tape.epoch !== lease.epoch) throw fenced(tape.name);
    return tape.epoch;
  }
  assertIdle(db, tape, now);
  return tape.epoch + 1;
}

/** @throws TAPE_BUSY while somebody is writing a tape. */
export function assertIdle(db: Db, tape: TapeRow, now: number): void {
  const held = liveLease(db, tape.id, now);
  if (held !== undefined) throw busy(tape.name, held);
}

function busy(session: string, held: LeaseRow): TapeError {
  const who =
    held.pid === null ? `owner ${held.owner}` : `process ${held.pid} on ${held.host ?? 'this host'}`;
  return new TapeError('TAPE_BUSY', `cannot write '${session}': ${who} is writing it`, {
    data: { session, owner: ownerOf(held), expiresAt: held.expires_at },
  });
}

export function fenced(session: string): TapeError {
  return new TapeError('TAPE_FENCED', `cannot write '${session}': another owner has taken it over`, {
    data: { session },
  });
}
