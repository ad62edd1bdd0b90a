import type { Db } from '../db/db.ts';
import { isUlid, isWorkerName, nearNames, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { hasNames, type Ref, selectTape, type TapeRow, tapeById, tapeByName } from './tape.ts';

/** Returns the session of a reference; undefined for a session that is still being imported. */
export function findTape(db: Db, realm: string, ref: Ref): TapeRow | undefined {
  const row = lookUp(db, realm, ref);
  return row?.lifecycle === 'staging' ? undefined : row;
}

/**
 * Returns the session that a whole reference names: `worker:{ULID}` first, so that no name of an old home takes its
 * place; then a name, `name~n`, an alias, and a ULID. A deleted session is found by its ULID alone.
 */
export function findNamed(db: Db, realm: string, ref: Ref): TapeRow | undefined {
  // Plain JavaScript can pass anything, which is the name of no session. A server keeps no text with U+0000.
  if (typeof ref !== 'string' || ref.includes('\0')) return undefined;
  if (isUlid(ref)) {
    const alone = tapeByUlidAlone(db, realm, ref);
    if (alone !== undefined) return alone;
  }
  const worker = isWorkerName(ref) ? tapeByUlid(db, ref.slice('worker:'.length)) : undefined;
  if (worker !== undefined) return worker;
  const byName = tapeByName(db, realm, ref);
  if (byName !== undefined) return byName;
  const incarnation = /^(.+)~([1-9]\d*)$/.exec(ref);
  if (incarnation !== null)
    return db.get<TapeRow>(
      `${selectTape} WHERE t.realm = @realm AND t.name = @name AND t.incarnation = @incarnation AND t.${hasNames}`,
      { realm, name: incarnation[1] ?? '', incarnation: Number(incarnation[2]) },
    );
  const aliased = db.get<{ tape_id: number }>(
    'SELECT tape_id FROM alias WHERE realm = @realm AND alias = @ref',
    { realm, ref },
  );
  if (aliased !== undefined) return tapeById(db, aliased.tape_id);
  return isUlid(ref) ? tapeByUlid(db, ref) : undefined;
}

/** The session of a ULID, unless an old home has a session or an alias of that name. */
function tapeByUlidAlone(db: Db, realm: string, id: string): TapeRow | undefined {
  return db.get<TapeRow>(
    `${selectTape} WHERE t.ulid = @id AND NOT EXISTS (SELECT 1 FROM tape WHERE realm = @realm AND name = @id AND ${hasNames})
       AND NOT EXISTS (SELECT 1 FROM alias WHERE realm = @realm AND alias = @id)`,
    { realm, id },
  );
}

function tapeByUlid(db: Db, id: string): TapeRow | undefined {
  return db.get<TapeRow>(`${selectTape} WHERE t.ulid = @id`, { id });
}

function lookUp(db: Db, realm: string, ref: Ref): TapeRow | undefined {
  const named = findNamed(db, realm, ref);
  if (named !== undefined || typeof ref !== 'string' || isUlid(ref)) return named;
  if (!/^[0-7][0-9A-HJKMNP-TV-Z]{5,25}$/i.test(ref)) return undefined;
  const from = ref.toUpperCase();
  const found = db.all<TapeRow>(
    `${selectTape} WHERE t.ulid >= @from AND t.ulid < @end AND t.${hasNames} LIMIT 2`,
    {
      from,
      end: `${from}[`,
    },
  );
  return found.length === 1 ? found[0] : undefined;
}

/**
 * Returns the session of a reference.
 * @throws TAPE_NO_SESSION with the nearest names in `data`
 */
export function getTape(db: Db, realm: string, ref: Ref): TapeRow {
  const row = findTape(db, realm, ref);
  if (row !== undefined) return row;
  if (typeof ref !== 'string')
    throw new TapeError('TAPE_NO_SESSION', `cannot find session ${String(ref)}: it is not a text`);
  const gone = goneOf(db, realm, ref);
  if (gone !== undefined) {
    const { ulid, lifecycle } = gone;
    const [was, data] =
      lifecycle === 'purged' ? ['purged', { purged: ulid }] : ['deleted', { deleted: ulid }];
    throw new TapeError('TAPE_NO_SESSION', `cannot find session ${quote(ref)}: it was ${was}`, {
      data: { session: ref, near: [], ...data },
    });
  }
  const near = nearNames(ref, nameCandidates(db, realm, ref));
  throw new TapeError('TAPE_NO_SESSION', `cannot find session ${quote(ref)}: no such name, alias or id`, {
    data: { session: ref, near },
  });
}

interface Gone {
  readonly ulid: string;
  readonly lifecycle: 'destroyed' | 'purged';
}

/** How many of the newest sessions are looked at for another name that they had: no index finds it. */
const newestGone = 5_000;

/**
 * The last session of a name that was deleted, and can be brought back; without one, the last that was purged. Of the
 * newest sessions also one that had it as another name.
 */
function goneOf(db: Db, realm: string, name: string): Gone | undefined {
  return (
    db.get<Gone>(
      `SELECT ulid, lifecycle FROM tape WHERE realm = @realm AND name = @name AND lifecycle IN ('destroyed', 'purged')
         ORDER BY lifecycle = 'purged', incarnation DESC LIMIT 1`,
      { realm, name },
    ) ??
    db.get<Gone>(
      `SELECT t.ulid, t.lifecycle FROM (SELECT * FROM tape WHERE realm = @realm ORDER BY id DESC LIMIT @newest) t
         JOIN lineage l ON l.tape_id = t.id AND l.type = 'alias'
         WHERE t.lifecycle IN ('destroyed', 'purged') AND l.line ->> '$.alias' = @name
         ORDER BY t.lifecycle = 'purged', l.g DESC LIMIT 1`,
      { realm, name, newest: newestGone },
    )
  );
}

/**
 * Returns names to compare with a mistyped one: a bounded number, so that a typing error causes no full scan.
 */
function nameCandidates(db: Db, realm: string, ref: string): string[] {
  const rows = db.all<{ name: string }>(
    `SELECT name FROM tape WHERE realm = @realm AND lifecycle NOT IN ('staging', 'destroyed', 'purged')
       AND length(name) BETWEEN @length - 12 AND @length + 12 LIMIT 5000`,
    { realm, length: ref.length },
  );
  return rows.map((row) => row.name);
}
