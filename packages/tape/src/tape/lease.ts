import { crashPoint } from '../crash-point.ts';
import { TapeError } from '../errors.ts';
import { type Owner, type OwnerRow, ownerOf, provablyDead } from '../owner.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { TapeRow } from './tape.ts';

/**
 * The right to write a session, for a run or a single write. Time only decides when another owner may take it
 * over; the epoch, checked inside every append, keeps a superseded owner from writing.
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

/** How long a lease lives without a heartbeat, in milliseconds. */
export const leaseTtlMs = 30_000;

/** Returns the live lease of a tape: one that is not expired and whose owner is not provably dead. */
export function liveLease(db: Db, tapeId: number, now: number): LeaseRow | undefined {
  const row = db.get<LeaseRow>('SELECT * FROM lease WHERE tape_id = @tapeId', { tapeId });
  if (row === undefined || row.expires_at <= now) return undefined;
  return provablyDead(ownerOf(row)) ? undefined : row;
}

/** The owner of a session's lease. */
export interface SessionOwner {
  readonly session: string;
  /** ULID of the session. */
  readonly id: string;
  readonly owner: Owner;
  readonly epoch: number;
}

/** Returns the owners of all live leases, in order of creation of their sessions. */
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
 * Takes the lease of a tape, also from a dead or expired owner.
 * @throws TAPE_BUSY, with the owner in `data`
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
 * Heartbeat: extends a lease. No other call does.
 * @throws TAPE_FENCED when another owner has taken the session over
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
 * Releases a lease, unless the inbox has items that can be drained now: then it returns false, and the caller
 * drains and tries again. Check and release are one transaction, so no posted item is missed. The epoch
 * rises, so that a released lease can never write again.
 * @throws TAPE_FENCED
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
 * Returns whether the inbox has items that can be drained now. Merges wait while calls are open; items for
 * runs count only with `inputs`. Items of a type that only another version knows stay in the inbox.
 */
function inboxWaits(db: Db, tape: TapeRow, inputs: boolean): boolean {
  const settled = tape.settled_seq === tape.head_seq ? 1 : 0;
  return (
    db.get(
      `SELECT 1 FROM inbox WHERE tape_id = @id AND CASE body ->> '$.type'
         WHEN 'append' THEN 1 WHEN 'merge' THEN @settled = 1
         WHEN 'input' THEN @inputs = 1 WHEN 'answer' THEN @inputs = 1 WHEN 'abort' THEN @inputs = 1 ELSE 0 END LIMIT 1`,
      { id: tape.id, settled, inputs: inputs ? 1 : 0 },
    ) !== undefined
  );
}

/**
 * Returns the epoch to write a tape under: the lease's own or, without a lease, the next one, which fences an
 * owner whose lease has expired.
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

/** @throws TAPE_BUSY while the tape has a live lease */
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

/** Makes the error of a write under a lease that another owner has taken over. */
export function fenced(session: string): TapeError {
  return new TapeError('TAPE_FENCED', `cannot write '${session}': another owner has taken it over`, {
    data: { session },
  });
}
