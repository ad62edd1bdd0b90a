import { copyFileSync } from 'node:fs';
import { user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { afterAll, describe, expect, test } from 'vitest';
import { facts, type RawDb, rawDb } from '../support/raw-db.ts';
import { playScript } from '../support/script.ts';
import { openStore } from '../support/store.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';

/** A row like entry 2, under the id that is given, at the next position of its tape. */
const nextLike = (
  id: string,
) => `SELECT ${id}, tape_id, (SELECT max(seq) + 1 FROM entry WHERE tape_id = 1), v, kind, mark,
  name, ref, at, NULL, epoch, salt, body_hash, hash, meta, '"forged"' FROM entry WHERE id = 2`;

/** Statements that a user at a SQL prompt may try while the triggers exist. */
const attacks: Readonly<Record<string, string>> = {
  'update a payload': `UPDATE entry SET payload = '"forged"' WHERE seq = 2`,
  'update one byte of meta': `UPDATE entry SET meta = '{}' WHERE meta IS NOT NULL`,
  'update a time': 'UPDATE entry SET at = at + 1 WHERE seq = 2',
  'update a hash': 'UPDATE entry SET hash = body_hash WHERE seq = 2',
  'null a body without a redaction':
    'UPDATE entry SET payload = NULL, meta = NULL, salt = NULL WHERE seq = 2',
  'renumber an entry': 'UPDATE entry SET seq = 99 WHERE seq = 2',
  'move an entry onto another': 'UPDATE OR REPLACE entry SET seq = 3 WHERE tape_id = 1 AND seq = 2',
  'move an entry to another tape': 'UPDATE OR REPLACE entry SET tape_id = 2 WHERE tape_id = 1 AND seq = 6',
  'take over an id': 'UPDATE OR REPLACE entry SET id = 1 WHERE id = 2',
  'take over a key': `UPDATE OR REPLACE entry SET key = 'u:turn-1' WHERE seq = 4`,
  'update and ignore what fails': `UPDATE OR IGNORE entry SET payload = '"forged"' WHERE seq = 2`,
  'delete an entry': 'DELETE FROM entry WHERE seq = 2',
  'delete the last entry': 'DELETE FROM entry WHERE id = (SELECT max(id) FROM entry)',
  'replace an entry by its id': `REPLACE INTO entry ${nextLike('2')}`,
  'replace an entry by its position': `INSERT OR REPLACE INTO entry (tape_id, seq, kind, at, epoch, body_hash, hash, payload)
    SELECT tape_id, seq, kind, at, epoch, body_hash, hash, '"forged"' FROM entry WHERE id = 2`,
  'replace an entry by its key': `INSERT OR REPLACE INTO entry (tape_id, seq, kind, at, key, epoch, body_hash, hash, payload)
    SELECT tape_id, (SELECT max(seq) + 1 FROM entry WHERE tape_id = e.tape_id), kind, at, key, epoch, body_hash, hash,
      '"forged"' FROM entry e WHERE key = 'u:turn-1'`,
  'upsert an entry': `INSERT INTO entry ${nextLike('2')} ON CONFLICT DO UPDATE SET payload = '"forged"'`,
  'insert past a gap': `INSERT INTO entry (tape_id, seq, kind, at, epoch, body_hash, hash, payload)
    SELECT tape_id, 99, kind, at, epoch, body_hash, hash, payload FROM entry WHERE id = 2`,
  'insert below the base of a fork': `INSERT INTO entry (tape_id, seq, kind, at, epoch, body_hash, hash, payload)
    SELECT 2, 2, kind, at, epoch, body_hash, hash, payload FROM entry WHERE id = 2`,
  'rename a tape': `UPDATE tape SET name = 'other' WHERE id = 1`,
  'take over the name of a tape': `UPDATE OR REPLACE tape SET name = 'one' WHERE id = 1`,
  'give a tape another id': `UPDATE tape SET ulid = '01JD0000000000000000000ZZZ' WHERE id = 1`,
  'give a tape another parent': 'UPDATE tape SET parent_id = 3 WHERE id = 2',
  'move the base of a fork': 'UPDATE tape SET base_seq = base_seq - 1, floor_seq = 0 WHERE id = 2',
  'move the floor of a fork': 'UPDATE tape SET floor_seq = 0 WHERE id = 2',
  'move a head back': `UPDATE tape SET head_seq = 3, settled_seq = 3, head_hash =
    (SELECT hash FROM entry WHERE tape_id = 1 AND seq = 3) WHERE id = 1`,
  'give a head another hash': 'UPDATE tape SET head_hash = base_hash WHERE id = 1',
  'move a head to no entry': 'UPDATE tape SET head_seq = head_seq + 1, head_hash = base_hash WHERE id = 1',
  'turn an epoch back': 'UPDATE tape SET epoch = epoch - 1 WHERE epoch > 0',
  'delete a tape': 'DELETE FROM tape WHERE id = 3',
  'replace a tape by its id': `REPLACE INTO tape (id, ulid, name, base_hash, head_seq, head_hash, settled_seq, created_at,
    updated_at) VALUES (1, '01JD0000000000000000000ZZZ', 'x', x'00', 0, x'00', 0, 0, 0)`,
  'replace a tape by its name': `REPLACE INTO tape (ulid, name, base_hash, head_seq, head_hash, settled_seq, created_at,
    updated_at) VALUES ('01JD0000000000000000000ZZZ', 'main', x'00', 0, x'00', 0, 0, 0)`,
  'replace a tape by its ULID': `REPLACE INTO tape (ulid, name, base_hash, head_seq, head_hash, settled_seq, created_at,
    updated_at) SELECT ulid, 'x', x'00', 0, x'00', 0, 0, 0 FROM tape WHERE id = 1`,
  'replace a fork by its spawn key': `REPLACE INTO tape (ulid, name, parent_id, spawn_key, base_hash, head_seq, head_hash,
    settled_seq, created_at, updated_at) VALUES ('01JD0000000000000000000ZZZ', 'x', 1, 'a', x'00', 0, x'00', 0, 0, 0)`,
  'insert a tape with a head': `INSERT INTO tape (ulid, name, base_hash, head_seq, head_hash, settled_seq, created_at,
    updated_at) VALUES ('01JD0000000000000000000ZZZ', 'x', x'00', 5, x'00', 5, 0, 0)`,
  'update a line': `UPDATE lineage SET line = replace(line, 'main', 'niam') WHERE g = 1`,
  'renumber a line': 'UPDATE OR REPLACE lineage SET g = 1 WHERE g = 2',
  'delete a line': 'DELETE FROM lineage WHERE g = 1',
  'delete all lines': 'DELETE FROM lineage',
  'replace a line by its number': `REPLACE INTO lineage SELECT 1, '01JD0000000000000000000ZZZ', type, tape_id, peer_id, seq,
    to_seq, line, hash FROM lineage WHERE g = 2`,
  'replace a line by its event': `REPLACE INTO lineage SELECT (SELECT max(g) + 1 FROM lineage), event_id, type, tape_id,
    peer_id, seq, to_seq, '{}', hash FROM lineage WHERE g = 2`,
  'insert a line past a gap': `INSERT INTO lineage SELECT 99, '01JD0000000000000000000ZZZ', type, tape_id, peer_id, seq,
    to_seq, line, hash FROM lineage WHERE g = 2`,
};

/** A file with facts of all kinds in it. */
const played = tempDir();
{
  using store = openStore(played.file('tape.db'));
  await playScript(store);
}
afterAll(() => played[Symbol.dispose]());

/** A copy of it, for an attack of its own. */
function copied(): { dir: TempDir; path: string } {
  const dir = tempDir();
  const path = dir.file('tape.db');
  copyFileSync(played.file('tape.db'), path);
  return { dir, path };
}

describe.each(['ON', 'OFF'])('with recursive_triggers %s', (recursive) => {
  const attack = (db: RawDb, sql: string) => () => {
    db.exec(`PRAGMA recursive_triggers = ${recursive}; PRAGMA foreign_keys = OFF`);
    db.exec(sql);
  };

  test.each(Object.entries(attacks))('no statement can %s', (_, sql) => {
    const { dir, path } = copied();
    using _dir = dir;
    using db = rawDb(path);
    const before = facts(db);
    expect(attack(db, sql)).toThrow(/append-only/);
    expect(facts(db)).toBe(before);
  });

  test('a recorded redaction allows its body to be erased, once and whole', () => {
    const { dir, path } = copied();
    using _dir = dir;
    using db = rawDb(path);
    db.exec(`INSERT INTO entry (tape_id, seq, kind, mark, ref, at, epoch, body_hash, hash)
      SELECT tape_id, seq + 1, 'redaction', 'redaction', 2, at, epoch, body_hash, hash FROM entry
        WHERE tape_id = 1 ORDER BY seq DESC LIMIT 1`);
    const erase = 'UPDATE entry SET payload = NULL, meta = NULL, salt = NULL WHERE tape_id = 1 AND seq =';
    for (const sql of [
      `${erase} 3`,
      'UPDATE entry SET payload = NULL WHERE tape_id = 1 AND seq = 2',
      `UPDATE entry SET payload = '""', meta = NULL, salt = NULL WHERE tape_id = 1 AND seq = 2`,
      'UPDATE entry SET payload = NULL, meta = NULL, salt = NULL, at = 0 WHERE tape_id = 1 AND seq = 2',
      'UPDATE entry SET payload = NULL, meta = NULL, salt = NULL WHERE tape_id = 2 AND seq = 5',
    ])
      expect(attack(db, sql), sql).toThrow(/append-only/);
    expect(db.run(`${erase} 2`)).toBe(1);
    expect(db.all('SELECT payload, meta, salt FROM entry WHERE tape_id = 1 AND seq = 2')).toEqual([
      { payload: null, meta: null, salt: null },
    ]);
  });
});

test('columns other than facts may change: life cycle, title, and rebuilt tables', () => {
  const { dir, path } = copied();
  using _dir = dir;
  using db = rawDb(path);
  expect(db.run(`UPDATE tape SET title = 'New', lifecycle = 'archived' WHERE id = 1`)).toBe(1);
  expect(db.run('DELETE FROM touch')).toBeGreaterThan(0);
  expect(db.run('DELETE FROM stream_chunk')).toBe(0);
});

test('a store continues with its file, and keeps what the file contains', () => {
  const { dir, path } = copied();
  using _dir = dir;
  using db = rawDb(path);
  const before = db.all<{ payload: string; hash: Uint8Array }>('SELECT payload, hash FROM entry ORDER BY id');
  {
    using store = openStore(path);
    store.entries.append('main', [user('more')]);
  }
  const after = db.all<{ payload: string; hash: Uint8Array }>('SELECT payload, hash FROM entry ORDER BY id');
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.slice(before.length).map(({ payload }) => isObject(JSON.parse(payload)))).toEqual([true]);
});
