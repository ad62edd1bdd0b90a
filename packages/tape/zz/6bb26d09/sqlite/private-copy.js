import { spawnSync } from 'node:child_process';
import {
                   
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { TapeError } from '../errors.js';
import { lockWaitDefault, pause } from './lock-wait.js';
import { cannotOpen } from './place.js';

/** A copy of a database in a directory of its own. */
                              
                        
                                                                                         
                              
 

/** The database and what belongs to it: its log, or the journal of an interrupted transaction. */
const suffixes = ['', '-wal', '-journal'];
/** How long a process tries to get a copy of a database that changes, in milliseconds, as long as it waits for a lock. */
const patience = lockWaitDefault;

/**
 * Copies a database and its log to a new directory of this user under the system's directory for temporary files,
 * again while another process changes the database.
 * @throws TAPE_CANNOT_OPEN, TAPE_IO when there is no room, TAPE_LOCKED when it changes all the time
 */
export function privateCopy(file        )              {
  const dir = mkdtempSync(join(tmpdir(), 'tapedeck-read-'));
  const remove = () => rmSync(dir, { recursive: true, force: true });
  try {
    const deadline = performance.now() + patience;
    do {
      const before = stateOf(file);
      copyInto(dir, file);
      if (stateOf(file) === before) return { path: join(dir, basename(file)), remove };
      remove();
      mkdirSync(dir, { mode: 0o700 });
      pause(Math.random() * 50);
    } while (performance.now() < deadline);
    throw new TapeError('TAPE_LOCKED', `cannot read '${file}': another process writes it all the time`, {
      data: { holders: [], processes: [] },
    });
  } catch (error) {
    remove();
    throw error;
  }
}

/**
 * What changes when a checkpoint writes the database, or the log begins again. A log that only grew is whole up to the
 * last transaction that was copied.
 */
function stateOf(file        )         {
  const of = (stat                         ) => stat && [stat.ino, stat.size, stat.mtimeNs].join();
  return [of(statIf(file)), of(statIf(`${file}-journal`)), beginningOf(`${file}-wal`)].join(';');
}

function statIf(path        )                          {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

/** The header of a log, with the salts that each new beginning changes. */
function beginningOf(wal        )         {
  if (statIf(wal) === undefined) return '';
  const header = Buffer.alloc(32);
  const fd = openSync(wal, 'r');
  try {
    readSync(fd, header);
  } finally {
    closeSync(fd);
  }
  return header.toString('hex');
}

/**
 * Copies files, as another process: if this one closed a file that SQLite has open here, all locks on it would go.
 * @throws TAPE_CANNOT_OPEN, and TAPE_IO when there is no room
 */
function copyInto(dir        , file        )       {
  const from = suffixes.map((suffix) => file + suffix).filter((path) => statIf(path) !== undefined);
  const { status, stderr, error } = spawnSync('cp', ['-f', '--', ...from, dir], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
  });
  if (error !== undefined) throw cannotOpen(file, `it cannot be copied: ${error.message}`, error);
  if (/No space left/.test(stderr))
    throw new TapeError('TAPE_IO', `cannot read '${file}': there is no room for a copy in '${tmpdir()}'`);
  if (/Permission denied/.test(stderr)) throw cannotOpen(file, 'permission denied');
  if (status !== 0) throw cannotOpen(file, `it cannot be copied: ${stderr.trim()}`);
  for (const path of from) chmodSync(join(dir, basename(path)), 0o600);
}
