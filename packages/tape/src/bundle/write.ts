import { createHash } from 'node:crypto';
import { blobHashes } from '../entry/blob.ts';
import { hex } from '../entry/hash.ts';
import { parsed } from '../entry/parsed.ts';
import { encodeLine, type LineageLine, rowDigest } from '../lineage/line.ts';
import type { OnProgress } from '../progress.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { TapeRow } from '../tape/tape.ts';
import {
  type BundleEntry,
  type BundleScope,
  type BundleTape,
  bundleFormat,
  bundleVersion,
  pieceBytes,
} from './bundle.ts';
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

/**
 * Writes a bundle as lines, each with its LF. Which sessions and up to which positions is decided at the beginning; the
 * entries are read page by page, so that a slow reader stops no writer.
 */
export function* writeBundle(
  db: Db,
  tape: TapeRow,
  {
    scope,
    withholding,
    onProgress,
  }: {
    readonly scope: BundleScope;
    readonly withholding: Withholding | undefined;
    readonly onProgress: OnProgress | undefined;
  },
): Generator<string, BundleWritten> {
  const { tapes, lines } = db.read(() => {
    const chosen = travelling(db, tape, scope);
    return { tapes: chosen, lines: linesOf(db, chosen) };
  });
  const sum = new Sum();
  yield sum.add({ bundle: bundleFormat, v: bundleVersion, session: tape.ulid, name: tape.name, scope });
  const digests = new Map<string, string>();
  for (const { tape: one } of tapes) {
    const title = one.title === null ? null : (withholding?.text(one.title) ?? one.title);
    // The line of a purged session has the digest of a title that was erased.
    if (title !== one.title || one.lifecycle === 'purged')
      digests.set(one.ulid, rowDigest({ ...one, title }));
    yield sum.add({ tape: recordOf({ ...one, title }) });
  }
  for (const text of lines) yield sum.add({ line: withoutSecrets(text, withholding, digests) });
  const pages = new EntryPages(db, withholding);
  const total = tapes.reduce((all, { tape: one }) => all + one.head_seq - one.base_seq, 0);
  for (const one of tapes) {
    yield sum.add({ of: one.tape.ulid });
    for (const record of pages.of(one)) {
      yield sum.add(record);
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
    const line = `${JSON.stringify(record)}\n`;
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

/**
 * The lines of the lineage about the sessions of a bundle, in order, and those of merges into them: a home that has the
 * child, and lacks the merge, learns of it.
 */
function linesOf(db: Db, tapes: readonly Travelling[]): readonly string[] {
  const ids = JSON.stringify(tapes.map(({ tape }) => tape.id));
  return db
    .all<{ line: string }>(
      `SELECT line FROM lineage WHERE g IN (
         SELECT g FROM lineage WHERE tape_id IN (SELECT value FROM json_each(@ids))
         UNION SELECT l.g FROM tape c JOIN lineage l ON l.tape_id = c.id
           WHERE c.parent_id IN (SELECT value FROM json_each(@ids)) AND l.type IN ('merge','discard')
             AND l.peer_id IN (SELECT value FROM json_each(@ids))) ORDER BY g`,
      { ids },
    )
    .map(({ line }) => line);
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

interface Row extends BundleEntry {
  readonly id: number;
}

const columns = `id, seq, kind, mark, name, ref, at, key, lower(hex(hash)) AS hash, lower(hex(body_hash)) AS body,
  CASE WHEN salt IS NOT NULL THEN lower(hex(salt)) END AS salt, payload, meta`;
const pageRows = 256;
/** A page has not much more characters of payloads than this: the least that it has is one entry. */
const pageChars = 4_000_000;

/** Reads the entries of sessions, and makes records of them and of their bytes. Bytes travel once. */
class EntryPages {
  entries = 0;
  withheld = 0;
  hashed = 0;
  readonly #db: Db;
  readonly #withholding: Withholding | undefined;
  readonly #sent = new Set<string>();

  constructor(db: Db, withholding: Withholding | undefined) {
    this.#db = db;
    this.#withholding = withholding;
  }

  *of({ tape, shown }: Travelling): Generator<object> {
    let limit = pageRows;
    for (let after = tape.base_seq; after < tape.head_seq; ) {
      const rows = this.#db.all<Row>(
        `SELECT ${columns} FROM entry WHERE tape_id = @id AND seq > @after AND seq <= @to ORDER BY seq LIMIT @limit`,
        { id: tape.id, after, to: tape.head_seq, limit },
      );
      let chars = 0;
      for (const row of rows) {
        yield* this.#recordsOf(row, row.seq > shown.lo && row.seq <= shown.hi);
        chars += (row.payload?.length ?? 0) + (row.meta?.length ?? 0);
      }
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.seq;
      limit = Math.max(1, Math.min(pageRows, Math.floor((rows.length * pageChars) / Math.max(1, chars))));
    }
  }

  *#recordsOf(row: Row, isShown: boolean): Generator<object> {
    const { seq, kind, mark, name, ref, at, key, hash: own, body, salt, payload, meta } = row;
    this.entries += 1;
    const link = [seq, kind, mark, name, ref, at, key, own];
    if (!isShown || payload === null || salt === null) {
      this.hashed += 1;
      yield { e: [...link, body] };
      return;
    }
    const hashes = payload.includes('"type":"blob"') ? new Set(blobHashes(parsed(payload))) : [];
    const hasSecret =
      this.#withholding?.isIn({ payload, meta }) === true || [...hashes].some((one) => this.#hasSecret(one));
    if (hasSecret) {
      this.withheld += 1;
      yield { e: [...link, body] };
      return;
    }
    for (const one of hashes) if (!this.#sent.has(one)) yield* this.#pieces(one);
    yield { e: [...link, salt, payload, meta] };
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

  *#pieces(of: string): Generator<object> {
    const bytes = this.#bytes(of);
    // Bytes that are gone are damage, which their home reports.
    if (bytes === undefined) return;
    this.#sent.add(of);
    for (let from = 0; from === 0 || from < bytes.byteLength; from += pieceBytes) {
      const piece = bytes.subarray(from, from + pieceBytes);
      yield { b: [of, bytes.byteLength, from, Buffer.from(piece).toString('base64')] };
    }
  }
}
