import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import type { JsonObject } from '../entry/json.ts';
import { parsed } from '../entry/parsed.ts';
import { hashLine } from '../lineage/line.ts';
import { type CallsRow, callsColumns } from '../tape/calls.ts';
import { selectTape, type TapeRow, tapeById } from '../tape/tape.ts';
import { KeptEntries } from './kept-entries.ts';

/** A line of the lineage. */
interface Line {
  readonly g: number;
  readonly type: string;
  /** The tape that a merge was made into, or that a fork continues. */
  readonly peer_id: number | null;
  /** Its name. */
  readonly into: string | null;
  /** What the line says; undefined when it was changed: it proves nothing then. */
  readonly fields: JsonObject | undefined;
}

/** A line about the tape itself, and what repeats it in columns. */
interface OwnLine extends Line {
  readonly event_id: string;
  /** The ULID of the tape that `peer_id` names. */
  readonly peer: string | null;
  readonly seq: Seq | null;
  readonly to_seq: Seq | null;
}

/** A line about a descendant of a tape. */
interface LineBelow extends Line {
  /** The descendant's ULID. */
  readonly ulid: string;
  /** The last position that the descendant shares with the tape. */
  readonly reach: Seq;
}

/** The mark of a merge of the tape, on a tape above it. */
interface MarkAbove {
  readonly name: string;
  readonly seq: Seq;
  readonly key: string;
  readonly payload: string | null;
  /** 1 when a bundle brought it. */
  readonly isAdopted: 0 | 1;
}

/** An entry that has the name or the key of a merge's mark, or that a line of the lineage calls one. */
export interface MarkRow {
  readonly seq: Seq;
  readonly kind: string;
  readonly mark: string | null;
  readonly name: string | null;
  readonly key: string | null;
  readonly payload: string | null;
}

export interface BatchRow {
  readonly from_seq: Seq;
  readonly to_seq: Seq | null;
  readonly calls: string;
}

interface AliasRow {
  readonly realm: string;
  readonly alias: string;
  readonly name_key: string;
  readonly reason: string;
  readonly g: number;
}

/** What is stored beside the entries of a tape, and what of other tapes is about it. */
export interface Beside {
  /** In order. */
  readonly lines: readonly OwnLine[];
  readonly below: readonly LineBelow[];
  readonly marksAbove: readonly MarkAbove[];
  /** Its own entries with the name or the key of a mark of a merge, in order. */
  readonly marks: readonly MarkRow[];
  readonly batches: readonly BatchRow[];
  readonly isRunRecorded: boolean;
  readonly usage: readonly CallsRow[];
  /** How many touches each position has, in order. */
  readonly touches: readonly { readonly seq: Seq; readonly n: number }[];
  readonly aliases: readonly AliasRow[];
  /** The positions that a bundle brought. */
  readonly adopted: readonly { readonly from_seq: Seq; readonly to_seq: Seq }[];
  readonly inbox: readonly { readonly ulid: string; readonly body: string; readonly queued_at: number }[];
  /** Saved pieces of streams that are not JSON. */
  readonly badChunks: readonly { readonly run: string; readonly idx: number }[];
  /** The first position of an entry at or below its base, or past its head: no reader sees it, and the store writes none. */
  readonly stray: Seq | undefined;
  /** The child of the same parent that has the number before its own. */
  readonly childBefore: number | undefined;
}

/** Whether a bundle brought an entry of a tape. */
export function isAdopted({ adopted }: Beside, seq: Seq): boolean {
  return adopted.some(({ from_seq, to_seq }) => from_seq <= seq && seq <= to_seq);
}

/** The ids of tapes that are verified together, both included. */
export interface Run {
  readonly first: number;
  readonly last: number;
}

/**
 * Reads what is beside the tapes of a run, each table when it is first needed, with one statement in place of one for each
 * tape. Rows of tapes and texts of lines are kept, since several checks look at them.
 */
