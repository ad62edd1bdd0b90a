import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import { blobHashes, dropUnneeded } from '../entry/blob.ts';
import type { Draft, Seq } from '../entry/entry.ts';
import { parsed } from '../entry/parsed.ts';
import { withRedactionIndex } from '../history/redaction-index.ts';
import { markErased } from '../history/wipe.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import { isRunOpen, saveRun } from '../tape/open-run.ts';
import type { TapeRow } from '../tape/tape.ts';

/** A tape whose content is erased, and the epoch of the redactions. */
export interface Erasing {
  readonly tape: TapeRow;
  readonly epoch: number;
}

/** What was erased at once. */
export interface Erasure {
  /** How many entries lost their content. */
  readonly erased: number;
  /** Whether nothing is left of it. */
  readonly isWhole: boolean;
}

/**
 * Erases the content of all own entries of some tapes, as redactions do, and what is stored beside these, in the caller's
 * transaction, which marks that the file may still have it, unless `wipe` is false. Once `most` entries or some more have lost their content, the rest
 * is left to another transaction.
 */
export function eraseTapes(
  writer: Writer,
  erasing: readonly Erasing[],
  {
    reason,
    wipe = true,
    most = Number.POSITIVE_INFINITY,
  }: { readonly reason: string; readonly wipe?: boolean; readonly most?: number },
): Erasure {
  const { db } = writer;
  let [erased, isWhole] = [0, true];
  if (wipe) markErased(writer);
  const reads = erasing.reduce((sum, { tape }) => sum + (tape.head_seq - tape.base_seq) ** 2, 0);
  withRedactionIndex(db, reads, () => {
    for (const { tape, epoch } of erasing) {
      const own = eraseEntries(writer, tape, { reason, epoch, most: most - erased });
      erased += own.erased;
      isWhole &&= own.isWhole;
      if (!isWhole) break;
      emptyBeside(db, tape);
    }
  });
  return { erased, isWhole };
}

/**
 * The entries that are erased: those with content, here or where a bundle left it. A rewind has none, and a redaction
 * keeps its reason.
 */
export const hasContent: string = `kind NOT IN ('redaction','rewind') AND (payload IS NOT NULL
  OR EXISTS (SELECT 1 FROM absent a WHERE a.tape_id = entry.tape_id AND a.seq = entry.seq))`;

interface Body {
  readonly id: number;
  readonly seq: Seq;
  readonly isRedacted: 0 | 1;
}

const pageRows = 500;

/** Erases the content of the entries of a tape. The redactions come behind its head. */
function eraseEntries(
  writer: Writer,
  tape: TapeRow,
  { reason, epoch, most }: { readonly reason: string; readonly epoch: number; readonly most: number },
): Erasure {
  const { db } = writer;
  let now = tape;
  let isWhole = false;
  const ids: number[] = [];
  for (let after = tape.base_seq; ; ) {
    // The sign keeps the positions of redactions from being read one after another: their targets have an index.
    const page = db.all<Body>(
      `SELECT id, seq, EXISTS (SELECT 1 FROM entry r WHERE r.tape_id = entry.tape_id AND r.mark = 'redaction'
           AND r.ref = entry.seq AND +r.seq <= @head) AS isRedacted
         FROM entry WHERE tape_id = @tape AND seq > @after AND seq <= @head AND ${hasContent} ORDER BY seq LIMIT @limit`,
      { tape: tape.id, after, head: tape.head_seq, limit: pageRows },
    );
    isWhole = page.length === 0;
    if (isWhole || ids.length >= most) break;
    // A bundle may have brought a redaction alone.
    const drafts = page
      .filter(({ isRedacted }) => isRedacted === 0)
      .map(
        ({ seq }): Draft => ({ kind: 'redaction', mark: 'redaction', ref: seq, payload: { seq, reason } }),
      );
    if (drafts.length > 0) now = writeEntries(writer, now, drafts, epoch).tape;
    crashPoint('purge/entries');
    for (const { id, seq } of page) {
      db.run('UPDATE entry SET payload = NULL, meta = NULL, salt = NULL WHERE id = @id', { id });
      // What was redacted is gone for good: nothing is missing here.
      db.run('DELETE FROM absent WHERE tape_id = @tape AND seq = @seq', { tape: tape.id, seq });
    }
    ids.push(...page.map(({ id }) => id));
    after = page.at(-1)?.seq ?? after;
  }
  db.forgetWords(ids);
  crashPoint('purge/bodies');
  return { erased: ids.length, isWhole };
}

/** Removes what is stored of a session beside its entries: bytes, sums, an inbox, what was saved of an answer, its title. */
function emptyBeside(db: Db, { id }: TapeRow): void {
  const own = { id };
  const posted = db
    .all<{ body: string }>('SELECT body FROM inbox WHERE tape_id = @id', own)
    .flatMap(({ body }) => blobHashes(parsed(body)));
  const refs = 'FROM blob_ref WHERE entry_id IN (SELECT id FROM entry WHERE tape_id = @id)';
  const hashes = db.all<{ hash: Uint8Array }>(`SELECT DISTINCT hash ${refs}`, own).map(({ hash }) => hash);
  db.run(`DELETE ${refs}`, own);
  for (const table of ['inbox', 'stream_chunk', 'touch', 'usage'])
    db.run(`DELETE FROM ${table} WHERE tape_id = @id`, own);
  dropUnneeded(db, [...hashes, ...posted.map((hash) => Buffer.from(hash, 'hex'))]);
  saveRun(db, id, isRunOpen(db, id));
  db.run('UPDATE tape SET title = NULL WHERE id = @id', own);
  crashPoint('purge/beside');
}
