import { Kysely, PostgresDialect, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import type { Pool } from 'pg';
import { migrations } from './migrations.ts';

/** Makes the migrations that a schema lacks, under a lock of their own. Returns what went wrong. */
export async function migrateToLatest(pool: Pool, schema: string): Promise<unknown> {
  const migrator = new Migrator({
    db: new Kysely<never>({ dialect: new PostgresDialect({ pool }) }),
    provider: { getMigrations: async () => steps },
    migrationTableSchema: schema,
    migrationTableName: 'migration',
    migrationLockTableName: 'migration_lock',
  });
  const { error } = await migrator.migrateToLatest();
  return error;
}

const steps: Record<string, Migration> = Object.fromEntries(
  Object.entries(migrations).map(([name, text]) => [
    name,
    { up: async (db) => void (await sql.raw(text).execute(db)) },
  ]),
);
