import type { Sources } from '../clock.ts';
import { ownerOf, provablyDead } from '../owner.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { LeaseRow } from '../tape/lease.ts';

/**
 * Something left over or out of date that is no damage: a leftover of a crash, or a projection to rebuild.
 */
export interface Finding {
  readonly code: 'stale-lease' | 'inbox-waiting' | 'staging-left' | 'search-ahead';
  readonly session: string | null;
  readonly message: string;
  /** Whether `mend` can repair it; for the others the user decides. */
  readonly fixable: boolean;
}

/** Finds what is left over or out of date. Writes nothing. */
export function* examine(db: Db, sources: Sources): Generator<Finding> {
  const now = sources.now();
  const leases = db.all<LeaseRow & { name: string }>(
    'SELECT l.*, t.name FROM lease l JOIN tape t ON t.id = l.tape_id ORDER BY l.tape_id',
  );
  for (const { name, ...lease } of leases)
    if (lease.expires_at <= now || provablyDead(ownerOf(lease)))
      yield finding(
        'stale-lease',
        name,
        `process ${lease.pid ?? 'unknown'} did not release the lease of '${name}'`,
      );
  const waiting = db.all<{ name: string; acts: number; messages: number }>(
    `SELECT t.name, sum(i.body ->> '$.type' IN ('append', 'merge')) AS acts,
         sum(i.body ->> '$.type' IN ('input', 'answer')) AS messages
       FROM inbox i JOIN tape t ON t.id = i.tape_id
       WHERE NOT EXISTS (SELECT 1 FROM lease l WHERE l.tape_id = t.id) GROUP BY t.id ORDER BY t.id`,
  );
  for (const { name, acts, messages } of waiting) {
    if (acts > 0)
      yield finding(
        'inbox-waiting',
        name,
        `${acts} items wait in the inbox of '${name}', which has no owner`,
      );
    if (messages > 0)
      yield {
        ...finding('inbox-waiting', name, `${messages} messages wait in the inbox of '${name}' for a run`),
        fixable: false,
      };
  }
  for (const { name } of db.all<{ name: string }>(
    `SELECT name FROM tape WHERE lifecycle = 'staging' ORDER BY id`,
  ))
    yield {
      ...finding('staging-left', name, `the import of '${name}' is not finished: import it again`),
      fixable: false,
    };
  const indexed = Number(
    db.get<{ value: string }>(`SELECT value FROM home WHERE key = 'search'`)?.value ?? 0,
  );
  const newest = db.get<{ id: number | null }>('SELECT max(id) AS id FROM entry')?.id ?? 0;
  if (indexed > newest)
    yield finding('search-ahead', null, 'the search index has entries that the tapes do not have');
}

function finding(code: Finding['code'], session: string | null, message: string): Finding {
  return { code, session, message, fixable: true };
}