export class BesideTapes {
  readonly #db: Db;
  readonly #run: Run;
  readonly #tapes = new Map<number, TapeRow>();
  readonly #byUlid = new Map<string, TapeRow>();
  readonly #beside = new Map<number, Beside>();
  readonly #read = new Map<string, ReadonlyMap<number, readonly unknown[]>>();
  readonly #fields = new Map<number, JsonObject | undefined>();
  readonly #parsed = new Map<string, JsonObject>();
  /** The entries of the run, if its tapes are short. */
  readonly entries: KeptEntries | undefined;

  constructor(db: Db, run: Run, { keepsEntries = false }: { readonly keepsEntries?: boolean } = {}) {
    this.#db = db;
    this.#run = run;
    this.entries = keepsEntries ? new KeptEntries(db, run) : undefined;
  }

  /** Reads the rows of the tapes of the run, in order. */
  rows(): readonly TapeRow[] {
    const rows = this.#db.all<TapeRow>(`${selectTape} WHERE t.id BETWEEN @first AND @last ORDER BY t.id`, {
      ...this.#run,
    });
    for (const row of rows) this.#keep(row);
    return rows;
  }

  /** What is beside a tape of the run. */
  of(id: number): Beside {
    const known = this.#beside.get(id);
    if (known !== undefined) return known;
    const fieldsOf = (line: StoredLine) => this.#fieldsOf(line);
    const beside = new BesideTape((sql) => this.#rowsOf(id, sql), fieldsOf);
    this.#beside.set(id, beside);
    return beside;
  }

  /** Parses a stored text. Of short tapes each is parsed once, since several checks read the same entries. */
  parsed(text: string | null): JsonObject {
    if (this.entries === undefined || text === null) return parsed(text);
    const known = this.#parsed.get(text);
    if (known !== undefined) return known;
    const value = parsed(text);
    this.#parsed.set(text, value);
    return value;
  }

  /**
   * The row of a tape, of the run or not.
   * @throws TAPE_CORRUPT when it is missing
   */
  tape(id: number): TapeRow {
    return this.#tapes.get(id) ?? this.#keep(tapeById(this.#db, id));
  }

  /** The row of a session's tape, of the run or not. */
  tapeOf(ulid: unknown): TapeRow | undefined {
    if (typeof ulid !== 'string') return undefined;
    const known = this.#byUlid.get(ulid);
    if (known !== undefined) return known;
    const row = this.#db.get<{ id: number }>('SELECT id FROM tape WHERE ulid = @ulid', { ulid });
    return row === undefined ? undefined : this.tape(row.id);
  }

  #keep(row: TapeRow): TapeRow {
    this.#tapes.set(row.id, row);
    this.#byUlid.set(row.ulid, row);
    return row;
  }

  /** Whether the row of an ancestor of a session is missing. */
  lacksAncestor(tape: TapeRow): boolean {
    for (let at = tape; at.parent_id !== null; at = this.tape(at.parent_id)) {
      if (!this.#has(at.parent_id)) return true;
      // A parent that is younger than its child is reported by the child, and is not followed.
      if (at.parent_id >= at.id) return false;
    }
    return false;
  }

  #has(id: number): boolean {
    return this.#tapes.has(id) || this.#db.get('SELECT 1 FROM tape WHERE id = @id', { id }) !== undefined;
  }

  #rowsOf<Row>(id: number, sql: string): readonly Row[] {
    let byTape = this.#read.get(sql);
    if (byTape === undefined) {
      const rows = this.#db.all<{ readonly tape_id: number }>(sql, { ...this.#run });
      byTape = Map.groupBy(rows, ({ tape_id }) => tape_id);
      this.#read.set(sql, byTape);
    }
    return (byTape.get(id) ?? none) as readonly Row[];
  }

  #fieldsOf({ g, about, ...row }: StoredLine): JsonObject | undefined {
    if (this.#fields.has(g)) return this.#fields.get(g);
    const { line, hash } =
      row.line === null && about !== undefined
        ? (this.#rowsOf<StoredLine>(about, selectLines).find((one) => one.g === g) ?? row)
        : row;
    const fields = line !== null && hashLine(line) === hash ? parsed(line) : undefined;
    this.#fields.set(g, fields);
    return fields;
  }
}

