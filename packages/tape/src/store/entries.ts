import { crashPoint } from '../crash-point.ts';
import { loadBlob, loadBlobRange } from '../entry/blob.ts';
import { type Encoded, encodeDraft } from '../entry/encode.ts';
import type { Draft, Entry, Seq } from '../entry/entry.ts';
import { TapeError } from '../errors.ts';
import {
  ownerOfSeq,
  previewRedaction,
  type Redacted,
  type RedactPreview,
  redactEntries,
} from '../history/redact.ts';
import { markErased, wipeFile } from '../history/wipe.ts';
import {
  type SearchPage,
  type SearchPlace,
  type SearchQuery,
  type SearchResult,
  searchEntries,
  searchLimit,
  searchPage,
} from '../search/search.ts';
import { searchBudget, updateIndex } from '../search/text-index.ts';
import { type Appended, receipt, repeatedOnly, repetitions, writeEncoded } from '../tape/append.ts';
import { dropChunks } from '../tape/chunks.ts';
import { type AppendHead, assertHead } from '../tape/head.ts';
import { settleDead } from '../tape/leftovers.ts';
import { type Point, resolvePoint } from '../tape/point.ts';
import { readEntries } from '../tape/read.ts';
import { assertKept, type Ref } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import { erasingImports } from './imports.ts';
import type { InProcess } from './in-process.ts';
import { keyedDrafts } from './keys.ts';
import {
  type AppendOptions,
  assertArgument,
  assertOptions,
  type ByteRange,
  type EntryQuery,
  type ErasureOptions,
  fieldsOf,
} from './options.ts';
import type { Entries } from './store.ts';

/** `store.entries` of a store in this process. */
export interface EntriesInProcess extends Omit<InProcess<Entries>, 'redact'> {
  /** See `Entries.redact`. */
  readonly redact: {
    (ref: Ref, point: Point, reason: string, o?: ErasureOptions): Redacted;
    (ref: Ref, points: readonly Point[], reason: string, o?: ErasureOptions): readonly Redacted[];
  };
}

/** Makes `store.entries`. */
export function entriesOn(at: Connection): EntriesInProcess {
  const { db, realm, writer } = at;

  function appendTo(
    tape: AppendHead,
    drafts: readonly Encoded[],
    { lease, expectHead, settles }: AppendOptions,
  ): Appended {
    const repeated = repetitions(writer, tape, drafts);
    const before = repeatedOnly(tape, repeated);
    if (before !== undefined) return before;
    assertKept(tape, 'append to');
    const isFree = lease === undefined && tape.is_leased === 0;
    const epoch = isFree ? tape.epoch + 1 : at.epoch(tape, lease);
    assertHead(tape, expectHead, 'append to');
    if (drafts.length === 0) return receipt({ tape, seqs: [], added: 0 });
    const hasDead = lease === undefined && tape.is_live === 1;
    const now = hasDead ? settleDead(writer, tape, { epoch, but: settles }) : tape;
    // What was settled is before the batch.
    if (now !== tape) assertHead(now, expectHead, 'append to');
    return receipt(writeEncoded(writer, now, drafts, { epoch, repeated }));
  }

  function redactAll(
    ref: Ref,
    points: readonly Point[],
    { reason, lease, wipe = true }: ErasureOptions & { readonly reason: string },
  ): readonly Redacted[] {
    const erase = () => {
      const tape = at.need(ref);
      const redacted = redactEntries(writer, tape, {
        seqs: points.map((point) => resolvePoint(db, tape, point)),
        reason,
        epochOf: (owner) => at.epoch(owner, lease),
        settles: lease === undefined,
      });
      if (redacted.some(({ repeated }) => !repeated)) markErased(writer);
      return redacted;
    };
    const done = erasingImports(at, () => db.writeAndWipe(erase));
    crashPoint('redact/before-checkpoint');
    const logEmptied = wipe && wipeFile(db);
    return done.map((one) => ({ ...one, logEmptied }));
  }

  function redact(ref: Ref, point: Point, reason: string, o?: ErasureOptions): Redacted;
  function redact(
    ref: Ref,
    points: readonly Point[],
    reason: string,
    o?: ErasureOptions,
  ): readonly Redacted[];
  function redact(
    ref: Ref,
    what: Point | readonly Point[],
    reason: string,
    o: ErasureOptions = {},
  ): Redacted | readonly Redacted[] {
    assertOptions(o, fieldsOf['entries.redact'], 'redact an entry of', at.named(ref));
    if (typeof what === 'object') {
      assertArgument(what, 'list', `redact entries of '${at.named(ref)()}'`, 'the positions');
      return redactAll(ref, what, { ...o, reason });
    }
    const [redacted] = redactAll(ref, [what], { ...o, reason });
    if (redacted === undefined) throw new TypeError('a redaction of one entry has one receipt');
    return redacted;
  }

  return {
    append(ref: Ref, batch: readonly Draft[], o: AppendOptions = {}): Appended {
      assertOptions(o, fieldsOf['entries.append'], 'append to', at.named(ref));
      // Encodes before taking the lock, since that is most of the work.
      const drafts = keyedDrafts(batch, o.key).map(encodeDraft);
      if (drafts.length === 0 && o.settles === undefined)
        throw new TapeError('TAPE_BAD_ENTRY', 'cannot append: the batch is empty');
      return db.write(() => {
        const tape = at.head(ref);
        const appended = appendTo(tape, drafts, o);
        if (o.settles !== undefined) {
          crashPoint('settle/appended');
          dropChunks(db, tape, o.settles);
        }
        return appended;
      });
    },

    *read(ref: Ref, given: EntryQuery = {}): Iterable<Entry> {
      assertOptions(given, fieldsOf['entries.read'], 'read', at.named(ref));
      const { since, ...query } = given;
      const tape = at.need(ref);
      const after = since === undefined ? 0 : resolvePoint(db, tape, since);
      yield* readEntries(db, tape, { ...query, from: Math.max(query.from ?? 1, after + 1) });
    },

    resolve(ref: Ref, point: Point): Seq {
      return resolvePoint(db, at.need(ref), point);
    },

    blob(hash: string, range?: ByteRange): Uint8Array {
      assertArgument(hash, 'text', 'read a blob', 'the hash');
      if (range === undefined) return loadBlob(db, hash);
      assertOptions(range, fieldsOf['entries.blob'], 'read blob', hash);
      return loadBlobRange(db, hash, range);
    },

    search(query: SearchQuery): SearchResult {
      assertSearch(query);
      if (!at.readonly) updateIndex(db, searchBudget(query));
      return db.read(() => searchEntries(db, realm, query));
    },

    redact,

    previewRedact(ref: Ref, point: Point): RedactPreview {
      return db.read(() => {
        const tape = at.need(ref);
        const seq = resolvePoint(db, tape, point);
        return previewRedaction(writer, ownerOfSeq(writer, tape, seq), seq);
      });
    },
  };
}

/** Searches the next page of a database that keeps the words of each entry; `found`: how many hits there are already. */
export function searchOn(
  { db, realm }: Connection,
  query: SearchQuery,
  { from, found }: { readonly from: SearchPlace | undefined; readonly found: number },
): SearchPage {
  assertSearch(query);
  const { limit = searchLimit } = query;
  return db.read(() => searchPage(db, realm, query, { from, limit: limit - found }));
}

function assertSearch(query: SearchQuery): void {
  assertOptions(query, fieldsOf['entries.search'], 'search');
  assertArgument(query.text, 'text', 'search', 'text');
}
