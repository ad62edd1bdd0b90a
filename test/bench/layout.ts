import { openTapeStore } from '@tapedeck/tape';
import { bodyHash, entryHash } from '@tapedeck/tape/store';
import type Database from 'better-sqlite3';
import { rawHandle, type Synchronous } from './raw.ts';

/** The parts of the store's layout to keep. */
export interface Kept {
  readonly indexes: boolean;
  readonly triggers: boolean;
  readonly chain: boolean;
}

/** The store's own tables without some of what protects them, and an append without the rest of the store. */
export interface Layout extends Disposable {
  append(payload: unknown): void;
}

const ulid = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

/** What the store reads of a tape before it appends. */
const readHead = `SELECT id, ulid, name, head_seq, head_hash, settled_seq, epoch, last_message_at, message_count,
    last_speaker, lifecycle,
    EXISTS (SELECT 1 FROM lease WHERE tape_id = t.id) AS is_leased,
    EXISTS (SELECT 1 FROM stream_chunk WHERE tape_id = t.id) AS is_live FROM tape t
    WHERE realm = +? AND name = +? ORDER BY incarnation DESC LIMIT 1`;

/**
 * Makes the tables of a new store in another file, without its indexes or triggers, so that the price of each shows.
 * The append runs the statements of the store's for a message: it reads the head, inserts a row and moves the head, in
 * one transaction.
 */
export function strippedLayout(path: string, synchronous: Synchronous, kept: Kept): Layout {
  const db = rawHandle(path, synchronous);
  for (const sql of schemaOf(`${path}.model`, kept)) db.exec(sql);
  const none = Buffer.alloc(32);
  db.prepare(
    `INSERT INTO tape (id, ulid, name, base_hash, head_seq, head_hash, settled_seq, created_at, updated_at)
       VALUES (1, ?, 'main', ?, 0, ?, 0, 0, 0)`,
  ).run(ulid, none, none);
  const select = db.prepare(readHead);
  const insert = db.prepare(
    `INSERT INTO entry (tape_id, seq, kind, at, epoch, salt, body_hash, hash, payload)
       VALUES (1, +@seq, 'message', +@at, +@seq, +@salt, +@body, +@hash, +@text)`,
  );
  const move = db.prepare(
    `UPDATE tape SET head_seq = +@seq, head_hash = +@hash, settled_seq = +@seq, epoch = +@seq, updated_at = +@at,
       last_message_at = +@at, message_count = +@seq, last_speaker = +@speaker
       WHERE id = 1 AND epoch = +@seq - 1 AND head_seq = +@seq - 1`,
  );
  const salt = Buffer.alloc(16);
  let seq = 0;
  let head: Buffer = none;
  const append = db.transaction((payload: unknown) => {
    select.get('tape', 'main');
    const at = Date.now();
    const text = JSON.stringify(payload);
    seq += 1;
    const body = kept.chain ? bodyHash(salt, text, null) : none;
    const link = { seq, kind: 'message', mark: null, name: null, ref: null, at, key: null };
    // Without a chain every head is different all the same: a trigger compares them.
    head = kept.chain ? entryHash(ulid, link, body, head) : numbered(seq);
    insert.run({ seq, at, salt, body, hash: head, text });
    move.run({ seq, at, hash: head, speaker: seq % 2 === 0 ? 'assistant' : 'user' });
  });
  return {
    append: (payload) => append.immediate(payload),
    [Symbol.dispose]: () => {
      db.close();
    },
  };
}

function numbered(seq: number): Buffer {
  const hash = Buffer.alloc(32);
  hash.writeUInt32BE(seq);
  return hash;
}

/** The statements that make a store's tables, read from one. */
function schemaOf(path: string, kept: Kept): string[] {
  openTapeStore(path, { durability: 'fast' }).close();
  const db: Database.Database = rawHandle(path, 'NORMAL');
  try {
    const objects = db
      .prepare<[], { type: string; sql: string }>(
        `SELECT type, sql FROM sqlite_schema WHERE tbl_name IN ('tape', 'entry', 'lease', 'stream_chunk', 'adopted', 'absent') AND sql IS NOT NULL
           ORDER BY type = 'trigger', type = 'index', rowid`,
      )
      .all();
    return objects
      .filter(({ type }) => (type !== 'trigger' || kept.triggers) && (type !== 'index' || kept.indexes))
      .map(({ sql }) => (kept.indexes ? sql : sql.replaceAll(/,\s*UNIQUE \([^)]*\)/g, '')));
  } finally {
    db.close();
  }
}
