import { createHash } from 'node:crypto';
import type { Db } from '../db/db.ts';
import { blobHashes } from '../entry/blob.ts';
import { callColumn, titleColumn } from '../entry/column-text.ts';
import { hex } from '../entry/hash.ts';
import { parsed } from '../entry/parsed.ts';
import { encodeLine, isTitleErased, type LineageLine, rowDigest } from '../lineage/line.ts';
import type { OnProgress } from '../progress.ts';
import type { Ref, TapeRow } from '../tape/tape.ts';
import {
  type BundleHeader,
  type BundleScope,
  type BundleTape,
  bundleFormat,
  partVersion,
  pieceBytes,
  wholeVersion,
} from './bundle.ts';
import { type BundlePart, travellingParts } from './part.ts';
import { type Travelling, travelling } from './scope.ts';
import type { Withholding } from './withhold.ts';

/** What was written. */
export interface BundleWritten {
  readonly sessions: number;
  readonly entries: number;
  /** Entries whose content stays here because a secret was found in it. */
  readonly withheld: number;
  /** Entries whose content does not travel: redacted, not here, or not read by the session. */
  readonly hashed: number;
}

interface Writing {
  readonly withholding: Withholding | undefined;
  readonly onProgress: OnProgress | undefined;
}

/** Writes a bundle of a session. */
export function writeBundle(
  db: Db,
  tape: TapeRow,
  { scope, ...how }: Writing & { readonly scope: BundleScope },
): Generator<string, BundleWritten> {
  const { ulid: session, name } = tape;
  return written(
    db,
    { bundle: bundleFormat, v: wholeVersion, session, name, scope },
    { ...how, choose: () => travelling(db, tape, scope), knows: () => false },
  );
}

/** Writes what another side lacks of sessions. */
export function writePart(
  db: Db,
  parts: readonly BundlePart[],
  {
    need,
    ...how
  }: Writing & {
    readonly need: (ref: Ref) => TapeRow;
    readonly knows: (event: string) => boolean;
  },
): Generator<string, BundleWritten> {
  return written(
    db,
    { bundle: bundleFormat, v: partVersion },
    { ...how, choose: () => travellingParts(db, parts, need) },
  );
}

/**
 * Writes a bundle as lines, each with its LF. Which sessions and up to which positions is decided at the beginning; the
 * entries are read page by page, so that a slow reader stops no writer.
 */
function* written(
  db: Db,
  header: BundleHeader,
  {
    choose,
    knows,
    withholding,
    onProgress,
  }: Writing & {
    /** Chooses what travels, in one snapshot with the lines. */
    readonly choose: () => readonly Travelling[];
    /** Whether the other side has the line of an event. */
    readonly knows: (event: string) => boolean;
  },
): Generator<string, BundleWritten> {
  const { tapes, lines } = db.read(() => {
    const chosen = choose();
    return { tapes: chosen, lines: linesOf(db, chosen, knows) };
  });
  const sum = new Sum();
  yield sum.add(header);
  const digests = new Map<string, string>();
  for (const { tape: one, start, end } of tapes) {
    const title = one.title === null ? null : (withholding?.text(one.title) ?? one.title);
    // Rows of earlier versions can have what no bundle takes.
    const row = { ...one, title: titleColumn(title), spawn_call: callColumn(one.spawn_call) };
    const isOther = row.title !== one.title || row.spawn_call !== one.spawn_call;
    // The line of such a session has the digest of a title that was erased.
    if (isOther || isTitleErased(db, one)) digests.set(one.ulid, rowDigest(row));
    const record = { ...recordOf(row), ...end };
    yield sum.add({ tape: header.v === partVersion ? { ...record, ...start } : record });
  }
  for (const text of lines) yield sum.add({ line: withoutSecrets(text, withholding, digests) });
  const pages = new EntryPages(db, withholding);
  const total = tapes.reduce((all, { start, end }) => all + end.head - start.after, 0);
  for (const one of tapes) {
    yield sum.add({ of: one.tape.ulid });
    for (const line of pages.of(one)) {
      yield sum.addLine(line);
      if (pages.entries % 100 === 0) onProgress?.({ done: pages.entries, total });
    }
  }
  const { entries, withheld, hashed } = pages;
  const counted = { sessions: tapes.length, entries };
  yield `${JSON.stringify({ end: { lines: sum.lines, ...counted, sha256: sum.digest() } })}\n`;
  return { ...counted, withheld, hashed };
}

