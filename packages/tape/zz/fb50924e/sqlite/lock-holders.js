import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';

/** A process that holds the write lock of a database. */
                             
                       
                                                    
                            
 

/** The bytes of the `-shm` file that writing, checkpoints and recovery lock: https://sqlite.org/walformat.html#locks */
const writeBytes = { from: 120, to: 122 };

/**
 * Returns the processes that hold the write lock of a database now, with a lease or without. Linux tells them in
 * `/proc/locks`, except those of PID namespaces that this process cannot see; elsewhere the list is empty.
 */
export function lockHolders(file        )                        {
  try {
    const pids = locksIn(readFileSync('/proc/locks', 'utf8'))
      .filter(({ inode, from, to }) => {
        if (inode === inodeOf(`${file}-shm`)) return from <= writeBytes.to && to >= writeBytes.from;
        return inode === inodeOf(file);
      })
      .map(({ pid }) => pid);
    return [...new Set(pids)].filter((pid) => pid > 0).map(holderOf);
  } catch {
    return [];
  }
}

/** An exclusive lock of bytes of a file. */
                    
                       
                                                                   
                         
                        
                      
 

/** Parses lines such as `1: POSIX  ADVISORY  WRITE 4711 fe:00:2146911 120 120`: see proc_locks(5). Pure. */
function locksIn(text        )                      {
  return text.split('\n').flatMap((line) => {
    const [, , , kind, pid, inode = '', from, to] = line.trim().split(/\s+/);
    if (kind !== 'WRITE') return [];
    return [{ pid: Number(pid), inode, from: Number(from), to: to === 'EOF' ? Infinity : Number(to) }];
  });
}

/** The device and inode number of a file, as `/proc/locks` writes them; undefined without the file. */
function inodeOf(file        )                     {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  const { dev, ino } = stat;
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
  return `${hex(major)}:${hex(minor)}:${ino}`;
}

function hex(number        )         {
  return number.toString(16).padStart(2, '0');
}

function holderOf(pid        )             {
  try {
    // The first argument alone: others may hold secrets.
    const [program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return { pid, ...(program !== '' && { program: basename(program) }) };
  } catch {
    return { pid };
  }
}
