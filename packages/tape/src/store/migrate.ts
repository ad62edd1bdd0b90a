import { lstatSync, rmSync } from 'node:fs';
import { rebuildBatches } from '../check/doctor.ts';
import { TapeError } from '../errors.ts';
import { dropDraft, keepDraft, newDraft } from '../sqlite/draft-file.ts';
import { cannotOpen } from '../sqlite/place.ts';
import { applicationId, openCallsTable, schemaVersion, tables, triggers } from '../sqlite/schema.ts';
import { Db } from '../sqlite/sqlite.ts';
import type { TapeRow } from '../tape/tape.ts';

/**
 * The schema version of a file, or that it is new. Writes nothing (M1).
 * @throws TAPE_NOT_A_TAPE, TAPE_SCHEMA_NEWER
 */
export function versionOf(db: Db, path: string): number | 'new' {
  const version = Number(db.pragma('user_version'));
  const application = Number(db.pragma('application_id'));
  if (application === 0 && version === 0 && db.get('SELECT 1 FROM sqlite_schema LIMIT 1') === undefined)
    return 'new';
  if (application !== applicationId)
    throw new TapeError('TAPE_NOT_A_TAPE', `cannot open '${path}': it is another program's database`);
  if (version < 0)
    throw new TapeError('TAPE_CORRUPT', `cannot open '${path}': there is no schema ${version}`);
  if (version > schemaVersion)
    throw new TapeError(
      'TAPE_SCHEMA_NEWER',
      `cannot open '${path}': it is at schema ${version}, and this build knows ${schemaVersion}`,
      { data: { found: version, known: schemaVersion } },
    );
  return version;
}

/**
 * Makes the tables of a new file, or brings an older one up to date, in one immediate transaction that looks at the
 * version again: of all processes that find it old, one changes it (R16). Before that it is copied to
 * `tape.db.schema-N`; the lock is held meanwhile, so the copy is what was changed, and nothing less.
 */
export function migrate(db: Db, path: string): void {
  let copy: string | undefined;
  db.write(() => {
    const version = versionOf(db, path);
    if (version === schemaVersion) return;
    if (version === 'new') db.exec(tables + triggers);
    else {
      // Tried again, because a reader was in the way without a log: one copy is enough.
      if (copy !== undefined) rmSync(copy);
      copy = copyBefore(path, version);
      upgrade(db, path, version);
    }
    db.pragma(`application_id = ${applicationId}`);
    db.pragma(`user_version = ${schemaVersion}`);
  });
}

/** @throws TAPE_CORRUPT when the file is not what its version says; the transaction leaves it as it was. */
function upgrade(db: Db, path: string, version: number): void {
  try {
    for (let step = version; step < schemaVersion; step += 1) steps[step]?.(db);
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    throw new TapeError(
      'TAPE_CORRUPT',
      `cannot bring '${path}' from schema ${version} to ${schemaVersion}: ${(cause as Error).message}`,
      { cause },
    );
  }
}

/** What turns each older schema into the next. Entries are never touched. */
const steps: Readonly<Record<number, (db: Db) => void>> = {
  // Open calls were found by reading a tape's end, and nothing kept bytes from being replaced.
  0: (db) => {
    for (const { name } of db.all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`))
      db.exec(`DROP TRIGGER "${name}"`);
    db.exec(openCallsTable + triggers);
    for (const tape of db.all<TapeRow>('SELECT * FROM tape')) rebuildBatches(db, tape);
  },
};

/**
 * A copy under its own name, whole or not there; a name that is taken holds what an earlier try copied.
 * @throws TAPE_CANNOT_OPEN, TAPE_IO
 */
function copyBefore(path: string, version: number): string | undefined {
  if (path === ':memory:') return undefined;
  let file = `${path}.schema-${version}`;
  for (let n = 2; lstatSync(file, { throwIfNoEntry: false }) !== undefined; n += 1)
    file = `${path}.schema-${version}.${n}`;
  let draft: string | undefined;
  try {
    draft = newDraft(file);
    const source = new Db(path, { readonly: true });
    try {
      source.run('VACUUM INTO @draft', { draft });
    } finally {
      source.close();
    }
    keepDraft(draft, file);
    return file;
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    throw cannotOpen(path, `it cannot be copied before it is changed: ${(cause as Error).message}`, cause);
  } finally {
    if (draft !== undefined) dropDraft(draft);
  }
}
