import type { Clock } from '../clock.ts';
import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import { TapeError } from '../errors.ts';
import { isThisBoot, type Owner, type OwnerRow, ownerOf, provablyDead } from '../owner.ts';
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
  /** When it expires on the clock of the owner's boot; null without such a clock. */
  readonly expires_up: number | null;
}

/** How long a lease lives without a heartbeat, in milliseconds. */
export const leaseTtlMs = 30_000;

/** Returns the live lease of a tape: one that is not expired and whose owner is not provably dead. */
export function liveLease(db: Db, tapeId: number, clock: Clock): LeaseRow | undefined {
  const row = db.get<LeaseRow>('SELECT * FROM lease WHERE tape_id = @tapeId', { tapeId });
  return row !== undefined && isLive(row, clock) ? row : undefined;
}

/** Whether a lease is not expired, and its owner not provably dead. */
export function isLive(row: LeaseRow, clock: Clock): boolean {
  return !isExpired(row, clock) && !provablyDead(ownerOf(row));
}

/**
 * Whether a lease has expired. On the owner's boot the clock since the boot decides, which no one can set; on another,
 * or on another machine, the time of day.
 */
function isExpired(row: LeaseRow, clock: Clock): boolean {
  const uptime = row.expires_up !== null && isThisBoot(row.boot_id) ? clock.uptime() : undefined;
  if (row.expires_up !== null && uptime !== undefined) return row.expires_up <= uptime;
  return row.expires_at <= clock.now();
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
export function liveOwners(db: Db, clock: Clock): SessionOwner[] {
  return db
    .all<LeaseRow & { name: string; ulid: string }>(
      `SELECT lease.*, tape.name, tape.ulid FROM lease JOIN tape ON tape.id = lease.tape_id
         ORDER BY tape_id`,
    )
    .filter((row) => isLive(row, clock))
    .map((row) => ({ session: row.name, id: row.ulid, owner: ownerOf(row), epoch: row.epoch }));
}

/**
 * Takes the lease of a tape, also from a dead or expired owner.
 * @throws TAPE_BUSY, with the owner in `data`
 */
export function acquireLease(
  db: Db,
  tape: TapeRow,
  { owner, clock, ttlMs = leaseTtlMs }: { owner: Owner; clock: Clock; ttlMs?: number | undefined },
): Lease {
  assertIdle(db, tape, clock);
  const epoch = tape.epoch + 1;
  const { expiresAt, expiresUp } = endOf(ttlMs, clock);
  db.run('UPDATE tape SET epoch = @epoch WHERE id = @id', { epoch, id: tape.id });
  crashPoint('lease/epoch');
  db.run(
    `INSERT INTO lease
         (tape_id, owner, epoch, pid, pid_start, boot_id, pid_ns, host, expires_at, expires_up)
       VALUES (@id, @owner, @epoch, @pid, @start, @boot, @namespace, @host, @expiresAt, @expiresUp)
       ON CONFLICT (tape_id) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch, pid = excluded.pid,
         pid_start = excluded.pid_start, boot_id = excluded.boot_id, pid_ns = excluded.pid_ns, host = excluded.host,
         expires_at = excluded.expires_at, expires_up = excluded.expires_up`,
    {
      id: tape.id,
      owner: owner.id,
      epoch,
      expiresAt,
      expiresUp,
      pid: owner.pid ?? null,
      start: owner.pidStart ?? null,
      boot: owner.bootId ?? null,
      namespace: owner.pidNamespace ?? null,
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
  { lease, clock, ttlMs = leaseTtlMs }: { lease: Lease; clock: Clock; ttlMs?: number | undefined },
): Lease {
  const { expiresAt, expiresUp } = endOf(ttlMs, clock);
  if (tape.epoch !== lease.epoch) throw fenced(tape.name);
  db.must(
    `UPDATE lease SET expires_at = @expiresAt, expires_up = @expiresUp
       WHERE tape_id = @id AND owner = @owner AND epoch = @epoch`,
    { id: tape.id, owner: lease.owner, epoch: lease.epoch, expiresAt, expiresUp },
    () => fenced(tape.name),
  );
  return { ...lease, expiresAt };
}

/** When a lease ends that lives for some milliseconds, on both clocks; one without a limit at the last time there is. */
function endOf(ttlMs: number, clock: Clock): { expiresAt: number; expiresUp: number | null } {
  const after = (time: number) => Math.min(Math.ceil(time + ttlMs), Number.MAX_SAFE_INTEGER);
  const uptime = clock.uptime();
  return { expiresAt: after(clock.now()), expiresUp: uptime === undefined ? null : after(uptime) };
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
  endLease(db, tape.id, lease);
  return true;
}

/** Ends the lease of a tape, whatever its inbox has. */
export function endLease(db: Db, tapeId: number, { owner }: Lease): void {
  db.run('DELETE FROM lease WHERE tape_id = @id AND owner = @owner', { id: tapeId, owner });
  crashPoint('lease/row-gone');
  db.run('UPDATE tape SET epoch = epoch + 1 WHERE id = @id', { id: tapeId });
  crashPoint('lease/epoch-moved');
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
         WHEN 'append' THEN true WHEN 'merge' THEN @settled = 1
         WHEN 'input' THEN @inputs = 1 WHEN 'answer' THEN @inputs = 1 WHEN 'abort' THEN @inputs = 1 ELSE false END LIMIT 1`,
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
  tape: Pick<TapeRow, 'id' | 'ulid' | 'name' | 'epoch'>,
  { lease, clock }: { lease?: Lease | undefined; clock: Clock },
): number {
  if (lease !== undefined) {
    if (lease.id !== tape.ulid)
      throw new TypeError(`a lease on '${lease.session}' cannot write '${tape.name}'`);
    if (tape.epoch !== lease.epoch) throw fenced(tape.name);
    return tape.epoch;
  }
  assertIdle(db, tape, clock);
  return tape.epoch + 1;
}

/** @throws TAPE_BUSY while the tape has a live lease */
export function assertIdle(db: Db, tape: Pick<TapeRow, 'id' | 'name'>, clock: Clock): void {
  const held = liveLease(db, tape.id, clock);
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