/** What is beside one tape. Several checks look at its lines and marks, and each would make them anew. */
class BesideTape implements Beside {
  readonly #rows: <Row>(sql: string) => readonly Row[];
  readonly #fieldsOf: (line: StoredLine) => JsonObject | undefined;
  #lines: readonly OwnLine[] | undefined;
  #below: readonly LineBelow[] | undefined;
  #marks: readonly MarkRow[] | undefined;

  constructor(
    rows: <Row>(sql: string) => readonly Row[],
    fieldsOf: (line: StoredLine) => JsonObject | undefined,
  ) {
    this.#rows = rows;
    this.#fieldsOf = fieldsOf;
  }

  get lines(): readonly OwnLine[] {
    this.#lines ??= this.#rows<OwnLine & StoredLine>(selectLines).map((row) => {
      const { g, type, peer_id, into, event_id, peer, seq, to_seq } = row;
      return { g, type, peer_id, into, event_id, peer, seq, to_seq, fields: this.#fieldsOf(row) };
    });
    return this.#lines;
  }

  get below(): readonly LineBelow[] {
    this.#below ??= this.#rows<LineBelow & StoredLine>(selectBelow).map((row) => {
      const { g, type, peer_id, into, ulid, reach } = row;
      return { g, type, peer_id, into, ulid, reach, fields: this.#fieldsOf(row) };
    });
    return this.#below;
  }

  get marks(): readonly MarkRow[] {
    if (this.#marks !== undefined) return this.#marks;
    const rows = this.#rows<MarkRow>(selectMarks);
    // Most are found by both their key and their name.
    const bySeq = rows.length === 0 ? rows : [...new Map(rows.map((row) => [row.seq, row])).values()];
    this.#marks = bySeq.toSorted((a, b) => a.seq - b.seq);
    return this.#marks;
  }

  get marksAbove(): readonly MarkAbove[] {
    return this.#rows(selectMarksAbove);
  }

  get batches(): readonly BatchRow[] {
    return this.#rows(selectBatches);
  }

  get isRunRecorded(): boolean {
    return this.#rows(selectOpenRuns).length > 0;
  }

  get usage(): readonly CallsRow[] {
    return this.#rows(selectUsage);
  }

  get touches(): Beside['touches'] {
    return this.#rows(selectTouches);
  }

  get aliases(): readonly AliasRow[] {
    return this.#rows(selectAliases);
  }

  get adopted(): Beside['adopted'] {
    return this.#rows(selectAdopted);
  }

  get inbox(): Beside['inbox'] {
    return this.#rows(selectInbox);
  }

  get badChunks(): Beside['badChunks'] {
    return this.#rows(selectBadChunks);
  }

  get stray(): Seq | undefined {
    return this.#rows<{ readonly seq: Seq }>(selectStrays)[0]?.seq;
  }

  get childBefore(): number | undefined {
    return this.#rows<{ readonly id: number }>(selectChildrenBefore)[0]?.id;
  }
}

interface StoredLine {
  readonly g: number;
  /** Null of a line about another tape of the run, `about`, which has it among its own. */
  readonly line: string | null;
  /** In lower-case hex. */
  readonly hash: string;
  readonly about?: number;
}

const none: readonly never[] = [];

const selectLines = `SELECT l.tape_id, l.g, l.type, l.peer_id, p.name AS "into", l.event_id, p.ulid AS peer, l.seq, l.to_seq,
    l.line, lower(hex(l.hash)) AS hash
  FROM lineage l LEFT JOIN tape p ON p.id = l.peer_id WHERE l.tape_id BETWEEN @first AND @last ORDER BY l.tape_id, l.g`;

/**
 * Lines of descendants that say something of a tape: those that name it, and those of forks that reach one of its own
 * positions.
 */
const selectBelow = `WITH RECURSIVE below(root, id, reach) AS (
    SELECT id, id, 9007199254740991 FROM tape WHERE id BETWEEN @first AND @last
    UNION SELECT b.root, c.id, min(b.reach, c.base_seq) FROM below b JOIN tape c ON c.parent_id = b.id AND c.id > b.id)
  SELECT b.root AS tape_id, l.g, l.type, l.peer_id, NULL AS "into", b.id AS about,
    CASE WHEN b.id NOT BETWEEN @first AND @last THEN l.line END AS line,
    CASE WHEN b.id NOT BETWEEN @first AND @last THEN lower(hex(l.hash)) END AS hash, b.reach, t.ulid
    FROM below b CROSS JOIN lineage l ON l.tape_id = b.id CROSS JOIN tape t ON t.id = b.id CROSS JOIN tape r ON r.id = b.root
    WHERE b.id <> b.root AND (l.peer_id = b.root OR (l.type = 'fork' AND b.reach > r.base_seq))`;

