import { parsed } from '../entry/parsed.ts';
import { type Owner, processOwner, stateOf } from '../owner.ts';
import type { Writer } from '../tape/append.ts';
import type { TapeRow } from '../tape/tape.ts';

/**
 * Which process writes a staged session, as a row of `home`: it says of one that was killed that it will not finish what it staged.
 */

/** Notes that this process writes a staged session, in the caller's transaction. */
export function noteProcess({ db }: Pick<Writer, 'db'>, { ulid }: Pick<TapeRow, 'ulid'>): void {
  db.run(
    'INSERT INTO home (key, value) VALUES (@key, @value) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    {
      key: keyOf(ulid),
      value: JSON.stringify(processOwner('import')),
    },
  );
}

/** Removes the note, since nothing more is written. */
export function removeProcess({ db }: Pick<Writer, 'db'>, { ulid }: Pick<TapeRow, 'ulid'>): void {
  db.run('DELETE FROM home WHERE key = @key', { key: keyOf(ulid) });
}

const prefix = 'import:';

/** Selects the ids of the sessions that have a note. */
export const withProcess: string = `SELECT substr(key, ${prefix.length + 1}) FROM home WHERE substr(key, 1, ${prefix.length}) = '${prefix}'`;

/** How long after its last write a process counts as running of which this machine can tell nothing, in milliseconds. */
const trustMs = 30_000;

/** Whether the process that writes a staged session may go on with it. */
export function isRunning(
  { db, sources }: Writer,
  { ulid, updated_at }: Pick<TapeRow, 'ulid' | 'updated_at'>,
): boolean {
  const { value = null } =
    db.get<{ value: string }>('SELECT value FROM home WHERE key = @key', { key: keyOf(ulid) }) ?? {};
  const state = stateOf(parsed(value) as Omit<Owner, 'id'>);
  return state === 'unknown' ? sources.now() - updated_at < trustMs : state !== 'ended';
}

function keyOf(ulid: string): string {
  return `${prefix}${ulid}`;
}