/** Makes lines of records, and digests them. */
class Sum {
  lines = 0;
  readonly #hashes = createHash('sha256');

  add(record: object): string {
    return this.addLine(`${JSON.stringify(record)}\n`);
  }

  addLine(line: string): string {
    this.#hashes.update(line);
    this.lines += 1;
    return line;
  }

  digest(): string {
    return this.#hashes.digest('hex');
  }
}

function recordOf(row: TapeRow): BundleTape {
  return {
    ulid: row.ulid,
    parent: row.parent_ulid,
    name: row.name,
    incarnation: row.incarnation,
    kind: row.kind,
    spawn_key: row.spawn_key,
    ordinal: row.ordinal,
    request: row.request_hash === null ? null : hex(row.request_hash),
    from_seq: row.from_seq,
    from_anchor: row.from_anchor,
    floor: row.floor_seq,
    base: row.base_seq,
    base_hash: hex(row.base_hash),
    head: row.head_seq,
    head_hash: hex(row.head_hash),
    deliver: row.deliver,
    spawn_call: row.spawn_call,
    title: row.title,
    ephemeral: row.ephemeral === 1,
    created_at: row.created_at,
  };
}

interface LineRow {
  readonly tape: number;
  readonly event: string;
  readonly line: string;
}

/**
 * The lines of the lineage about the sessions of a bundle, in order, and those of merges into them: a home that has the
 * child, and lacks the merge, learns of it. Of what the other side has, only the line of a session before the first one
 * that it lacks: that line says what the next one changed.
 */
function linesOf(db: Db, tapes: readonly Travelling[], knows: (event: string) => boolean): readonly string[] {
  const ids = JSON.stringify(tapes.map(({ tape }) => tape.id));
  const lines = db.all<LineRow>(
    `SELECT tape_id AS tape, event_id AS event, line FROM lineage WHERE g IN (
         SELECT g FROM lineage WHERE tape_id IN (SELECT CAST(value AS BIGINT) FROM json_each(@ids))
         UNION SELECT l.g FROM tape c JOIN lineage l ON l.tape_id = c.id
           WHERE c.parent_id IN (SELECT CAST(value AS BIGINT) FROM json_each(@ids)) AND l.type IN ('merge','discard')
             AND l.peer_id IN (SELECT CAST(value AS BIGINT) FROM json_each(@ids))) ORDER BY g`,
    { ids },
  );
  const inFile = new Set(tapes.map(({ tape }) => tape.id));
  const before = new Map<number, LineRow>();
  const begun = new Set<number>();
  const sent = new Set<LineRow>();
  for (const row of lines) {
    if (!begun.has(row.tape) && knows(row.event)) {
      before.set(row.tape, row);
      continue;
    }
    const last = begun.has(row.tape) || !inFile.has(row.tape) ? undefined : before.get(row.tape);
    if (last !== undefined) sent.add(last);
    begun.add(row.tape);
    sent.add(row);
  }
  return lines.filter((row) => sent.has(row)).map(({ line }) => line);
}

function withoutSecrets(
  text: string,
  withholding: Withholding | undefined,
  digests: ReadonlyMap<string, string>,
): string {
  if (withholding === undefined && digests.size === 0) return text;
  const line = JSON.parse(text) as LineageLine;
  const row = digests.get(line.session);
  return encodeLine({
    ...(withholding?.line(line) ?? line),
    ...(line.row !== undefined && row !== undefined && { row }),
  });
}

/** The line of an entry in SQL: SQLite makes it in half of the time that a row and its text take here. */
const lineWith = (content: string): string =>
  `'{"e":' || json_array(seq, kind, mark, name, ref, at, key, lower(hex(hash)), ${content}) || '}' || char(10)`;
const hashedLine = lineWith('lower(hex(body_hash))');
const wholeLine = lineWith('lower(hex(salt)), payload, meta');

interface Row {
  readonly seq: number;
  /** Whether its content travels, if no secret is found in it. */
  readonly isWhole: 0 | 1;
  readonly line: string;
}

