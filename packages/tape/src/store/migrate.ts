import { lstatSync, rmSync } from 'node:fs';
import { ulid } from 'ulid';
import { rebuildBatches } from '../check/calls.ts';
import { rebuildConversation } from '../check/conversation.ts';
import { rebuildUsage } from '../check/usage.ts';
import { TapeError } from '../errors.ts';
import type { OnProgress } from '../progress.ts';
import { dropDraft, keepDraft, newDraft } from '../sqlite/draft-file.ts';
import { cannotOpen } from '../sqlite/place.ts';
import {
  applicationId,
  bundleTables,
  indexesOf3,
  linkIndex,
  openCallsTable,
  openRunTable,
  schemaVersion,
  tables,
  tapeColumnsOf4,
  triggers,
  usageTable,
} from '../sqlite/schema.ts';
import { SqliteDb } from '../sqlite/sqlite.ts';
import { isRunOpen, saveRun } from '../tape/open-run.ts';
import type { TapeRow } from '../tape/tape.ts';
import { nameHome, toSchema2 } from './schema-2.ts';
import { versionOf } from './version.ts';

/**
 * Creates the tables of a new file, or upgrades an older one, in one immediate transaction. It reads the
 * version again there, so one process alone upgrades. An older file is first copied to `tape.db.schema-N`,
 * under the same lock, so the copy is exactly what the upgrade changed.
 */
export function migrate(
  db: SqliteDb,
  path: string,
  { homeId = ulid(), onUpgrade }: { homeId?: string | undefined; onUpgrade?: OnProgress | undefined } = {},
): void {
  let copy: string | undefined;
  db.write(() => {
    const version = versionOf(db, path);
    if (version === schemaVersion) return;
    if (version === 'new') {
      db.exec(tables + triggers);
      nameHome(db, homeId);
    } else {
      // A retry after a reader blocked the commit (without a WAL): one copy is enough.
      if (copy !== undefined) rmSync(copy);
      const tell = teller(db, version, onUpgrade);
      copy = copyBefore(path, version);
      upgrade(db, path, { version, homeId, tell });
    }
    db.pragma(`application_id = ${applicationId}`);
    db.pragma(`user_version = ${schemaVersion}`);
  });
}

/** @throws TAPE_CORRUPT when the file does not match its version; the transaction then rolls back */
function upgrade(
  db: SqliteDb,
  path: string,
  { version, homeId, tell }: { readonly version: number; readonly homeId: string; readonly tell: () => void },
): void {
  try {
    // The triggers of today name columns that an older schema lacks; they would stop the steps too.
    dropTriggers(db);
    for (let step = version; step < schemaVersion; step += 1) steps[step]?.(db, homeId, tell);
    db.exec(triggers);
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    throw new TapeError(
      'TAPE_CORRUPT',
      `cannot upgrade '${path}' from schema ${version} to ${schemaVersion}: ${(cause as Error).message}`,
      { cause },
    );
  }
}

/** Begins to report on an upgrade, and makes the function that a step calls after each session. */
function teller(db: SqliteDb, version: number, onUpgrade: OnProgress | undefined): () => void {
  const { total = 0 } = db.get<{ total: number }>('SELECT count(*) AS total FROM tape') ?? {};
  const rounds = rereading.filter((step) => step >= version).length;
  let calls = 0;
  onUpgrade?.({ done: 0, total });
  return () => {
    calls += 1;
    onUpgrade?.({ done: Math.floor(calls / rounds), total });
  };
}

function dropTriggers(db: SqliteDb): void {
  for (const { name } of db.all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`))
    db.exec(`DROP TRIGGER "${name.replaceAll('"', '""')}"`);
}

/** The steps that read what each session has. */
const rereading = [0, 2, 3];

/** Upgrades each older schema to the next, without its triggers. Entries are never changed. */
const steps: Readonly<Record<number, (db: SqliteDb, homeId: string, tell: () => void) => void>> = {
  // Schema 0 had no table of open calls, and no triggers that protect blobs.
  0: (db, _, tell) => {
    db.exec(openCallsTable);
    for (const tape of db.all<TapeRow>('SELECT * FROM tape')) {
      rebuildBatches(db, tape);
      tell();
    }
  },
  1: toSchema2,
  2: (db, _, tell) => {
    db.exec(openRunTable + usageTable + indexesOf3);
    for (const tape of db.all<{ id: number }>('SELECT id FROM tape')) {
      saveRun(db, tape.id, isRunOpen(db, tape.id));
      rebuildUsage(db, tape);
      tell();
    }
  },
  3: (db, _, tell) => {
    for (const column of tapeColumnsOf4) db.exec(`ALTER TABLE tape ADD COLUMN ${column}`);
    for (const tape of db.all<{ id: number }>('SELECT id FROM tape')) {
      rebuildConversation(db, tape);
      tell();
    }
  },
  4: (db) => db.exec(bundleTables),
  5: (db) => db.exec(linkIndex),
};

/**
 * Copies the file under a new name, completely or not at all. An existing name holds the copy of an earlier
 * attempt.
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
    const source = new SqliteDb(path, { readonly: true });
    try {
      source.run('VACUUM INTO @draft', { draft });
    } finally {
      source.close();
    }
    keepDraft(draft, file);
    return file;
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    throw cannotOpen(path, `it cannot be copied before the upgrade: ${(cause as Error).message}`, cause);
  } finally {
    if (draft !== undefined) dropDraft(draft);
  }
}
