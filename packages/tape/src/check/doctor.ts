import type { Sources } from '../clock.ts';
import type { Db } from '../db/db.ts';
import { tapeName } from '../entry/name.ts';
import { erasedAt } from '../history/wipe.ts';
import { indexedTo, newestId } from '../search/text-index.ts';
import { isSuperseded, isUnfinished } from '../session/discard.ts';
import { isLive, type LeaseRow } from '../tape/lease.ts';
import { refIn, type TapeRow } from '../tape/tape.ts';
import { viewVersions } from '../view/select.ts';

/**
 * Something left over or out of date that is no damage: a leftover of a crash, a projection to rebuild, or a record
 * that this build cannot compare.
 */
export interface Finding {
  readonly code:
    | 'stale-lease'
    | 'inbox-waiting'
    | 'staging-left'
    | 'search-ahead'
    | 'content-left'
    | 'views-unproved';
  readonly session: string | null;
  readonly message: string;
  /** Whether `mend` can repair it; for the others the user decides. */
  readonly fixable: boolean;
}

/** What the findings need of a session. */
interface Named {
  readonly ulid: string;
  readonly realm: string;
  readonly name: string;
  readonly incarnation: number;
  readonly lifecycle: TapeRow['lifecycle'];
}

/**
 * Finds what is left over or out of date, in all realms. A session of another realm than the given one is referred to
 * by its id, and its tape name is in the message. Writes nothing.
 */
export function* examine(db: Db, realm: string, sources: Sources): Generator<Finding> {
  const leases = db.all<LeaseRow & Named>(
    'SELECT l.*, t.ulid, t.realm, t.name, t.incarnation, t.lifecycle FROM lease l JOIN tape t ON t.id = l.tape_id ORDER BY l.tape_id',
  );
  for (const lease of leases)
    if (!isLive(lease, sources))
      yield finding(
        'stale-lease',
        refIn(realm, lease),
        `process ${lease.pid ?? 'unknown'} did not release the lease of '${shownIn(realm, lease)}'`,
      );
  const waiting = db.all<Named & { acts: number; messages: number }>(
    `SELECT t.ulid, t.realm, t.name, t.incarnation, t.lifecycle, count(*) FILTER (WHERE i.body ->> '$.type' IN ('append', 'merge')) AS acts,
         count(*) FILTER (WHERE i.body ->> '$.type' IN ('input', 'answer')) AS messages
       FROM inbox i JOIN tape t ON t.id = i.tape_id
       WHERE json_valid(i.body) AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.tape_id = t.id) GROUP BY t.id ORDER BY t.id`,
  );
  for (const { acts, messages, ...tape } of waiting) {
    const ref = refIn(realm, tape);
    const name = shownIn(realm, tape);
    if (acts > 0)
      yield finding(
        'inbox-waiting',
        ref,
        `${acts === 1 ? '1 item waits' : `${acts} items wait`} in the inbox of '${name}', which has no owner`,
      );
    if (messages > 0)
      yield {
        ...finding(
          'inbox-waiting',
          ref,
          `${messages === 1 ? '1 message waits' : `${messages} messages wait`} in the inbox of '${name}' for a run`,
        ),
        fixable: false,
      };
  }
  for (const tape of db.all<Named & { taken: 0 | 1 }>(
    `SELECT t.ulid, t.realm, t.name, t.incarnation, t.lifecycle, ${isSuperseded} AS taken
       FROM tape t WHERE ${isUnfinished} ORDER BY t.id`,
  )) {
    const name = shownIn(realm, tape);
    const isTaken = tape.taken === 1;
    const message = isTaken
      ? `an import of '${name}' that is not finished left entries that nothing shows: another session has the name`
      : `the import of '${name}' is not finished: import it again`;
    yield { ...finding('staging-left', refIn(realm, tape), message), fixable: isTaken };
  }
  yield* unprovedViews(db, realm);
  if (indexedTo(db) > newestId(db))
    yield finding('search-ahead', null, 'the search index has entries that the tapes do not have');
  const erased = erasedAt(db);
  if (erased !== undefined)
    yield finding('content-left', null, `the file may still have bytes of what was erased at ${erased}`);
}

/** Finds sessions with recorded views of other rules than those of this build: `verifyViews` leaves them out. */
function* unprovedViews(db: Db, realm: string): Generator<Finding> {
  const tapes = db.all<Named & { n: number; versions: string }>(
    `SELECT t.ulid, t.realm, t.name, t.incarnation, t.lifecycle, count(*) AS n, json_group_array(DISTINCT CAST(v.version AS TEXT)) AS versions
       FROM (${viewsIn('meta', '$.view')} UNION ALL ${viewsIn('payload', '$.view')} AND e.kind = 'event'
         UNION ALL ${viewsIn('payload', '$.state.asked')} AND e.kind = 'anchor') v
       JOIN tape t ON t.id = v.tape_id 
       WHERE coalesce(CAST(v.version AS TEXT), '') NOT IN (${viewVersions.map((one) => `'${one}'`).join(', ')})
       GROUP BY t.id ORDER BY t.id`,
  );
  for (const { n, versions, ...tape } of tapes) {
    const views = n === 1 ? '1 view' : `${n} views`;
    const made = [...new Set((JSON.parse(versions) as unknown[]).map((one) => String(one ?? 'none')))].sort();
    yield {
      ...finding(
        'views-unproved',
        refIn(realm, tape),
        `${views} of '${shownIn(realm, tape)}' by other rules (version ${made.join(', ')}) cannot be compared; this build has ${viewVersions.join(' and ')}`,
      ),
      fixable: false,
    };
  }
}

/** The versions of the manifests at a path of a column; without a digest, as in the copy of a log, none can be compared. */
function viewsIn(column: 'meta' | 'payload', path: string): string {
  const key = path.split('.').at(-1);
  return `SELECT e.tape_id, e.${column} ->> '${path}.version' AS version FROM entry e
    WHERE instr(e.${column}, '"${key}":{') > 0 AND json_valid(e.${column}) AND json_type(e.${column}, '${path}.digest') = 'text'`;
}

function shownIn(realm: string, tape: Named): string {
  return tape.realm === realm ? tape.name : tapeName(tape.realm, tape.name, tape.incarnation);
}

function finding(code: Finding['code'], session: string | null, message: string): Finding {
  return { code, session, message, fixable: true };
}
