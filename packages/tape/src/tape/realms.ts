import type { Db } from '../db/db.ts';

/** The realms of a home in the order of their names, each found by a seek. */
export function realmsOf(db: Db): readonly string[] {
  return db
    .all<{ realm: string | null }>(
      `WITH RECURSIVE realms (realm) AS (
           SELECT min(realm) FROM tape
           UNION ALL SELECT (SELECT min(realm) FROM tape WHERE realm > realms.realm) FROM realms WHERE realm IS NOT NULL)
         SELECT realm FROM realms WHERE realm IS NOT NULL`,
    )
    .flatMap(({ realm }) => realm ?? []);
}
