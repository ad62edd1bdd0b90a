import { TapeError } from '../errors.js';
import { applicationId, schemaVersion } from '../sqlite/schema.js';
                                              

/**
 * Returns the schema version of a file, or `new` for an empty one. Writes nothing.
 * @throws TAPE_NOT_A_TAPE, TAPE_SCHEMA_NEWER, TAPE_CORRUPT
 */
export function versionOf(db    , path        )                 {
  const version = Number(db.pragma('user_version'));
  const application = Number(db.pragma('application_id'));
  if (application === 0 && version === 0 && db.get('SELECT 1 FROM sqlite_schema LIMIT 1') === undefined)
    return 'new';
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
