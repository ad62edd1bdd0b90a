import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Whether the database of a home has no log with content, or the one that is recorded. SQLite takes the content of a
 * log into the database, also of one that came with `git pull`.
 */
export function isOwnLog(record        , home        )          {
  const journal = statSync(join(home, 'tape.db-journal'), { throwIfNoEntry: false });
  if ((journal?.size ?? 0) > 0) return false;
  const log = logIn(home);
  return log === undefined || log.isEmpty || log.id === recordedIn(record);
}

/** Records the log that the database of a home has now. */
export function keepLog(record        , home        )       {
  const id = logIn(home)?.id;
  if (id !== undefined && id !== recordedIn(record)) writeFileSync(record, id, { mode: 0o600 });
}

function logIn(home        )                                                                 {
  const stat = statSync(join(home, 'tape.db-wal'), { bigint: true, throwIfNoEntry: false });
  return stat && { id: `${stat.ino} ${stat.birthtimeNs}`, isEmpty: stat.size === 0n };
}

function recordedIn(file        )                     {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
