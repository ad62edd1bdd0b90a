import { isObject, type JsonObject } from '../entry/json.ts';
import { nameKey } from '../entry/name.ts';
import { sourceTime } from '../entry/source-time.ts';
import { aliasTable, leaseColumnsOf2, tapeColumnsOf2, tapeIndexesOf2 } from '../sqlite/schema.ts';
import type { SqliteDb } from '../sqlite/sqlite.ts';

/** Records the id of a home, a ULID. A copy of the home keeps it. */
export function nameHome(db: SqliteDb, id: string): void {
  db.run(`INSERT INTO home (key, value) VALUES ('id', @id)`, { id });
}

/**
 * Upgrades schema 1: gives the home an id, aliases their realm, and tapes the columns of schema 2, which know one more
 * end of a task. Names of children stay as they are. A lease that is alive keeps its time.
 */
export function toSchema2(db: SqliteDb, homeId: string): void {
  nameHome(db, homeId);
  // A check of a column cannot be changed: the column is made anew.
  db.exec('ALTER TABLE tape RENAME COLUMN task TO old_task');
  for (const column of leaseColumnsOf2) db.exec(`ALTER TABLE lease ADD COLUMN ${column}`);
  for (const column of tapeColumnsOf2) db.exec(`ALTER TABLE tape ADD COLUMN ${column}`);
  db.exec('UPDATE tape SET task = old_task; ALTER TABLE tape DROP COLUMN old_task');
  const aliases = db.all<{ realm: string; alias: string; tape_id: number; reason: string; g: number }>(
    'SELECT t.realm, a.alias, a.tape_id, a.reason, a.g FROM alias a JOIN tape t ON t.id = a.tape_id',
  );
  db.exec(`DROP TABLE alias; ${aliasTable}`);
  for (const row of aliases)
    db.run(
      `INSERT INTO alias (realm, alias, name_key, tape_id, reason, g)
         VALUES (@realm, @alias, @nameKey, @tape_id, @reason, @g)`,
      { ...row, nameKey: nameKey(row.alias) },
    );
  const ordinals = new Map<number, number>();
  for (const tape of db.all<OldTape>('SELECT id, ulid, name, parent_id, spawn_key FROM tape ORDER BY id')) {
    const { id, parent_id: parent } = tape;
    // Until schema 2, a child without a key had its own ULID as the key.
    const ordinal = parent !== null && tape.spawn_key === tape.ulid ? (ordinals.get(parent) ?? 0) + 1 : null;
    if (parent !== null && ordinal !== null) ordinals.set(parent, ordinal);
    db.run(
      'UPDATE tape SET ordinal = @ordinal, name_key = @nameKey, last_message_at = @spoken WHERE id = @id',
      {
        id,
        ordinal,
        nameKey: nameKey(tape.name),
        spoken: lastMessageAt(db, id),
      },
    );
  }
  db.exec(tapeIndexesOf2);
}

interface OldTape {
  readonly id: number;
  readonly ulid: string;
  readonly name: string;
  readonly parent_id: number | null;
  readonly spawn_key: string | null;
}

/** Returns the time of a tape's newest own message, at its source where it was imported. */
function lastMessageAt(db: SqliteDb, tape: number): number | null {
  let last = db.get<{ at: number | null }>(
    `SELECT max(at) AS at FROM entry WHERE tape_id = @tape AND kind = 'message'
       AND (meta IS NULL OR instr(meta, '"timestamp"') = 0)`,
    { tape },
  )?.at;
  const timed = db.all<{ at: number; meta: string }>(
    `SELECT at, meta FROM entry WHERE tape_id = @tape AND kind = 'message' AND instr(meta, '"timestamp"') > 0`,
    { tape },
  );
  for (const { at, meta } of timed) {
    last = Math.max(last ?? 0, sourceTime(metaOf(meta)) ?? at);
  }
  return last ?? null;
}

/** Parses meta; none where it is damaged, which does not keep the rest from its upgrade. */
function metaOf(text: string): JsonObject | undefined {
  try {
    const meta: unknown = JSON.parse(text);
    return isObject(meta) ? meta : undefined;
  } catch {
    return undefined;
  }
}
