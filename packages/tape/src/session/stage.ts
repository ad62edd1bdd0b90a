import { crashPoint } from '../crash-point.ts';
import type { Encoded } from '../entry/encode.ts';
import type { Entry } from '../entry/entry.ts';
import { parseName, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { recordLineage } from '../lineage/outbox.ts';
import { repetitions, type Writer, writeEncoded } from '../tape/append.ts';
import { entryAt } from '../tape/read.ts';
import { selectTape, type TapeRow, tapeById, tapeByName } from '../tape/tape.ts';
import { eraseTapes, hasContent } from './erase.ts';
import { assertFree } from './names.ts';
import { createRoot, type SessionInit } from './session.ts';

/** Properties of a staged session. */
export interface StageInit extends SessionInit {
  /**
   * Keys of all entries to import. An unfinished import of this name is continued only if its keys are among
   * them.
   */
  readonly keys?: readonly string[];
}

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

/** Whether a tape `t` is staged, and can be written and published: an import that is discarded first loses its first entry. */
const isStaged = `t.lifecycle = 'staging'
  AND EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq = t.base_seq + 1 AND payload IS NOT NULL)`;

/** Whether a tape `t` is staged, and has content, which of one that was discarded is left where the process was killed. */
export const isUnfinished: string = `t.lifecycle = 'staging' AND EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND ${hasContent})`;

/** Whether another session has taken the name of a staged tape `t` since. */
export const isSuperseded: string = `EXISTS (SELECT 1 FROM tape o
  WHERE o.realm = t.realm AND o.name = t.name AND o.id > t.id AND o.lifecycle <> 'staging')`;

/**
 * Creates a staged session: written in many transactions, invisible until one last transaction publishes it
 * with its lineage, so that an import is complete or absent. Staging the same name again continues after a
 * crash; the keys of the entries prevent duplicates.
 * @throws TAPE_BAD_NAME, TAPE_EXISTS
 */
export function stageTape(writer: Writer, realm: string, name: string, init: StageInit = {}): TapeRow {
  parseName(name);
  const existing = tapeByName(writer.db, realm, name);
  const isOpen = existing?.lifecycle === 'staging' && stagedIn(writer, existing.ulid) !== undefined;
  if (isOpen && isBegunBy(writer, existing, init.keys)) return existing;
  if (existing !== undefined && existing.lifecycle !== 'staging')
    throw new TapeError('TAPE_EXISTS', `cannot import into ${quote(name)}: the session exists`, {
      data: { session: name },
    });
  assertFree(writer, realm, name);
  return createRoot(writer, realm, name, init, 'staging');
}

/**
 * Returns whether all entries of a staged tape belong to this import. Another import's remains are left
 * alone.
 */
function isBegunBy({ db }: Writer, staged: TapeRow, keys: readonly string[] | undefined): boolean {
  if (keys === undefined) return true;
  const known = new Set(keys.map((key) => `u:${key}`));
  return db
    .all<{ key: string }>('SELECT key FROM entry WHERE tape_id = @id AND key IS NOT NULL', { id: staged.id })
    .every(({ key }) => known.has(key));
}

/** Returns a staged session by its ULID, unless it was discarded. */
function stagedIn({ db }: Pick<Writer, 'db'>, id: string): TapeRow | undefined {
  return db.get<TapeRow>(`${selectTape} WHERE t.ulid = @id AND ${isStaged}`, { id });
}

/** @throws TAPE_NO_SESSION */
function getStaged(writer: Writer, id: string): TapeRow {
  const staged = stagedIn(writer, id);
  if (staged === undefined) throw notStaged(id);
  return staged;
}

function notStaged(id: string): TapeError {
  return new TapeError('TAPE_NO_SESSION', `cannot find staged session ${quote(id)}`, {
    data: { session: id },
  });
}

export function appendStaged(
  writer: Writer,
  id: string,
  drafts: readonly Encoded[],
): ReturnType<typeof writeEncoded> {
  const tape = getStaged(writer, id);
  return writeEncoded(writer, tape, drafts, {
    epoch: tape.epoch,
    repeated: repetitions(writer, tape, drafts),
  });
}

/**
 * Makes staged sessions visible, each with its lineage line, in the caller's transaction. Publishing again
 * changes nothing.
 */
export function publishTapes(writer: Writer, ids: readonly string[]): TapeRow[] {
  return ids.map((id) => {
    const published = writer.db.get<{ id: number }>(
      `SELECT id FROM tape WHERE ulid = @id AND lifecycle <> 'staging'`,
      { id },
    );
    if (published !== undefined) return tapeById(writer.db, published.id);
    const staged = getStaged(writer, id);
    if (tapeByName(writer.db, staged.realm, staged.name)?.id !== staged.id)
      throw new TapeError(
        'TAPE_EXISTS',
        `cannot publish ${quote(staged.name)}: another session has taken the name`,
        {
          data: { session: staged.name },
        },
      );
    writer.db.run(`UPDATE tape SET lifecycle = 'active' WHERE id = @id`, { id: staged.id });
    crashPoint('publish/visible');
    const tape = tapeById(writer.db, staged.id);
    recordLineage(writer, tape, { type: 'session', childHead: tape.head_hash });
    crashPoint('publish/lineage');
    return tape;
  });
}

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
 * Erases content of a staged session, in the caller's transaction, and returns of how many entries: of all that are left, or of
 * as many as one transaction should. From the first time on it can no longer be written or published.
 * @throws TAPE_NO_SESSION for what was never staged, TAPE_EXISTS for what is published
 */
export function discardSome(
  writer: Writer,
  id: string,
): { readonly erased: number; readonly isDone: boolean } {
  const { db } = writer;
  const tape = db.get<TapeRow>(`${selectTape} WHERE t.ulid = @id`, { id });
  if (tape === undefined) throw notStaged(id);
  if (tape.lifecycle !== 'staging')
    throw new TapeError('TAPE_EXISTS', `cannot discard the import of ${quote(tape.name)}: it is published`, {
      data: { session: tape.name, id },
    });
  const left = db.get(`SELECT 1 FROM tape t WHERE t.id = @id AND ${isUnfinished}`, { id: tape.id });
  if (left === undefined) return { erased: 0, isDone: true };
  // Its calls have no results, and get none.
  db.run('DELETE FROM open_calls WHERE tape_id = @id', { id: tape.id });
  db.run('UPDATE tape SET settled_seq = head_seq WHERE id = @id', { id: tape.id });
  const erasing = { tape: tapeById(db, tape.id), epoch: tape.epoch };
  const erased = eraseTapes(writer, [erasing], { reason, most: discardMax });
  return { erased, isDone: erased < discardMax };
}
