import { TapeError } from '../errors.ts';
import type { Owner } from '../owner.ts';
import { continueIndex } from '../search/text-index.ts';
import {
  acquireLease,
  extendLease,
  type Lease,
  liveOwners,
  releaseLease,
  type SessionOwner,
} from '../tape/lease.ts';
import type { Ref } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import {
  assertArgument,
  assertOptions,
  fieldsOf,
  type LeaseOptions,
  type ReleaseOptions,
} from './options.ts';
import type { Leases } from './store.ts';

/**
 * Makes `store.leases`. A lease dies with the machine: its writes do not wait for the disk. The entries that are written
 * under it do, and with them the lease.
 */
export function leasesOn(at: Connection): InProcess<Leases> {
  const { db } = at;
  return {
    acquire(ref: Ref, owner: Owner, o: LeaseOptions = {}): Lease {
      assertOptions(o, fieldsOf['leases.acquire'], 'take the lease of', at.named(ref));
      assertArgument(owner, 'object', 'take a lease', 'the owner');
      assertOwner(owner);
      return db.writeBehind(() => acquireLease(db, at.need(ref), { owner, clock: at.clock, ttlMs: o.ttlMs }));
    },

    extend(lease: Lease, o: LeaseOptions = {}): Lease {
      assertLease(lease, 'extend a lease');
      assertOptions(o, fieldsOf['leases.acquire'], 'extend the lease of', lease.session);
      return db.writeBehind(() =>
        extendLease(db, at.need(lease.id), { lease, clock: at.clock, ttlMs: o.ttlMs }),
      );
    },

    holds(lease: Lease): boolean {
      assertLease(lease, 'check a lease');
      return at.need(lease.id).epoch === lease.epoch;
    },

    list(): readonly SessionOwner[] {
      return liveOwners(db, at.clock);
    },

    release(lease: Lease, o: ReleaseOptions = {}): boolean {
      assertLease(lease, 'release a lease');
      assertOptions(o, fieldsOf['leases.release'], 'release the lease of', lease.session);
      const released = db.writeBehind(() => releaseLease(db, at.need(lease.id), lease, o));
      if (released) continueIndex(db);
      return released;
    },
  };
}

/** @throws TAPE_BAD_OPTION for an owner that a lease cannot store as it is */
function assertOwner(owner: Owner): void {
  assertOptions(owner, fieldsOf.owner, 'take a lease for the owner', () => String(owner.id));
  assertArgument(owner.id, 'text', 'take a lease', 'the id of the owner');
  const isStorable = Object.values(owner).every(
    (value) => typeof value !== 'string' || (value.isWellFormed() && !value.includes('\0')),
  );
  if (owner.id === '' || !isStorable)
    throw new TapeError(
      'TAPE_BAD_OPTION',
      'cannot take a lease: the owner has an empty id, or a text that is not valid',
      {
        data: { near: [] },
      },
    );
}

/** @throws TAPE_BAD_OPTION for what is no lease */
function assertLease(lease: Lease, act: string): void {
  assertArgument(lease, 'object', act, 'the lease');
  assertOptions(lease, fieldsOf.lease, act);
  assertArgument(lease.id, 'text', act, 'the id of the lease');
  assertArgument(lease.owner, 'text', act, 'the owner of the lease');
  assertArgument(lease.epoch, 'count', act, 'the epoch of the lease');
}
