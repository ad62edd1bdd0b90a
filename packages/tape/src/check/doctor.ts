import type { Sources } from '../clock.ts';
import { isObject, type Json } from '../entry/json.ts';
import { ownerOf, provablyDead } from '../owner.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { LeaseRow } from '../tape/lease.ts';
import { nextBatch, type OpenBatch, saveBatch } from '../tape/open-calls.ts';
import type { TapeRow } from '../tape/tape.ts';

/**
 * Something left over or out of date that is no damage: a leftover of a crash, or a projection to rebuild.
 */
export interface Finding {
  readonly code: 'stale-lease' | 'inbox-waiting' | 'staging-left' | 'open-calls-differ' | 'search-ahead';
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
  for (const tape of db.all<TapeRow>('SELECT * FROM tape ORDER BY id'))
    if (!sameBatches(db, tape))
      yield finding(
        'open-calls-differ',
        tape.name,
        `the recorded open calls of '${tape.name}' differ from its entries`,
      );
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

interface BatchRow {
  readonly from_seq: number;
  readonly to_seq: number | null;
  readonly calls: string;
}

function sameBatches(db: Db, tape: TapeRow): boolean {
  // The calls of a redacted message cannot be read any more: the recorded ones are the only source.
  const redacted = db.get(
    `SELECT 1 FROM entry WHERE tape_id = @id AND mark = 'redaction' AND mark IN ('boundary','rewind','redaction') LIMIT 1`,
    { id: tape.id },
  );
  if (redacted !== undefined) return true;
  const noted = db.all<BatchRow>(
    'SELECT from_seq, to_seq, calls FROM open_calls WHERE tape_id = @id ORDER BY from_seq',
    { id: tape.id },
  );
  const found = new Map<number, BatchRow>();
  for (const { seq, was, now } of batchSteps(db, tape)) {
    const from = (now ?? was)?.from ?? seq;
    const to = now === undefined ? seq - 1 : null;
    found.set(from, { from_seq: from, to_seq: to, calls: JSON.stringify(now?.calls ?? []) });
  }
  return JSON.stringify(noted) === JSON.stringify([...found.values()]);
}

/** Rebuilds a tape's rows in `open_calls` from its entries, in the caller's transaction. */
export function rebuildBatches(db: Db, tape: TapeRow): void {
  db.run('DELETE FROM open_calls WHERE tape_id = @id', { id: tape.id });
  for (const { seq, was, now } of batchSteps(db, tape)) saveBatch(db, tape.id, seq, { was, now });
}

/** Yields every entry of a tape that opens or closes calls, with the batch before and after it. */
function* batchSteps(
  db: Db,
  tape: TapeRow,
): Generator<{ seq: number; was: OpenBatch | undefined; now: OpenBatch | undefined }> {
  let batch: OpenBatch | undefined;
  for (let after = tape.base_seq; ; ) {
    const rows = db.all<{ seq: number; kind: 'message'; payload: string | null }>(
      `SELECT seq, kind, payload FROM entry WHERE tape_id = @id AND seq > @after
         AND kind IN ('message', 'tool-result', 'rewind') ORDER BY seq LIMIT 500`,
      { id: tape.id, after },
    );
    for (const { seq, kind, payload } of rows) {
      const value: Json = payload === null ? null : (JSON.parse(payload) as Json);
      const now = nextBatch(batch, { seq, kind, payload: isObject(value) ? value : {} });
      if (now !== batch) yield { seq, was: batch, now };
      batch = now;
    }
    if (rows.length < 500) return;
    after = rows.at(-1)?.seq ?? after;
  }
}