/** What the line of a payload with bytes beside it contains. */
const blobMark = String.raw`\"type\":\"blob\"`;
const pageRows = 256;
/** A page has not much more characters of lines than this: the least that it has is one entry. */
const pageChars = 4_000_000;

/** Reads the entries of sessions, and makes lines of them and of their bytes. Bytes travel once. */
class EntryPages {
  entries = 0;
  withheld = 0;
  hashed = 0;
  readonly #db: Db;
  readonly #withholding: Withholding | undefined;
  readonly #sent = new Set<string>();
  readonly #select: string;

  constructor(db: Db, withholding: Withholding | undefined) {
    this.#db = db;
    this.#withholding = withholding;
    const isWhole = 'payload IS NOT NULL AND salt IS NOT NULL AND seq > @lo AND seq <= @hi';
    this.#select = `SELECT seq, ${isWhole} AS isWhole, CASE WHEN ${isWhole} THEN ${wholeLine} ELSE ${hashedLine} END AS line
      FROM entry WHERE tape_id = @id AND seq > @after AND seq <= @to ORDER BY seq LIMIT @limit`;
  }

  *of({ tape, shown: { lo, hi }, start, end }: Travelling): Generator<string> {
    let limit = Math.min(pageRows, this.#db.pageRows.first);
    for (let after = start.after; after < end.head; ) {
      const rows = this.#db.all<Row>(this.#select, { id: tape.id, after, to: end.head, limit, lo, hi });
      let chars = 0;
      for (const row of rows) {
        this.entries += 1;
        if (row.isWhole === 0) this.hashed += 1;
        const isRead = row.isWhole === 1 && (this.#withholding !== undefined || row.line.includes(blobMark));
        if (isRead) yield* this.#examined(tape, row);
        else yield row.line;
        chars += row.line.length;
      }
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.seq;
      const allowed = Math.floor((rows.length * pageChars) / Math.max(1, chars));
      limit = Math.max(1, Math.min(pageRows, 4 * rows.length, allowed));
    }
  }

  /** The line of an entry without its content where that has a secret, else behind the bytes that it refers to. */
  *#examined({ id }: TapeRow, { seq, line }: Row): Generator<string> {
    const [payload, meta] = contentIn(line);
    const hashes = line.includes(blobMark) ? new Set(blobHashes(parsed(payload))) : [];
    const hasSecret =
      this.#withholding?.isIn({ payload, meta }) === true || [...hashes].some((one) => this.#hasSecret(one));
    if (!hasSecret) {
      for (const one of hashes) if (!this.#sent.has(one)) yield* this.#pieces(one);
      yield line;
      return;
    }
    this.withheld += 1;
    const hashed = this.#db.get<Pick<Row, 'line'>>(
      `SELECT ${hashedLine} AS line FROM entry WHERE tape_id = @id AND seq = @seq`,
      { id, seq },
    );
    if (hashed !== undefined) yield hashed.line;
  }

  #hasSecret(of: string): boolean {
    const bytes = this.#withholding === undefined ? undefined : this.#bytes(of);
    return bytes !== undefined && this.#withholding?.isInBytes(bytes) === true;
  }

  #bytes(of: string): Uint8Array | undefined {
    return this.#db.get<{ bytes: Uint8Array }>('SELECT bytes FROM blob WHERE hash = @hash', {
      hash: Buffer.from(of, 'hex'),
    })?.bytes;
  }

  *#pieces(of: string): Generator<string> {
    const bytes = this.#bytes(of);
    // Bytes that are gone are damage, which their home reports.
    if (bytes === undefined) return;
    this.#sent.add(of);
    for (let from = 0; from === 0 || from < bytes.byteLength; from += pieceBytes) {
      const piece = bytes.subarray(from, from + pieceBytes);
      const text = Buffer.from(piece).toString('base64');
      yield `${JSON.stringify({ b: [of, bytes.byteLength, from, text] })}\n`;
    }
  }
}

/** The payload and the meta of an entry, the last fields of its line. */
function contentIn(line: string): readonly [payload: string, meta: string | null] {
  const { e } = JSON.parse(line) as { readonly e: readonly unknown[] };
  return [e.at(-2) as string, e.at(-1) as string | null];
}
