import type { Entry } from '../entry/entry.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from '../tape/append.ts';
import { entryAt } from '../tape/read.ts';
import { selectTape, type TapeRow, tapeById } from '../tape/tape.ts';
import type { ErasedEntry } from '../tape/written.ts';
import { type Erasure, eraseTapes, hasContent } from './erase.ts';
import { isRunning, removeProcess, withProcess } from './import-process.ts';
import { notStaged } from './stage.ts';

/** A staged session: an import writes it, or left it when it was killed. */
export interface UnfinishedImport {
  /** Its id, for `append`, `publish` and `discard`. */
  readonly id: string;
  /** The name that it has once it is published. */
  readonly session: string;
  /** The base of its realm. */
  readonly realm: string;
  readonly title?: string;
  /** How many entries were appended. */
  readonly entries: number;
  /** The first of them, by which an import can know its own. */
  readonly first?: Entry;
}

/** Whether a tape `t` is staged, and has content, which of one that was discarded is left where the process was killed. */
export const isUnfinished: string = `t.lifecycle = 'staging' AND EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND ${hasContent})`;

/** Whether another session has taken the name of a staged tape `t` since. */
export const isSuperseded: string = `EXISTS (SELECT 1 FROM tape o
  WHERE o.realm = t.realm AND o.name = t.name AND o.id > t.id AND o.lifecycle <> 'staging')`;

/** Selects unfinished imports. */
export interface UnfinishedQuery {
  /** Those of one name. */
  readonly session?: string | undefined;
  /** Those of all realms (default: of the realm of the store). */
  readonly allRealms?: boolean | undefined;
}

/** The sessions that are staged, in the order in which they were begun. */
export function unfinishedImports(
  { db }: Pick<Writer, 'db'>,
  realm: string,
  { session, allRealms = false }: UnfinishedQuery = {},
): readonly UnfinishedImport[] {
  const staged = db.all<TapeRow>(
    `${selectTape} WHERE ${isUnfinished} ${allRealms ? '' : 'AND t.realm = @realm'}
       ${session === undefined ? '' : 'AND t.name = @session'} ORDER BY t.id`,
    { realm, session: session ?? null },
  );
  return staged.map((tape) => {
    const first = entryAt(db, tape, tape.base_seq + 2);
    return {
      ...{ id: tape.ulid, session: tape.name, realm: tape.realm },
      ...(tape.title !== null && { title: tape.title }),
      entries: tape.head_seq - tape.base_seq - 1,
      ...(first !== undefined && { first }),
    };
  });
}

/** The ids of what imports left under a name that another session has by now, or with an id, in the order of their beginning. */
export function supersededImports({ db }: Pick<Writer, 'db'>, realm: string, ref: string): readonly string[] {
  return db
    .all<{ id: string }>(
      `SELECT t.ulid AS id FROM tape t WHERE (t.ulid = @ref OR (t.realm = @realm AND t.name = @ref))
         AND ${isUnfinished} AND ${isSuperseded} ORDER BY t.id`,
      { realm, ref },
    )
    .map(({ id }) => id);
}

/** Why the entries of a discarded import have no content. */
const reason = 'its import was not finished';

/** How many entries of a discarded import lose their content at once: others can write in between. */
const discardMax = 20_000;

/**
 * Erases content of a staged session, in the caller's transaction: of all entries that are left, or of as many as one
 * transaction should. From the first time on it can no longer be written or published.
 * @param wipe whether the file is to be written anew
 * @throws TAPE_NO_SESSION for what was never staged, TAPE_EXISTS for what is published
 */
export function discardSome(
  writer: Writer,
  id: string,
  { wipe = true }: { readonly wipe?: boolean | undefined },
): Erasure {
  const { db } = writer;
  const tape = db.get<TapeRow>(`${selectTape} WHERE t.ulid = @id`, { id });
  if (tape === undefined) throw notStaged(id);
  if (tape.lifecycle !== 'staging')
    throw new TapeError('TAPE_EXISTS', `cannot discard the import of ${quote(tape.name)}: it is published`, {
      data: { session: tape.name, id },
    });
  const left = db.get(`SELECT 1 FROM tape t WHERE t.id = @id AND ${isUnfinished}`, { id: tape.id });
  if (left === undefined) return { erased: 0, isWhole: true };
  // Its calls have no results, and get none.
  db.run('DELETE FROM open_calls WHERE tape_id = @id', { id: tape.id });
  db.run('UPDATE tape SET settled_seq = head_seq WHERE id = @id', { id: tape.id });
  const erasing = { tape: tapeById(db, tape.id), epoch: tape.epoch };
  const done = eraseTapes(writer, [erasing], { reason, wipe, most: discardMax });
  if (done.isWhole) removeProcess(writer, erasing.tape);
  return done;
}

/**
 * Finds the unfinished imports of all realms which are not finished any more, since their process has ended, and those that have a copy of
 * an entry that was erased, by its key or by when its source said it, which begin anew: undefined stands for any entry.
 */
export function importsWithout(
  writer: Writer,
  erased: readonly ErasedEntry[] | undefined,
): readonly string[] {
  const { db } = writer;
  const keys = erased?.flatMap(({ key }) => key ?? []) ?? [];
  const times =
    erased?.flatMap(({ was: { timestamp } }) => (typeof timestamp === 'string' ? timestamp : [])) ?? [];
  const hasCopy = ({ id }: TapeRow) =>
    erased === undefined ||
    db.get(
      `SELECT 1 FROM entry WHERE tape_id = @id AND (key IN (SELECT value FROM json_each(@keys))
         OR meta ->> '$.timestamp' IN (SELECT value FROM json_each(@times))) LIMIT 1`,
      { id, keys: JSON.stringify(keys), times: JSON.stringify(times) },
    ) !== undefined;
  return db
    .all<TapeRow>(`${selectTape} WHERE t.ulid IN (${withProcess}) AND ${isUnfinished}`)
    .filter((tape) => !isRunning(writer, tape) || hasCopy(tape))
    .map(({ ulid }) => ulid);
}
