import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** The owner of a lease: enough to tell a dead process from a new one that reuses its process id. */
                        
                                                                                 
                      
                        
                                                                    
                             
                           
                                                                                                              
                                 
                         
 

/** The columns of a row that store an owner. */
                           
                         
                              
                                    
                                  
                                 
                               
 

export function ownerOf(row          )        {
  return {
    id: row.owner,
    ...(row.pid !== null && { pid: row.pid }),
    ...(row.pid_start !== null && { pidStart: row.pid_start }),
    ...(row.boot_id !== null && { bootId: row.boot_id }),
    ...(row.pid_ns !== null && { pidNamespace: row.pid_ns }),
    ...(row.host !== null && { host: row.host }),
  };
}

/**
 * Returns this process as an owner.
 *
 * @example
 * ```ts
 * import { openTapeStore, processOwner, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const lease = store.leases.acquire('main', processOwner('editor'));
 * store.entries.append('main', [user('Plan the release.')], { lease });
 * store.leases.release(lease);
 * ```
 */
export function processOwner(id        )        {
  const pidStart = startOf(process.pid);
  const bootId = currentBoot();
  const pidNamespace = currentNamespace();
  return {
    id,
    pid: process.pid,
    host: hostname(),
    ...(pidStart !== undefined && { pidStart }),
    ...(bootId !== undefined && { bootId }),
    ...(pidNamespace !== undefined && { pidNamespace }),
  };
}

/**
 * Returns whether an owner is certainly dead: it ran on this boot, in the PID namespace of this process, and its
 * process id is free or belongs to a process with another start time. In every other case the lease has to expire.
 */
export function provablyDead(owner                   )          {
  if (owner.pid === undefined || !isVisible(owner)) return false;
  if (!exists(owner.pid)) return true;
  const start = startOf(owner.pid);
  return owner.pidStart !== undefined && start !== undefined && start !== owner.pidStart;
}

/** Returns the state of the owner's process, as far as this machine can tell; `stopped` waits for SIGCONT. */
export function stateOf(owner                   )                                              {
  if (owner.pid === undefined || !isVisible(owner)) return 'unknown';
  if (provablyDead(owner)) return 'ended';
  const letter = statOf(owner.pid)?.[0];
  return letter === 'T' || letter === 't' ? 'stopped' : 'running';
}

/** Whether the process id of an owner is a number of this host, boot and namespace. Other systems have hosts alone. */
function isVisible({ bootId, pidNamespace, host }                   )          {
  return host === hostname() && bootId === currentBoot() && pidNamespace === currentNamespace();
}

/** Whether a boot id is that of this machine since it was started. */
export function isThisBoot(bootId                           )          {
  return typeof bootId === 'string' && bootId === currentBoot();
}

function exists(pid        )          {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error                         ).code !== 'ESRCH';
  }
}

/**
 * Start time of a process (field 22 of /proc/PID/stat), if the system provides it. A zombie counts as ended.
 */
function startOf(pid        )                     {
  const fields = statOf(pid);
  return fields?.[0] === 'Z' || fields?.[0] === 'X' ? 'ended' : fields?.[19];
}

/** The fields of /proc/PID/stat, from the state on. */
function statOf(pid        )                       {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

let namespace                    ;

function currentNamespace()                     {
  try {
    // `pid:[4026531836]`
    namespace ??= /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
  } catch {
    // Without it no process is certainly dead, and the lease has to expire.
  }
  return namespace;
}

let boot                    ;

function currentBoot()                     {
  try {
    boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Not Linux: process start times are unknown too, and the lease has to expire.
  }
  return boot;
}
