import { createHash, randomUUID } from 'node:crypto';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
                                                
import { isOwnLog, keepLog } from './own-log.js';

/**
 * How a home became one of this user: `created` by a program of this user, `trusted` by the user, or `named`, such as
 * with `--home`, which consents to reading and writing it.
 */
                                                          

/** What this user's state directory records of one home. */
                             
                                   
                        
                                               
                        
                                                                     
                        
                                                                                                         
                         
                                
                                        
                      
                                
                                
                                                                                                       
                                 
                                                                
                           
 

/** Reads the records of a state directory, in the order of their paths. Skips what is no record. */
export function homeRecords(state        )                        {
  return filesIn(state)
    .flatMap((file) => parse(file) ?? [])
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * The record of the home at a path, as long as the database there is still the recorded file, without a log that others
 * put beside it.
 */
export function homeRecord(state        , dir        )                         {
  const path = realPath(dir);
  const record = parse(fileOf(state, path));
  if (record === undefined || record.path !== path) return undefined;
  const { file, born } = fileIn(path);
  const isSame = record.file === file && (record.born === undefined || record.born === born);
  const isKnown = record.consent === 'created' || isOwnLog(logsOf(state, path), path);
  return isSame && isKnown ? record : undefined;
}

/**
 * Records the log beside the database of a home that came from elsewhere, which a process of this user has opened: it
 * stays where the process is killed. Any other log can have come with the home later.
 */
export function recordLog(state        , dir        )       {
  const path = realPath(dir);
  const consent = parse(fileOf(state, path))?.consent;
  if (consent !== undefined && consent !== 'created') keepLog(logsOf(state, path), path);
}

/**
 * Records a home, in place of an earlier record of its path.
 * @throws a file system error when the state directory cannot be written
 */
export function recordHome(
  state        ,
  dir        ,
  fields                                            ,
)             {
  const path = realpathSync(dir);
  const record             = { path, ...fileIn(path), ...fields };
  const file = fileOf(state, path);
  // It makes no home directory for a user who has none.
  statSync(dirname(dirname(state)));
  mkdirSync(join(state, directory), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, `${JSON.stringify({ v: 1, ...record })}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
  recordLog(state, path);
  removeGone(state);
  return record;
}

/** Removes the record of a path; whether there was one. */
export function forgetHome(state        , dir        )          {
  const file = fileOf(state, realPath(dir));
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return false;
  rmSync(file);
  rmSync(logsOf(state, realPath(dir)), { force: true });
  return true;
}

/** The digest of the `config.yaml` of a home; null without one. */
export function configIn(dir        )                {
  const file = join(dir, 'config.yaml');
  try {
    if (!statSync(file).isFile()) return null;
    return createHash('sha256').update(readFileSync(file)).digest('hex');
  } catch {
    return null;
  }
}

const directory = 'homes';
/** How many records are kept of homes that may be gone, such as those of tests. */
const recordsMax = 1_000;

/** The greatest length of a file name that leaves room for what is added to it. */
const nameMax = 200;

/** The file of a path's record: its name is the path, or the digest of a long one. */
function fileOf(state        , path        )         {
  const name = encodeURIComponent(path.toWellFormed());
  // Node.js loads a digest in more time than most command lines take.
  const isShort = name.length <= nameMax;
  const file = isShort ? name : createHash('sha256').update(path).digest('hex').slice(0, 32);
  return join(state, directory, `${file}.json`);
}

function filesIn(state        )                    {
  const dir = join(state, directory);
  try {
    return readdirSync(dir).flatMap((name) => (name.endsWith('.json') ? [join(dir, name)] : []));
  } catch {
    return [];
  }
}

/** Removes the records of homes that are gone, once there are many. */
function removeGone(state        )       {
  const files = filesIn(state);
  if (files.length <= recordsMax) return;
  for (const file of files) {
    const path = parse(file)?.path;
    if (path === undefined || statSync(path, { throwIfNoEntry: false }) === undefined)
      for (const one of [file, file.replace(/json$/, 'log')]) rmSync(one, { force: true });
  }
}

/** A record; undefined for anything else, and for a file that other users can write. */
function parse(file        )                         {
  try {
    const { mode, uid } = statSync(file);
    const own = process.getuid?.() ?? uid;
    if ((uid !== own && uid !== 0) || (mode & 0o022) !== 0) return undefined;
    const { v, ...record } = JSON.parse(readFileSync(file, 'utf8'))                                        ;
    const { path, home, file: inode, elsewhere } = record;
    const isWhole =
      v === 1 &&
      [path, home, inode].every((field) => typeof field === 'string') &&
      [elsewhere.entries, elsewhere.inbox].every(Number.isInteger);
    return isWhole ? record : undefined;
  } catch {
    return undefined;
  }
}

function realPath(dir        )         {
  try {
    return realpathSync(dir);
  } catch {
    return dir;
  }
}

/** The recorded log of a home, beside its record. */
function logsOf(state        , path        )         {
  return fileOf(state, path).replace(/json$/, 'log');
}

function fileIn(path        )                                    {
  const stat = statSync(join(path, 'tape.db'), { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return { file: '' };
  const { ino, birthtimeNs, ctimeNs } = stat;
  // Where a file system does not know it, it is another time, which changes.
  const isKnown = birthtimeNs > 0n && birthtimeNs !== ctimeNs;
  return { file: ino.toString(), ...(isKnown && { born: birthtimeNs.toString() }) };
}
