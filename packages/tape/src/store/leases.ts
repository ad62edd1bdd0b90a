import type { Owner } from '../owner.ts';
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

/** Makes `store.leases`. */
export function leasesOn(at: Connection): InProcess<Leases> {
  const { db } = at;
  return {
    acquire(ref: Ref, owner: Owner, o: LeaseOptions = {}): Lease {
      assertOptions(o, fieldsOf['leases.acquire'], 'take the lease of', at.named(ref));
      assertArgument(owner, 'object', 'take a lease', 'the owner');
      assertArgument(owner.id, 'text', 'take a lease', 'the id of the owner');
      return db.write(() => acquireLease(db, at.need(ref), { owner, now: at.now(), ttlMs: o.ttlMs }));
    },

    extend(lease: Lease, o: LeaseOptions = {}): Lease {
      assertArgument(lease, 'object', 'extend a lease', 'the lease');
      assertOptions(o, fieldsOf['leases.acquire'], 'extend the lease of', lease.session);
      return db.write(() => extendLease(db, at.need(lease.id), { lease, now: at.now(), ttlMs: o.ttlMs }));
    },

    holds(lease: Lease): boolean {
      assertArgument(lease, 'object', 'check a lease', 'the lease');
      return at.need(lease.id).epoch === lease.epoch;
    },

    list(): readonly SessionOwner[] {
      return liveOwners(db, at.now());
    },

    release(lease: Lease, o: ReleaseOptions = {}): boolean {
      assertArgument(lease, 'object', 'release a lease', 'the lease');
      assertOptions(o, fieldsOf['leases.release'], 'release the lease of', lease.session);
      return db.write(() => releaseLease(db, at.need(lease.id), lease, o));
    },
  };
}
