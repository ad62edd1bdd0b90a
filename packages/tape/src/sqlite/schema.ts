/** The application id of a tape database: "TAPE" in ASCII. */
export const applicationId = 0x54415045;

/** The schema version that this build reads and writes. */
export const schemaVersion = 6;

export const pageSize = 4096;

/**
 * The open client-side calls of each tape, and the position before the first of them. Schema 0 does not have
 * this table.
 */
export const openCallsTable = `
CREATE TABLE open_calls (
  tape_id INTEGER NOT NULL REFERENCES tape(id), from_seq INTEGER NOT NULL, to_seq INTEGER, calls TEXT NOT NULL,
  PRIMARY KEY (tape_id, from_seq)) STRICT, WITHOUT ROWID;
`;

/**
 * Other names of sessions, in the realm of each. `name_key` finds those that look alike. Until schema 2 aliases
 * had no realm.
 */
export const aliasTable = `
CREATE TABLE alias (
  realm TEXT NOT NULL, alias TEXT NOT NULL, name_key TEXT NOT NULL, tape_id INTEGER NOT NULL REFERENCES tape(id),
  reason TEXT NOT NULL, g INTEGER NOT NULL, PRIMARY KEY (realm, alias)) STRICT, WITHOUT ROWID;
CREATE INDEX alias_name_key ON alias (realm, name_key);
CREATE INDEX alias_tape ON alias (tape_id, alias);
`;

/**
 * What schema 2 added to the table of tapes; it had a column `task` before, without `filtered`. `ALTER TABLE` adds a
 * column right before the constraints, so these are the last columns there.
 */
export const tapeColumnsOf2: readonly string[] = [
  'ordinal INTEGER',
  "name_key TEXT NOT NULL DEFAULT ''",
  'last_message_at INTEGER',
  "task TEXT CHECK (task IN ('running','completed','halted','failed','aborted','filtered','orphaned'))",
];
/**
 * A child that has a delivery to make. One that only notifies its parent has done so when its task has ended. Queries
 * with this condition use the index.
 */
export const isUnfinished: string = `deliver IS NOT NULL AND delivery IS NULL AND lifecycle = 'active'
  AND NOT (deliver = 'notify' AND coalesce(task, 'running') <> 'running')`;

export const tapeIndexesOf2: string = `
CREATE UNIQUE INDEX tape_ordinal ON tape (parent_id, ordinal) WHERE ordinal IS NOT NULL;
CREATE INDEX tape_name_key ON tape (realm, name_key);
CREATE INDEX tape_unfinished ON tape (parent_id) WHERE ${isUnfinished};
`;

/**
 * What schema 3 added, so that one query finds all sessions with something open: the tapes with an open run, and indexes
 * of open calls, of running tasks, of the times of the last messages and of the rare kinds of entries. All of it follows from the entries and the rows of tapes.
 */
export const openRunTable = `
CREATE TABLE open_run (tape_id INTEGER PRIMARY KEY REFERENCES tape(id)) STRICT;
`;

/** The sums of the model calls of each tape, by model: schema 3 added them too. */
export const usageTable = `
CREATE TABLE usage (
  tape_id INTEGER NOT NULL REFERENCES tape(id), model TEXT NOT NULL, first_seq INTEGER NOT NULL, steps INTEGER NOT NULL,
  input REAL NOT NULL, output REAL NOT NULL, reasoning REAL NOT NULL, cache_read REAL NOT NULL, cache_write REAL NOT NULL,
  cost REAL, last_seq INTEGER, last_tokens REAL, PRIMARY KEY (tape_id, model)) STRICT, WITHOUT ROWID;
`;

/** The kinds of entries of which a tape has few: a query with this condition seeks them. */
export const isRareKind = `kind NOT IN ('message','tool-result','event')`;

export const indexesOf3: string = `
CREATE INDEX entry_kind ON entry (tape_id, kind, seq) WHERE ${isRareKind};
CREATE INDEX open_calls_open ON open_calls (tape_id) WHERE to_seq IS NULL;
CREATE INDEX tape_running ON tape (task) WHERE task = 'running';
CREATE INDEX tape_spoken ON tape (realm, coalesce(last_message_at, created_at));
`;

/** What schema 4 added to the table of tapes: the messages of its conversation, which follow from its entries. */
export const tapeColumnsOf4: readonly string[] = [
  'message_count INTEGER NOT NULL DEFAULT 0',
  "last_speaker TEXT CHECK (last_speaker IN ('user','assistant'))",
];

