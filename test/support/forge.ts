import { hashed, type Link, sha256 } from './format-hash.ts';
import { type RawDb, rawDb } from './raw-db.ts';

/** What a forger can do to a file whose triggers are gone. */
export interface Forger extends Pick<RawDb, 'all'> {
  /** Runs a statement that must change something. */
  run(sql: string): void;
  /** Removes the last entries of a session, and moves its head back. */
  cut(session: string, entries: number): void;
  /** Changes the stored text of an entry, and computes all hashes that depend on it again. */
  rewrite(session: string, seq: number, change: (payload: string) => string): void;
  /** Changes the text of a line, which `relink` chains again. */
  reline(g: number, change: (line: string) => string): void;
  /** Puts the new hashes of all rewritten entries into the lineage, and chains its lines again. */
  relink(): void;
}

interface Row extends Link {
  readonly salt: string | null;
  readonly body_hash: string;
  readonly hash: string;
  readonly meta: string | null;
  readonly payload: string | null;
}

/** Changes a file as a program would that knows the format: consistent hashes, and the triggers as they were. */
export function forge(path: string, act: (forger: Forger) => void): void {
  using db = rawDb(path);
  const triggers = db.all<{ sql: string }>(`SELECT sql FROM sqlite_schema WHERE type = 'trigger'`);
  db.dropTriggers();
  db.exec('PRAGMA foreign_keys = OFF');
  /** The new hash of each entry that was rewritten, by its old one. */
  const renewed = new Map<string, string>();
  act({
    all: db.all,
    run: (sql) => {
      if (db.run(sql) === 0) throw new Error(`nothing was changed by ${sql}`);
    },
    cut: (session, entries) => {
      const { id, head_seq } = tapeOf(db, session);
      const head = head_seq - entries;
      db.run('DELETE FROM entry WHERE tape_id = ? AND seq > ?', id, head);
      db.run('DELETE FROM open_calls WHERE tape_id = ? AND from_seq >= ?', id, head);
      db.run(
        `UPDATE tape SET head_seq = @head, settled_seq = min(settled_seq, @head), last_message_at =
           (SELECT max(at) FROM entry WHERE tape_id = @id AND kind = 'message') WHERE id = @id`,
        { head, id },
      );
      recount(db, id);
      rechain(db, session, renewed);
    },
    rewrite: (session, seq, change) => {
      const { id } = tapeOf(db, session);
      const [row] = db.all<{ payload: string }>(
        'SELECT payload FROM entry WHERE tape_id = ? AND seq = ?',
        id,
        seq,
      );
      const text = change(row?.payload ?? '');
      if (text === row?.payload) throw new Error(`nothing was changed in ${session}@${seq}`);
      db.run('UPDATE entry SET payload = ? WHERE tape_id = ? AND seq = ?', text, id, seq);
      recount(db, id);
      rechain(db, session, renewed);
    },
    reline: (g, change) => {
      const [row] = db.all<{ line: string }>('SELECT line FROM lineage WHERE g = ?', g);
      const text = change(row?.line ?? '');
      if (text === row?.line) throw new Error(`nothing was changed in line ${g}`);
      db.run('UPDATE lineage SET line = ? WHERE g = ?', text, g);
    },
    relink: () => relink(db, renewed),
  });
  for (const { sql } of triggers) db.exec(sql);
}

interface Tape {
  readonly id: number;
  readonly ulid: string;
  readonly base_seq: number;
  readonly base_hash: string;
  readonly head_seq: number;
}

function tapeOf(db: RawDb, session: string): Tape {
  const [tape] = db.all<Tape>(
    'SELECT id, ulid, base_seq, lower(hex(base_hash)) AS base_hash, head_seq FROM tape WHERE name = ?',
    session,
  );
  if (tape === undefined) throw new Error(`there is no session ${session}`);
  return tape;
}

/** Counts the messages of a tape again. Files before schema 4 do not. */
function recount(db: RawDb, id: number): void {
  if (db.all(`SELECT 1 FROM pragma_table_info('tape') WHERE name = 'message_count'`).length === 0) return;
  const said = db.all<{ role: string }>(
    `SELECT CASE WHEN json_valid(payload) THEN payload ->> '$.role' END AS role FROM entry WHERE tape_id = ? AND kind = 'message'
       AND coalesce(meta ->> '$.context', 1) <> 0 ORDER BY seq`,
    id,
  );
  const counted = said.filter(({ role }, i) => role === 'user' || said[i - 1]?.role !== 'assistant');
  db.run(
    'UPDATE tape SET message_count = ?, last_speaker = ? WHERE id = ?',
    counted.length,
    said.at(-1)?.role ?? null,
    id,
  );
}

/** Computes all hashes of a session again, and those of its forks. */
function rechain(db: RawDb, session: string, renewed: Map<string, string>): void {
  const { id, ulid, base_hash } = tapeOf(db, session);
  let previous = base_hash;
  const rows = db.all<Row>(
    `SELECT *, lower(hex(hash)) AS hash, CASE WHEN salt IS NOT NULL THEN lower(hex(salt)) END AS salt, lower(hex(body_hash)) AS body_hash
       FROM entry WHERE tape_id = ? ORDER BY seq`,
    id,
  );
  for (const row of rows) {
    const body =
      row.payload === null ? row.body_hash : sha256(`${row.salt ?? ''}${row.payload}\n${row.meta ?? ''}`);
    previous = sha256(hashed(ulid, row, { body, previous }));
    renewed.set(row.hash, previous);
    db.run(
      'UPDATE entry SET body_hash = unhex(?), hash = unhex(?) WHERE tape_id = ? AND seq = ?',
      body,
      previous,
      id,
      row.seq,
    );
    const forks = db.all<{ name: string }>(
      'SELECT name FROM tape WHERE parent_id = ? AND base_seq = ?',
      id,
      row.seq,
    );
    for (const { name } of forks) {
      db.run('UPDATE tape SET base_hash = unhex(?) WHERE name = ?', previous, name);
      rechain(db, name, renewed);
    }
  }
  db.run('UPDATE tape SET head_hash = unhex(?) WHERE id = ?', previous, id);
}

function newest(hash: string, renewed: ReadonlyMap<string, string>): string {
  const next = renewed.get(hash);
  return next === undefined || next === hash ? hash : newest(next, renewed);
}

function relink(db: RawDb, renewed: ReadonlyMap<string, string>): void {
  let prev = '0'.repeat(64);
  for (const { g, line } of db.all<{ g: number; line: string }>('SELECT g, line FROM lineage ORDER BY g')) {
    const text = line
      .replace(
        /"(parent|child)_head":"(\w+)"/g,
        (_, whose, hash) => `"${whose}_head":"${newest(hash, renewed)}"`,
      )
      .replace(/"prev":"\w+"/, `"prev":"${prev}"`);
    prev = sha256(text);
    db.run('UPDATE lineage SET line = ?, hash = unhex(?) WHERE g = ?', text, prev, g);
  }
}
