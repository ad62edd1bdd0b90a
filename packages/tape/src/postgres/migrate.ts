import type { Pool } from 'pg';
import { TapeError } from '../errors.ts';
import type { Address } from './address.ts';
import { migrations } from './migrations.ts';

/**
 * Brings the schema of a home up to date, and makes it where it does not exist. Several processes can do so at once: one
 * works, the others wait.
 * @throws TAPE_SCHEMA_NEWER when a newer build has changed it; TAPE_SCHEMA_OLDER when the user may not change it
 */
export async function migrate(
  pool: Pool,
  { schema, shown }: Address,
  homeId: string | (() => string),
): Promise<void> {
  const known = await knownOf(pool, { schema, shown });
  if (known.isCurrent && known.hasId) return;
  if (!known.isCurrent) await bringUp(pool, { schema, shown }, known);
  await pool.query(`INSERT INTO home (key, value) VALUES ('id', $1) ON CONFLICT DO NOTHING`, [
    typeof homeId === 'string' ? homeId : homeId(),
  ]);
}

async function bringUp(
  pool: Pool,
  { schema, shown }: Pick<Address, 'schema' | 'shown'>,
  known: Known,
): Promise<void> {
  if (!known.isHome) await assertFree(pool, { schema, shown });
  // A schema is made once: all other processes do without what makes it.
  const { migrateToLatest } = await import('./migrator.ts');
  const error = await migrateToLatest(pool, schema);
  if (error === undefined) return;
  if (isNewer(error)) throw newer(shown, error);
  if (known.isHome && (error as { code?: unknown }).code === '42501') throw older(shown, error);
  if ((error as { code?: unknown }).code === '42P07')
    throw foreign(shown, 'it has tables that its migrations have not made', error);
  throw error;
}

/** The tables of a home, by which a schema of another program is known before anything is made in it. */
const tables = [...(migrations['0001'] ?? '').matchAll(/CREATE TABLE (\w+)/g)].map(([, name]) => name);

/** @throws TAPE_CANNOT_OPEN for a schema that another program has filled */
async function assertFree(pool: Pool, { schema, shown }: Pick<Address, 'schema' | 'shown'>): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
       WHERE nspname = $1 AND relname = ANY ($2) ORDER BY relname LIMIT 1`,
    [schema, tables],
  );
  const [taken] = rows;
  // Another process may have made the home since.
  if (taken !== undefined && (await knownOf(pool, { schema, shown })).made.length === 0)
    throw foreign(shown, `it has '${taken.name}' of another program`);
}

/** What a schema has of a home. */
interface Known {
  /** The migrations that were made in it. */
  readonly made: readonly string[];
  /** Whether the table of migrations is there. */
  readonly isHome: boolean;
  readonly isCurrent: boolean;
  readonly hasId: boolean;
}

/**
 * Refuses a schema that has no tapes, or, for reading, one of another version.
 * @throws TAPE_NOT_A_TAPE, TAPE_SCHEMA_OLDER, TAPE_SCHEMA_NEWER
 */
export async function assertMade(
  pool: Pool,
  { schema, shown }: Address,
  { isReading }: { readonly isReading: boolean },
): Promise<void> {
  const { made, isCurrent } = await knownOf(pool, { schema, shown });
  if (made.length === 0) throw new TapeError('TAPE_NOT_A_TAPE', `cannot open ${shown}: it has no tapes`);
  if (!isReading || isCurrent) return;
  if (!made.every((name) => Object.hasOwn(migrations, name))) throw newer(shown);
  throw new TapeError(
    'TAPE_SCHEMA_OLDER',
    `cannot read ${shown}: an older build made its schema; open it for writing to upgrade it`,
    { data: { server: shown, reason: 'older' } },
  );
}

/** Whether all migrations are made, and no others, and the home has its id. The migrator asks much more than this. */
async function knownOf(pool: Pool, { schema, shown }: Pick<Address, 'schema' | 'shown'>): Promise<Known> {
  try {
    const { rows } = await pool.query<{ names: string[] | null; id: string | null; least: string | null }>(
      `SELECT array_agg(name ORDER BY name) AS names, (SELECT value FROM home WHERE key = 'id') AS id,
         (SELECT value FROM home WHERE key = 'least') AS least FROM migration`,
    );
    const [{ names, id = null, least } = { names: null, least: null }] = rows;
    const made = names ?? [];
    return { made, isHome: true, isCurrent: isUsable(made, least), hasId: id !== null };
  } catch (error) {
    if ((error as { code?: unknown }).code === '42P01') {
      await assertUsable(pool, { schema, shown });
      return { made: [], isHome: false, isCurrent: false, hasId: false };
    }
    if ((error as { code?: unknown }).code === '42703')
      throw foreign(shown, 'its migrations are those of another program', error);
    throw error;
  }
}

/**
 * Refuses a schema that the user may not use: the server answers them as if it had no tables.
 * @throws TAPE_CANNOT_OPEN
 */
async function assertUsable(pool: Pool, { schema, shown }: Pick<Address, 'schema' | 'shown'>): Promise<void> {
  const { rows } = await pool.query(
    `SELECT 1 FROM pg_namespace WHERE nspname = $1 AND NOT has_schema_privilege(oid, 'USAGE')`,
    [schema],
  );
  if (rows.length > 0)
    throw new TapeError(
      'TAPE_CANNOT_OPEN',
      `cannot use ${shown}: the user lacks a privilege: USAGE on the schema '${schema}'`,
      { data: { server: shown, reason: 'privilege' } },
    );
}

/** Whether this build can use a schema that these migrations have made. Pure. */
function isUsable(made: readonly string[], least: string | null): boolean {
  const own = Object.keys(migrations);
  if (own.some((name, i) => made[i] !== name)) return false;
  // A newer build has added something, and says which builds may go on without it.
  return made.length === own.length || (least !== null && least <= (own.at(-1) ?? ''));
}

function isNewer(error: unknown): boolean {
  return error instanceof Error && /corrupted migrations/.test(error.message);
}

function newer(shown: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_SCHEMA_NEWER', `cannot open ${shown}: a newer build has changed its schema`, {
    cause,
  });
}

function foreign(shown: string, why: string, cause?: unknown): TapeError {
  return new TapeError(
    'TAPE_CANNOT_OPEN',
    `cannot use ${shown}: ${why}; a home needs a schema of its own: name one with ?schema=NAME`,
    { data: { server: shown, reason: 'schema' }, cause },
  );
}

function older(shown: string, cause: unknown): TapeError {
  return new TapeError(
    'TAPE_SCHEMA_OLDER',
    `cannot open ${shown}: an older build made its schema, and the user may not change it`,
    { data: { server: shown, reason: 'privilege' }, cause },
  );
}