/**
 * What schema 5 added, for bundles: the positions of each tape that one brought, and those entries of them whose content
 * is not here. Content that comes later is put there, and its row in `absent` goes.
 */
export const bundleTables: string = `
CREATE TABLE adopted (
  tape_id INTEGER NOT NULL REFERENCES tape(id), from_seq INTEGER NOT NULL, to_seq INTEGER NOT NULL,
  PRIMARY KEY (tape_id, from_seq)) STRICT, WITHOUT ROWID;
CREATE TABLE absent (
  tape_id INTEGER NOT NULL REFERENCES tape(id), seq INTEGER NOT NULL, PRIMARY KEY (tape_id, seq)) STRICT, WITHOUT ROWID;
`;

/** What schema 6 added: finds the sessions that links put under another one. */
export const linkIndex: string = `
CREATE INDEX lineage_link ON lineage (peer_id, tape_id) WHERE type = 'link';
`;

/** What schema 2 added to the table of leases. */
export const leaseColumnsOf2: readonly string[] = ['pid_ns TEXT', 'expires_up INTEGER'];

/** The tables of a tape home in the current schema. `docs/format.md` explains each column. */
export const tables: string = `
CREATE TABLE home (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE tape (
  id INTEGER PRIMARY KEY, ulid TEXT NOT NULL UNIQUE, realm TEXT NOT NULL DEFAULT 'tape', name TEXT NOT NULL,
  incarnation INTEGER NOT NULL DEFAULT 1, kind TEXT NOT NULL DEFAULT 'session',
  parent_id INTEGER REFERENCES tape(id),
  spawn_key TEXT, request_hash BLOB, from_seq INTEGER, from_anchor TEXT,
  floor_seq INTEGER NOT NULL DEFAULT 0, base_seq INTEGER NOT NULL DEFAULT 0, base_hash BLOB NOT NULL,
  head_seq INTEGER NOT NULL, head_hash BLOB NOT NULL, settled_seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL DEFAULT 0,
  lifecycle TEXT NOT NULL DEFAULT 'active'
    CHECK (lifecycle IN ('staging','active','archived','destroyed','orphaned','purged')),
  delivery TEXT CHECK (delivery IN ('merged','discarded')), merged_at INTEGER,
  deliver TEXT, spawn_call TEXT, title TEXT, ephemeral INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ${[...tapeColumnsOf2, ...tapeColumnsOf4].join(', ')},
  UNIQUE (realm, name, incarnation),
  CHECK (parent_id IS NOT NULL OR base_seq = 0),
  CHECK (floor_seq <= base_seq AND base_seq <= settled_seq AND settled_seq <= head_seq)) STRICT;
CREATE UNIQUE INDEX tape_spawn ON tape (parent_id, spawn_key) WHERE parent_id IS NOT NULL;
${tapeIndexesOf2}
CREATE TABLE entry (
  id INTEGER PRIMARY KEY, tape_id INTEGER NOT NULL REFERENCES tape(id), seq INTEGER NOT NULL,
  v INTEGER NOT NULL DEFAULT 1, kind TEXT NOT NULL,
  mark TEXT CHECK (mark IN ('anchor','boundary','rewind','redaction')), name TEXT, ref INTEGER,
  at INTEGER NOT NULL, key TEXT, epoch INTEGER NOT NULL,
  salt BLOB, body_hash BLOB NOT NULL, hash BLOB NOT NULL, meta TEXT, payload TEXT,
  UNIQUE (tape_id, seq)) STRICT;
CREATE UNIQUE INDEX entry_key ON entry (tape_id, key) WHERE key IS NOT NULL;
CREATE INDEX entry_turn ON entry (tape_id, mark, seq, ref) WHERE mark IN ('boundary','rewind','redaction');
CREATE INDEX entry_name ON entry (tape_id, name, seq) WHERE name IS NOT NULL;

${openCallsTable}
CREATE TABLE lineage (
  g INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, type TEXT NOT NULL,
  tape_id INTEGER NOT NULL REFERENCES tape(id), peer_id INTEGER REFERENCES tape(id),
  seq INTEGER, to_seq INTEGER, line TEXT NOT NULL, hash BLOB NOT NULL) STRICT;
CREATE INDEX lineage_tape ON lineage (tape_id, type, g);

CREATE TABLE lease (
  tape_id INTEGER PRIMARY KEY REFERENCES tape(id), owner TEXT NOT NULL, epoch INTEGER NOT NULL,
  pid INTEGER, pid_start TEXT, boot_id TEXT, host TEXT, expires_at INTEGER NOT NULL, ${leaseColumnsOf2.join(', ')}) STRICT;
CREATE TABLE inbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT, ulid TEXT NOT NULL UNIQUE,
  tape_id INTEGER NOT NULL REFERENCES tape(id), mode TEXT NOT NULL, source TEXT NOT NULL,
  key TEXT NOT NULL, body TEXT NOT NULL, queued_at INTEGER NOT NULL, UNIQUE (tape_id, key)) STRICT;
${aliasTable}CREATE TABLE touch (
  tape_id INTEGER NOT NULL, what TEXT NOT NULL, seq INTEGER NOT NULL, wrote INTEGER NOT NULL, via TEXT,
  PRIMARY KEY (tape_id, what, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE blob (hash BLOB PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE blob_ref (
  hash BLOB NOT NULL REFERENCES blob(hash), entry_id INTEGER NOT NULL REFERENCES entry(id),
  PRIMARY KEY (hash, entry_id)) STRICT, WITHOUT ROWID;
CREATE TABLE stream_chunk (
  tape_id INTEGER NOT NULL, run TEXT NOT NULL, idx INTEGER NOT NULL, chunk TEXT NOT NULL,
  PRIMARY KEY (tape_id, run, idx)) STRICT;
CREATE VIRTUAL TABLE entry_fts USING fts5(text, content='', contentless_delete=1);
${openRunTable}${usageTable}${indexesOf3}${bundleTables}${linkIndex}`;

