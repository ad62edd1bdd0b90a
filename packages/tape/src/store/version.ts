import { TapeError } from '../errors.ts';
import { applicationId, schemaVersion } from '../sqlite/schema.ts';
import type { SqliteDb } from '../sqlite/sqlite.ts';

interface Identity {
  readonly version: number;
  readonly application: number;
  readonly isEmpty: 0 | 1;
}

/** One statement, and so one snapshot: another process may be creating the tables between two. */
const identity = `SELECT user_version AS version, application_id AS application,
  NOT EXISTS (SELECT 1 FROM sqlite_schema) AS isEmpty FROM pragma_user_version, pragma_application_id`;

/**
 * Returns the schema version of a file, or `new` for an empty one. Writes nothing.
 * @throws TAPE_NOT_A_TAPE, TAPE_SCHEMA_NEWER, TAPE_CORRUPT
 */
export function versionOf(db: SqliteDb, path: string): number | 'new' {
  const { version, application, isEmpty } = db.get<Identity>(identity) as Identity;
  if (application === 0 && version === 0 && isEmpty === 1) return 'new';
  if (application !== applicationId)
    throw new TapeError('TAPE_NOT_A_TAPE', `cannot open '${path}': it is the database of another program`);
  if (version < 0)
    throw new TapeError('TAPE_CORRUPT', `cannot open '${path}': ${version} is not a schema version`);
  if (version > schemaVersion)
    throw new TapeError(
      'TAPE_SCHEMA_NEWER',
      `cannot open '${path}': it has schema ${version}, and this build reads up to ${schemaVersion}`,
      { data: { found: version, known: schemaVersion } },
    );
  return version;
}