const selectMarksAbove = `WITH RECURSIVE above(child, id) AS (
    SELECT id, parent_id FROM tape WHERE id BETWEEN @first AND @last AND parent_id < id
    UNION SELECT a.child, t.parent_id FROM above a JOIN tape t ON t.id = a.id WHERE t.parent_id < t.id)
  SELECT a.child AS tape_id, t.name, e.seq, e.key, e.payload,
    EXISTS (SELECT 1 FROM adopted d WHERE d.tape_id = a.id AND d.from_seq <= e.seq AND d.to_seq >= e.seq) AS isAdopted
    FROM above a CROSS JOIN tape c ON c.id = a.child CROSS JOIN tape t ON t.id = a.id
      CROSS JOIN entry e ON e.tape_id = a.id AND e.key >= 'merge:' || c.ulid || ':' AND e.key < 'merge:' || c.ulid || ';'`;

const selectMarks = `SELECT e.tape_id, e.seq, e.kind, e.mark, e.name, e.key, e.payload FROM tape t CROSS JOIN entry e
    WHERE t.id BETWEEN @first AND @last AND e.tape_id = t.id AND e.key >= 'merge:' AND e.key < 'merge;'
  UNION ALL
  SELECT e.tape_id, e.seq, e.kind, e.mark, e.name, e.key, e.payload FROM tape t CROSS JOIN entry e
    WHERE t.id BETWEEN @first AND @last AND e.tape_id = t.id AND e.name >= 'merge/' AND e.name < 'merge0' AND e.kind = 'anchor'`;

const selectStrays = `SELECT * FROM (
    SELECT id AS tape_id, coalesce((SELECT min(seq) FROM entry WHERE tape_id = t.id AND seq <= t.base_seq),
      (SELECT min(seq) FROM entry WHERE tape_id = t.id AND seq > t.head_seq)) AS seq
      FROM tape t WHERE id BETWEEN @first AND @last)
  WHERE seq IS NOT NULL`;

const selectBatches =
  'SELECT tape_id, from_seq, to_seq, calls FROM open_calls WHERE tape_id BETWEEN @first AND @last ORDER BY tape_id, from_seq';

const selectOpenRuns = 'SELECT tape_id FROM open_run WHERE tape_id BETWEEN @first AND @last';

const selectUsage = `SELECT tape_id, ${callsColumns} FROM usage WHERE tape_id BETWEEN @first AND @last
  ORDER BY tape_id, first_seq, model`;

const selectTouches = `SELECT tape_id, seq, count(*) AS n FROM touch WHERE tape_id BETWEEN @first AND @last
  GROUP BY tape_id, seq ORDER BY tape_id, seq`;

const selectAliases = `SELECT tape_id, realm, alias, name_key, reason, g FROM alias
  WHERE tape_id BETWEEN @first AND @last ORDER BY tape_id, alias`;

const selectAdopted =
  'SELECT tape_id, from_seq, to_seq FROM adopted WHERE tape_id BETWEEN @first AND @last ORDER BY tape_id, from_seq';

const selectInbox = `SELECT tape_id, ulid, body, queued_at FROM inbox WHERE tape_id BETWEEN @first AND @last
  ORDER BY tape_id, id`;

const selectBadChunks = `SELECT tape_id, run, idx FROM stream_chunk
  WHERE tape_id BETWEEN @first AND @last AND NOT json_valid(chunk) ORDER BY tape_id, run, idx`;

const selectChildrenBefore = `SELECT c.id AS tape_id, b.id FROM tape c CROSS JOIN tape b
  WHERE c.id BETWEEN @first AND @last AND b.parent_id = c.parent_id AND b.ordinal = c.ordinal - 1 AND b.ordinal IS NOT NULL`;
