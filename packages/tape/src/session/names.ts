import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import { nameKey, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from '../tape/append.ts';
import { findTape } from '../tape/find.ts';
import { anchorExists } from '../tape/point.ts';
import { hasNames, type TapeRow, tapeByName } from '../tape/tape.ts';

/** Why a name cannot be given, and what has it. */
interface Taken {
  readonly why: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Returns what stands against a new name that no session has: an alias, a look-alike, or a point of a session. */
function takenBy(db: Db, realm: string, name: string): Taken | undefined {
  if (isAlias(db, realm, name)) return { why: 'it is an alias of another session', data: {} };
  const near = lookAlike(db, realm, name);
  if (near !== undefined)
    return {
      why: `it differs from '${near}' only by case or Unicode form`,
      data: { name, session: near, near: [near] },
    };
  const why = readsAsPoint(db, realm, name);
  return why === undefined ? undefined : { why, data: {} };
}

/** Rejects a new name that is an alias, looks like another name, or is a point of an existing session. */
export function assertFree({ db }: Writer, realm: string, name: string): void {
  const taken = takenBy(db, realm, name);
  if (taken !== undefined)
    throw new TapeError('TAPE_EXISTS', `cannot create ${quote(name)}: ${taken.why}`, { data: taken.data });
}

/** Whether nothing but a session of that very name stands against a new name. */
export function isFree(db: Db, realm: string, name: string): boolean {
  return takenBy(db, realm, name) === undefined;
}

/** Says which point of an existing session a name reads as; undefined when it reads as none. */
export function readsAsPoint(db: Db, realm: string, name: string): string | undefined {
  for (let at = name.lastIndexOf('@'); at > 0; at = name.lastIndexOf('@', at - 1)) {
    const tape = findTape(db, realm, name.slice(0, at));
    const point = name.slice(at + 1);
    if (tape === undefined) continue;
    if (/^\d+$/.test(point) || point === 'head' || anchorExists(db, tape, point))
      return `it reads as the point ${quote(point)} of session '${tape.name}'`;
  }
  return undefined;
}

/** Returns whether a name is an alias. */
export function isAlias(db: Db, realm: string, name: string): boolean {
  return db.get('SELECT 1 FROM alias WHERE realm = @realm AND alias = @name', { realm, name }) !== undefined;
}

/** Returns a name or alias in use that people would take for this one, though it is another. */
export function lookAlike(db: Db, realm: string, name: string): string | undefined {
  return db.get<{ name: string }>(
    `SELECT name FROM tape WHERE realm = @realm AND name_key = @key AND name <> @name AND lifecycle <> 'staging' AND ${hasNames}
       UNION ALL SELECT alias FROM alias WHERE realm = @realm AND name_key = @key AND alias <> @name LIMIT 1`,
    { realm, name, key: nameKey(name) },
  )?.name;
}

/** Gives a session an alias, as a line of the lineage says, in the caller's transaction. */
export function insertAlias(
  { db }: Writer,
  { id, realm }: Pick<TapeRow, 'id' | 'realm'>,
  { alias, reason, g }: GivenAlias,
): void {
  db.run(
    `INSERT INTO alias (realm, alias, name_key, tape_id, reason, g)
       VALUES (@realm, @alias, @nameKey, @id, @reason, @g)`,
    { realm, alias, nameKey: nameKey(alias), id, reason, g },
  );
}

/** An alias, and the line of the lineage that gave it. */
interface GivenAlias {
  readonly alias: string;
  readonly reason: string;
  readonly g: number;
}

/**
 * Frees the names of a session that is deleted, in the caller's transaction. The lineage keeps the lines that gave them:
 * `reclaimNames` reads them.
 */
export function freeNames({ db }: Writer, { id }: TapeRow): void {
  db.run('DELETE FROM alias WHERE tape_id = @id', { id });
  crashPoint('delete/names');
}

/**
 * Gives a deleted session its names again, all of them or none, in the caller's transaction.
 * @throws TAPE_EXISTS when something else has one of them now
 */
export function reclaimNames(writer: Writer, tape: TapeRow): void {
  const { db } = writer;
  const { ulid, realm, name } = tape;
  const refuse = (taken: string, { why, data }: Taken) =>
    new TapeError('TAPE_EXISTS', `cannot bring back '${ulid}' as ${quote(taken)}: ${why}`, {
      data: { ...data, deleted: ulid, name: taken },
    });
  for (const given of [{ alias: name }, ...aliasesGiven(db, tape)]) {
    // An import of the name that is not finished has it, too: it would hide the session.
    const other = tapeByName(db, realm, given.alias);
    const fault =
      other === undefined
        ? takenBy(db, realm, given.alias)
        : { why: 'another session has the name now', data: { session: other.name } };
    if (fault !== undefined) throw refuse(given.alias, fault);
    if ('g' in given) insertAlias(writer, tape, given);
  }
  crashPoint('delete/names-again');
}

/** The aliases that the lines of the lineage have given to a session, and not taken away. */
function aliasesGiven(db: Db, { id }: TapeRow): readonly GivenAlias[] {
  const lines = db.all<GivenAlias & { readonly type: string }>(
    `SELECT g, type, line ->> '$.alias' AS alias, coalesce(line ->> '$.reason', '') AS reason FROM lineage
       WHERE tape_id = @id AND type IN ('alias','unalias') ORDER BY g`,
    { id },
  );
  const given = new Map<string, GivenAlias>();
  for (const { type, alias, reason, g } of lines)
    if (type === 'alias') given.set(alias, { alias, reason, g });
    else given.delete(alias);
  return [...given.values()];
}
