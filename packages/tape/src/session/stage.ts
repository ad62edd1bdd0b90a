import { crashPoint } from '../crash-point.ts';
import type { Encoded } from '../entry/encode.ts';
import { parseName, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { recordLineage } from '../lineage/outbox.ts';
import { repetitions, type Writer, writeEncoded } from '../tape/append.ts';
import { selectTape, type TapeRow, tapeById, tapeByName } from '../tape/tape.ts';
import { noteProcess, removeProcess } from './import-process.ts';
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

/** Whether a tape `t` is staged, and can be written and published: one that is discarded loses its first entry first. */
const isStaged = `t.lifecycle = 'staging'
  AND EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq = t.base_seq + 1 AND payload IS NOT NULL)`;

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
  if (isOpen && isBegunBy(writer, existing, init.keys)) return writtenHere(writer, existing);
  if (existing !== undefined && existing.lifecycle !== 'staging')
    throw new TapeError('TAPE_EXISTS', `cannot import into ${quote(name)}: the session exists`, {
      data: { session: name },
    });
  assertFree(writer, realm, name);
  return writtenHere(writer, createRoot(writer, realm, name, init, 'staging'));
}

function writtenHere(writer: Writer, tape: TapeRow): TapeRow {
  noteProcess(writer, tape);
  return tape;
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

export function notStaged(id: string): TapeError {
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
    removeProcess(writer, staged);
    crashPoint('publish/visible');
    const tape = tapeById(writer.db, staged.id);
    recordLineage(writer, tape, { type: 'session', childHead: tape.head_hash });
    crashPoint('publish/lineage');
    return tape;
  });
}
