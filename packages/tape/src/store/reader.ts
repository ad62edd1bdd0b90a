import { verifyLineage, verifyRow } from '../check/lineage.ts';
import { type Problem, tapesToVerify, verifyTape } from '../check/verify.ts';
import { loadBlob, loadBlobRange } from '../entry/blob.ts';
import type { Entry, Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import { TapeError } from '../errors.ts';
import { type InboxItem, inboxItems } from '../inbox/inbox.ts';
import type { LineageLine } from '../lineage/line.ts';
import { type LineageQuery, readLineage } from '../lineage/read.ts';
import type { Collected } from '../merge/collect.ts';
import { type ConflictReport, findConflicts } from '../merge/conflicts.ts';
import { mergedBefore } from '../merge/merge.ts';
import { collect, type MergeRequest, planMerge } from '../merge/plan.ts';
import type { Merged } from '../merge/receipt.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { liveRuns, type StreamChunk, savedChunks } from '../tape/chunks.ts';
import { findTape, getTape } from '../tape/find.ts';
import { infoOf, listTapes, type SessionInfo, type SessionQuery } from '../tape/info.ts';
import { hiddenBy, visible } from '../tape/interval.ts';
import { isStart, type Point, resolvePoint } from '../tape/point.ts';
import { readEntries, readMerges } from '../tape/read.ts';
import { type Ref, type TapeRow, tapeById } from '../tape/tape.ts';
import type { ViewPolicy } from '../view/policy.ts';
import { viewEntries } from '../view/source.ts';
import { databaseFaults } from './database-faults.ts';
import type { EntryQuery } from './store.ts';

/** The reading half of a store: no method changes a tape. */
export class SqliteTapeReader {
  protected readonly db: Db;
  protected readonly realm: string;

  protected constructor(db: Db, realm: string) {
    this.db = db;
    this.realm = realm;
  }

  find(ref: Ref): SessionInfo | undefined {
    const tape = findTape(this.db, this.realm, ref);
    return tape === undefined ? undefined : infoOf(tape);
  }

  sessions(query: SessionQuery = {}): readonly SessionInfo[] {
    return listTapes(this.db, this.realm, query);
  }

  resolve(ref: Ref, point: Point): Seq {
    return resolvePoint(this.db, this.need(ref), point);
  }

  *read(ref: Ref, { since, ...query }: EntryQuery = {}): Iterable<Entry> {
    const tape = this.need(ref);
    const after = since === undefined ? 0 : resolvePoint(this.db, tape, since);
    yield* readEntries(this.db, tape, { ...query, from: Math.max(query.from ?? 1, after + 1) });
  }

  *viewEntries(
    ref: Ref,
    { policy = 'last-boundary', at = 'head' }: { policy?: ViewPolicy; at?: Point } = {},
  ): Iterable<Entry> {
    const tape = this.need(ref);
    // Anchors are resolved as of that position, like in the view itself.
    yield* viewEntries(this.db, { ...tape, head_seq: resolvePoint(this.db, tape, at) }, policy);
  }

  merged(child: Ref, request: MergeRequest = {}): Merged | undefined {
    const draft = { ...request, child };
    return mergedBefore(this.db, planMerge(this.db, this.realm, draft), draft);
  }

  checkMerge(child: Ref, request: MergeRequest = {}): ConflictReport {
    return findConflicts(this.db, planMerge(this.db, this.realm, { ...request, child }), request);
  }

  *merges(ref: Ref): Iterable<Entry> {
    yield* readMerges(this.db, this.need(ref));
  }

  hiddenBy(ref: Ref, seq: Seq): Seq | undefined {
    return hiddenBy(this.db, this.need(ref), seq);
  }

  visible(ref: Ref, { at = 'head' }: { readonly at?: Point } = {}): readonly (readonly [Seq, Seq])[] {
    const tape = this.need(ref);
    const head = isStart(tape, at) ? tape.floor_seq : resolvePoint(this.db, tape, at);
    return [...visible(this.db, tape, head)].reverse().map(({ lo, hi }) => [lo + 1, hi]);
  }

  collect(child: Ref, range?: readonly [Seq, Seq]): Collected {
    return collect(this.db, this.need(child), range);
  }

  *lineage({ session, ...query }: LineageQuery = {}): Iterable<LineageLine> {
    const tape = session === undefined ? undefined : this.need(session).id;
    yield* readLineage(this.db, { ...query, tape });
  }

  inbox(ref: Ref): readonly InboxItem[] {
    return inboxItems({ db: this.db }, this.need(ref));
  }

  chunks(ref: Ref, run: string, from = 0): readonly StreamChunk[] {
    return savedChunks(this.db, this.need(ref), run, from);
  }

  liveRuns(ref: Ref): readonly string[] {
    return liveRuns(this.db, this.need(ref));
  }

  blob(hash: string, range?: { readonly from?: number; readonly to?: number }): Uint8Array {
    return range === undefined ? loadBlob(this.db, hash) : loadBlobRange(this.db, hash, range);
  }

  /**
   * Yields what SQLite's own checks report of pages, indexes, references and schema. Reads the whole file.
   */
  *verifyDatabase(): Iterable<Problem> {
    for (const message of databaseFaults(this.db))
      yield { code: 'database-damaged', session: null, seq: null, message };
  }

  *verify(ref?: Ref): Iterable<Problem> {
    if (ref !== undefined) {
      for (const { tape, to } of tapesToVerify(this.db, this.need(ref)))
        yield* guarded(tape.name, verifyTape(this.db, tape, to));
      return;
    }
    yield* guarded(null, verifyTapes(this.db));
    yield* guarded(null, verifyLineage(this.db));
  }

  /** Counts the sessions and entries of the store, or those that a session reads. */
  count(ref?: Ref): { readonly sessions: number; readonly entries: number } {
    if (ref === undefined)
      return (
        this.db.get<{ sessions: number; entries: number }>(
          `SELECT count(*) AS sessions, coalesce(sum(head_seq - base_seq), 0) AS entries FROM tape WHERE lifecycle <> 'staging'`,
        ) ?? { sessions: 0, entries: 0 }
      );
    let sessions = 0;
    let entries = 0;
    for (const { tape, to } of tapesToVerify(this.db, this.need(ref))) {
      sessions += 1;
      entries += Math.max(0, to - tape.base_seq);
    }
    return { sessions, entries };
  }

  /**
   * Returns number and hash (hex) of a lineage line, by default the newest, to compare with the graph file.
   */
  lineageHash(g?: number): { readonly g: number; readonly hash: string } | undefined {
    const row = this.db.get<{ g: number; hash: Uint8Array }>(
      'SELECT g, hash FROM lineage WHERE g = coalesce(@g, (SELECT max(g) FROM lineage))',
      { g: g ?? null },
    );
    return row === undefined ? undefined : { g: row.g, hash: hex(row.hash) };
  }

  close(): void {
    this.db.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  protected need(ref: Ref): TapeRow {
    return getTape(this.db, this.realm, ref);
  }
}

function* verifyTapes(db: Db): Generator<Problem> {
  for (const { id, name } of db.all<{ id: number; name: string }>('SELECT id, name FROM tape ORDER BY id'))
    yield* guarded(name, verifyById(db, id));
}

function* verifyById(db: Db, id: number): Generator<Problem> {
  const tape = tapeById(db, id);
  yield* verifyTape(db, tape);
  yield* verifyRow(db, tape);
}

/**
 * Reports an error while reading as damage of the session that was read, so that the others are still
 * verified.
 */
function* guarded(session: string | null, problems: Iterable<Problem>): Generator<Problem> {
  try {
    yield* problems;
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_CLOSED') throw error;
    const { data } = error as { data?: { seq?: unknown } };
    const seq = typeof data?.seq === 'number' ? data.seq : null;
    yield { code: 'database-damaged', session, seq, message: (error as Error).message };
  }
}
