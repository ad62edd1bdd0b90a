import { TapeError } from '../errors.js';
                                         
import { continueIndex } from '../search/text-index.js';
import {
  acquireLease,
  extendLease,
             
  liveOwners,
  releaseLease,
                    
} from '../tape/lease.js';
                                           
                                                  
                                                 
import {
  assertArgument,
  assertOptions,
  fieldsOf,
                    
                      
} from './options.js';
                                         

/** Makes `store.leases`. */
export function leasesOn(at            )                    {
  const { db } = at;
  return {
    acquire(ref     , owner       , o               = {})        {
      assertOptions(o, fieldsOf['leases.acquire'], 'take the lease of', at.named(ref));
      assertArgument(owner, 'object', 'take a lease', 'the owner');
      assertOwner(owner);
      return db.write(() => acquireLease(db, at.need(ref), { owner, clock: at.clock, ttlMs: o.ttlMs }));
    },

    extend(lease       , o               = {})        {
      assertLease(lease, 'extend a lease');
      assertOptions(o, fieldsOf['leases.acquire'], 'extend the lease of', lease.session);
      return db.write(() => extendLease(db, at.need(lease.id), { lease, clock: at.clock, ttlMs: o.ttlMs }));
    },

    holds(lease       )          {
      assertLease(lease, 'check a lease');
      return at.need(lease.id).epoch === lease.epoch;
    },

    list()                          {
      return liveOwners(db, at.clock);
    },

    release(lease       , o                 = {})          {
      assertLease(lease, 'release a lease');
      assertOptions(o, fieldsOf['leases.release'], 'release the lease of', lease.session);
      const released = db.write(() => releaseLease(db, at.need(lease.id), lease, o));
      if (released) continueIndex(db);
      return released;
    },
  };
}

/** @throws TAPE_BAD_OPTION for an owner that a lease cannot store as it is */
function assertOwner(owner       )       {
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
function assertLease(lease       , act        )       {
  assertArgument(lease, 'object', act, 'the lease');
  assertOptions(lease, fieldsOf.lease, act);
  assertArgument(lease.id, 'text', act, 'the id of the lease');
  assertArgument(lease.owner, 'text', act, 'the owner of the lease');
  assertArgument(lease.epoch, 'count', act, 'the epoch of the lease');
}