/**
 * Triggers that make the file itself append-only: they abort every statement that would change or remove a
 * recorded fact, `INSERT OR REPLACE` included, with any setting of `recursive_triggers`.
 */
export const triggers = `
CREATE TRIGGER entry_insert BEFORE INSERT ON entry WHEN
  NEW.seq IS NOT 1 + coalesce((SELECT max(seq) FROM entry WHERE tape_id = NEW.tape_id),
    (SELECT base_seq FROM tape WHERE id = NEW.tape_id))
  OR EXISTS (SELECT 1 FROM entry WHERE id = NEW.id)
  OR (NEW.key IS NOT NULL AND EXISTS (SELECT 1 FROM entry WHERE tape_id = NEW.tape_id AND key = NEW.key))
  BEGIN SELECT RAISE(ABORT, 'entries are append-only: an entry must be the next of its tape, under a new id and key'); END;
CREATE TRIGGER entry_update BEFORE UPDATE ON entry WHEN NOT (
  NEW.id IS OLD.id AND NEW.tape_id IS OLD.tape_id AND NEW.seq IS OLD.seq AND NEW.v IS OLD.v
  AND NEW.kind IS OLD.kind AND NEW.mark IS OLD.mark AND NEW.name IS OLD.name AND NEW.ref IS OLD.ref
  AND NEW.at IS OLD.at AND NEW.key IS OLD.key AND NEW.epoch IS OLD.epoch
  AND NEW.body_hash IS OLD.body_hash AND NEW.hash IS OLD.hash
  AND ((NEW.payload IS NULL AND NEW.meta IS NULL AND NEW.salt IS NULL
      AND EXISTS (SELECT 1 FROM entry r WHERE r.tape_id = OLD.tape_id AND r.mark = 'redaction' AND r.ref = OLD.seq))
    OR (OLD.payload IS NULL AND OLD.meta IS NULL AND OLD.salt IS NULL
      AND EXISTS (SELECT 1 FROM absent a WHERE a.tape_id = OLD.tape_id AND a.seq = OLD.seq))))
  BEGIN SELECT RAISE(ABORT, 'entries are append-only: only a recorded redaction may erase a body'); END;
CREATE TRIGGER entry_delete BEFORE DELETE ON entry
  BEGIN SELECT RAISE(ABORT, 'entries are append-only: none is ever deleted'); END;

CREATE TRIGGER tape_insert BEFORE INSERT ON tape WHEN
  NEW.head_seq IS NOT NEW.base_seq OR NEW.head_hash IS NOT NEW.base_hash OR NEW.settled_seq IS NOT NEW.base_seq
  OR EXISTS (SELECT 1 FROM tape WHERE id = NEW.id OR ulid = NEW.ulid
    OR (realm = NEW.realm AND name = NEW.name AND incarnation = NEW.incarnation)
    OR (parent_id = NEW.parent_id AND spawn_key = NEW.spawn_key))
  BEGIN SELECT RAISE(ABORT, 'tapes are append-only: a tape must begin empty, with an identity of its own'); END;
CREATE TRIGGER tape_update BEFORE UPDATE ON tape WHEN
  NEW.id IS NOT OLD.id OR NEW.ulid IS NOT OLD.ulid OR NEW.realm IS NOT OLD.realm OR NEW.name IS NOT OLD.name
  OR NEW.incarnation IS NOT OLD.incarnation OR NEW.kind IS NOT OLD.kind OR NEW.parent_id IS NOT OLD.parent_id
  OR NEW.spawn_key IS NOT OLD.spawn_key OR NEW.request_hash IS NOT OLD.request_hash
  OR NEW.from_seq IS NOT OLD.from_seq OR NEW.from_anchor IS NOT OLD.from_anchor
  OR NEW.floor_seq IS NOT OLD.floor_seq OR NEW.base_seq IS NOT OLD.base_seq
  OR NEW.base_hash IS NOT OLD.base_hash OR NEW.created_at IS NOT OLD.created_at
  OR NEW.ordinal IS NOT OLD.ordinal OR NEW.name_key IS NOT OLD.name_key
  OR NEW.epoch < OLD.epoch OR NEW.head_seq < OLD.head_seq
  OR ((NEW.settled_seq < OLD.settled_seq
      OR (OLD.last_message_at IS NOT NULL AND coalesce(NEW.last_message_at < OLD.last_message_at, 1)))
    AND NOT EXISTS (SELECT 1 FROM adopted a WHERE a.tape_id = OLD.id))
  OR (NEW.head_seq = OLD.head_seq AND NEW.head_hash IS NOT OLD.head_hash)
  OR (NEW.head_seq > OLD.head_seq
    AND NEW.head_hash IS NOT (SELECT hash FROM entry WHERE tape_id = NEW.id AND seq = NEW.head_seq))
  BEGIN SELECT RAISE(ABORT, 'tapes are append-only: an identity is fixed, and a head only moves on to its next entry'); END;
CREATE TRIGGER tape_delete BEFORE DELETE ON tape
  BEGIN SELECT RAISE(ABORT, 'tapes are append-only: none is ever deleted'); END;

CREATE TRIGGER blob_update BEFORE UPDATE ON blob
  BEGIN SELECT RAISE(ABORT, 'bytes are append-only: none is ever changed'); END;
CREATE TRIGGER blob_delete BEFORE DELETE ON blob WHEN EXISTS (SELECT 1 FROM blob_ref WHERE hash = OLD.hash)
  BEGIN SELECT RAISE(ABORT, 'bytes are append-only: an entry needs them'); END;
CREATE TRIGGER blob_insert BEFORE INSERT ON blob WHEN EXISTS (SELECT 1 FROM blob WHERE hash = NEW.hash AND bytes <> NEW.bytes)
  BEGIN SELECT RAISE(ABORT, 'bytes are append-only: none is ever replaced'); END;
CREATE TRIGGER blob_ref_update BEFORE UPDATE ON blob_ref
  BEGIN SELECT RAISE(ABORT, 'references to bytes are append-only'); END;
CREATE TRIGGER blob_ref_delete BEFORE DELETE ON blob_ref WHEN
  EXISTS (SELECT 1 FROM entry WHERE id = OLD.entry_id AND payload IS NOT NULL)
  BEGIN SELECT RAISE(ABORT, 'references to bytes are append-only: only a redaction may drop one'); END;

CREATE TRIGGER lineage_insert BEFORE INSERT ON lineage WHEN
  NEW.g IS NOT (SELECT coalesce(max(g), 0) + 1 FROM lineage)
  OR EXISTS (SELECT 1 FROM lineage WHERE event_id = NEW.event_id)
  BEGIN SELECT RAISE(ABORT, 'lineage is append-only: a line must be the next, under a new event id'); END;
CREATE TRIGGER lineage_update BEFORE UPDATE ON lineage
  BEGIN SELECT RAISE(ABORT, 'lineage is append-only: no line is ever changed'); END;
CREATE TRIGGER lineage_delete BEFORE DELETE ON lineage
  BEGIN SELECT RAISE(ABORT, 'lineage is append-only: no line is ever deleted'); END;
`;
