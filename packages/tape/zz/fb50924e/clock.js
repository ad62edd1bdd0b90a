import { randomBytes } from 'node:crypto';
import { monotonicFactory } from 'ulid';

/** The clocks that decide whether a lease has expired. */
                        
                                      
                             
     
                                                                                                                     
                                                                                                                               
     
                                            
 

/** Sources of time, ids and randomness; tests replace them with fixed ones. */
                                        
                    
                               
                                                 
                                  
 

/** Sources on this machine's clock and random generator; `given` replaces some of them. */
export function systemSources(given                  )          {
  const now = given.now ?? Date.now;
  return {
    now,
    uptime: given.uptime ?? (given.now === undefined ? monotonic : () => undefined),
    newId: given.newId ?? newIds(now),
    salt: given.salt ?? salts(),
  };
}

/**
 * Makes ULIDs in order. The factory's own source of randomness is WebCrypto, which takes 3 ms to load; this one takes a
 * byte for each of the 32 letters' places, and 32 divides 256.
 */
function newIds(now              )               {
  const take = pooledBytes();
  const next = monotonicFactory(() => (take(1)[0] ?? 0) / 256);
  return () => next(now());
}

/** The system's monotonic clock, which stands still while the machine sleeps, as heartbeats do. */
function monotonic()         {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** Makes salts of 16 bytes. */
function salts()                   {
  const take = pooledBytes();
  return () => take(16);
}

/** A call to `randomBytes` costs ten times what 16 of its bytes do, so each call draws many. */
function pooledBytes()                                {
  let pool = new Uint8Array();
  return (count) => {
    if (pool.length < count) pool = randomBytes(4096);
    const taken = pool.slice(0, count);
    pool = pool.subarray(count);
    return taken;
  };
}
