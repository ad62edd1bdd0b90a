import { crashPoint } from '../crash-point.ts';
import type { ChainedLine, Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { hex, sha256 } from '../entry/hash.ts';
import { isoTime } from '../entry/iso-time.ts';
import { encodeJson } from '../entry/json.ts';
import { tapeName } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from '../tape/append.ts';
import type { TapeRow } from '../tape/tape.ts';
import {
  encodeLine,
  firstLinePrev,
  hashLine,
  type Journal,
  type LineageLine,
  type LineageType,
  type LineIntention,
  rowDigest,
} from './line.ts';

/** What a fork is for. Stored, and rendered as the preamble that the child's model receives. */
export interface Intention {
  readonly nextSteps?: string;
  readonly contextSummary?: string;
  /** What to do when the child completes: `notify_parent` starts a turn of the parent after the merge. */
  readonly triggerOnComplete?: string;
}

/** The facts of an act that the session's row does not have. */
export interface LineageEvent {
  readonly type: LineageType;
  /** The other session: the one that received a merge. */
  readonly into?: TapeRow;
  /** Position of the act on the tape that received it. */
  readonly seq?: Seq;
  /** Position at which that tape had got the result of a merge before. */
  readonly received?: Seq;
  readonly range?: readonly [Seq, Seq] | null;
  readonly intention?: Intention;
  /** Version of the rules by which the text of a merge was collected; absent for a given text. */
  readonly textVersion?: number;
  readonly parentHead?: Uint8Array;
  readonly childHead?: Uint8Array;
  readonly alias?: string;
  readonly reason?: string;
  readonly link?: LinkEvent;
}

/** What a line says of a link. */
interface LinkEvent extends LinkRequest {
  /** The parent in the tree from then on: null for none. */
  readonly parent: Pick<TapeRow, 'id' | 'ulid' | 'name'> | null;
}

/** What an edge between two sessions is, and how it is known. */
export interface LinkRequest {
  /** What the edge is, such as `clear`. Default: `moved`. */
  readonly type?: string;
  /** Whether no record names the edge. A derived edge never replaces one that is not. */
  readonly derived?: boolean;
  /** What it was concluded from, or why it was made. */
  readonly evidence?: string;
  /** Id of the call of the parent that started the session, where its fork does not say it. */
  readonly call?: string;
  /** The position of the parent before the message with that call: the session is shown there, as if forked there. */
  readonly seq?: Seq;
}

/** Adds the lineage line of an act to the outbox, in the act's transaction. */
export function recordLineage({ db, sources }: Writer, tape: TapeRow, event: LineageEvent): void {
  const { link } = event;
  const seq = event.seq ?? link?.seq;
  const parent =
    link === undefined ? { id: tape.parent_id, ulid: tape.parent_ulid, name: tape.parent_name } : link.parent;
  addLine(
    db,
    {
      event_id: sources.newId(),
      type: event.type,
      session_id: tape.name,
      parent_session_id: parent?.name ?? null,
      from_anchor: tape.from_anchor,
      created_at: isoTime(tape.created_at),
      status: graphStatus(tape),
      at: new Date(sources.now()).toISOString(),
      session: tape.ulid,
      parent: parent?.ulid ?? null,
      tape: tapeName(tape.realm, tape.name, tape.incarnation),
      kind: tape.kind,
      ...((event.type === 'session' || event.type === 'fork') && { row: rowDigest(tape) }),
      ...(event.type === 'fork' && {
        base: tape.base_seq,
        ...(tape.spawn_key !== null && { spawn_key: tape.spawn_key }),
      }),
      ...(event.range !== undefined && { range: event.range }),
      ...(event.intention !== undefined && { intention: lineIntention(event.intention) }),
      ...(event.into !== undefined && { into: event.into.ulid, into_session_id: event.into.name }),
      ...(seq !== undefined && { seq }),
      ...(event.received !== undefined && { received: event.received }),
      ...(event.textVersion !== undefined && { text_version: event.textVersion }),
      ...(event.parentHead !== undefined && { parent_head: hex(event.parentHead) }),
      ...(event.childHead !== undefined && { child_head: hex(event.childHead) }),
      ...(event.alias !== undefined && { alias: event.alias }),
      ...(event.reason !== undefined && { reason: event.reason }),
      ...(link !== undefined && {
        edge: link.type ?? movedEdge,
        ...(link.derived === true && { derived: true }),
        ...(link.evidence !== undefined && { evidence: link.evidence }),
        ...(link.call !== undefined && { call: link.call }),
      }),
      lifecycle: tape.lifecycle,
      ...(tape.task !== null && { task: tape.task }),
      ...(tape.delivery !== null && { delivery: tape.delivery }),
    },
    { tape: tape.id, peer: event.into?.id ?? parent?.id ?? null },
  );
}

/** What an edge is that was made by hand, where the caller says nothing else. */
export const movedEdge = 'moved';

/** What a line says of its act: all but its place among the lines. */
export type SaidLine = Omit<LineageLine, 'v' | 'g' | 'prev'>;

/**
 * Adds a line at the end of the lineage, in the caller's transaction.
 * @param about the tape that it is about, and its parent or the one that received a merge
 */
export function addLine(
  db: Db,
  said: SaidLine,
  about: { readonly tape: number; readonly peer: number | null },
): void {
  const row = {
    eventId: said.event_id,
    type: said.type,
    ...about,
    seq: said.seq ?? null,
    to: said.range?.[1] ?? null,
  };
  if (db.chainLine !== undefined) db.chainLine(row, encodeLine({ v: 1, g: 0, ...said, prev: '' }));
  else insertLine(db, said, row);
  crashPoint('lineage/row');
}

/** Returns the number of the last line, 0 without one. */
export function lastLine(db: Db): number {
  return db.get<{ g: number | null }>('SELECT max(g) AS g FROM lineage')?.g ?? 0;
}

function insertLine(db: Db, said: SaidLine, row: ChainedLine): void {
  const last = db.get<{ g: number; hash: Uint8Array }>(
    'SELECT g, hash FROM lineage WHERE g = (SELECT max(g) FROM lineage)',
  );
  const g = (last?.g ?? 0) + 1;
  const line = encodeLine({ v: 1, g, ...said, prev: last === undefined ? firstLinePrev : hex(last.hash) });
  db.run(
    `INSERT INTO lineage (g, event_id, type, tape_id, peer_id, seq, to_seq, line, hash)
       VALUES (@g, @eventId, @type, @tape, @peer, @seq, @to, @line, @hash)`,
    { ...row, g, line, hash: Buffer.from(hashLine(line), 'hex') },
  );
}

/** Returns what a line has of a text of an intention. */
export function cutField(text: string): string {
  return text.slice(0, 200).toWellFormed();
}

function lineIntention(intention: Intention): LineIntention {
  return {
    ...(intention.nextSteps !== undefined && { next_steps: cutField(intention.nextSteps) }),
    ...(intention.contextSummary !== undefined && { context_summary: cutField(intention.contextSummary) }),
    ...(intention.triggerOnComplete !== undefined && {
      trigger_on_complete: cutField(intention.triggerOnComplete),
    }),
    digest: sha256(encodeJson(intention, 'an intention')),
  };
}

/** What an update of the graph file found, other than lines that were missing. */
export interface GraphUpdate {
  /** The file had other lines than the database, and was moved to this name. */
  readonly aside?: string;
  /** The file has other lines than the database, and is still in its place: it could not be moved. */
  readonly blocked?: true;
  /** The file was moved, and a new one could not be written. */
  readonly lagging?: true;
}

/**
 * Appends the missing lines to the graph file, under the write lock, so in one process at a time. The file's
 * tail says which line is next, so each line is written exactly once, whatever process crashed. A file with a
 * line that this database did not write is set aside, and all lines go to a new one: the file is a projection. All
 * lines are compared when the file is not as the last update left it, else its tail alone.
 * @throws GRAPH_DIVERGED when the database has no line yet and the file has records: they are all that is left of
 * another database, which this one would replace
 */
export function drainOutbox(db: Db, journal: Journal): GraphUpdate {
  const waiting = lastLine(db);
  const seen = journal.tail();
  if (seen.g === waiting && !seen.torn && matches(db, seen) && isAsLeft(db, journal)) return {};
  // What is remembered of the file only saves a comparison, so it need not wait for the disk.
  return db.writeBehind(() => {
    crashPoint('outbox/locked');
    const tail = journal.tail();
    if (matches(db, tail) && (isAsLeft(db, journal) || holdsLines(db, journal))) {
      appendMissing(db, journal, tail);
      rememberFile(db, journal);
      return {};
    }
    if (waiting === 0 && tail.g > 0) throw lostDatabase(tail.g);
    const aside = setAside(journal);
    if (aside === undefined) return { blocked: true };
    // A crash here leaves no file: the next open writes all lines.
    try {
      appendMissing(db, journal, journal.tail());
      rememberFile(db, journal);
      return { aside };
    } catch (error) {
      if (!isIo(error)) throw error;
      return { aside, lagging: true };
    }
  });
}

/** Whether the graph file is as the last update left it. */
function isAsLeft(db: Db, journal: Journal): boolean {
  const stamp = journal.stamp?.();
  if (stamp === undefined) return true;
  return db.get<{ value: string }>(`SELECT value FROM home WHERE key = 'graph'`)?.value === stamp;
}

function rememberFile(db: Db, journal: Journal): void {
  const stamp = journal.stamp?.();
  if (stamp === undefined) return;
  db.run(
    `INSERT INTO home (key, value) VALUES ('graph', @stamp) ON CONFLICT (key) DO UPDATE SET value = excluded.value
       WHERE home.value <> excluded.value`,
    { stamp },
  );
}

/** Whether every record of the graph file is the line of its number. */
function holdsLines(db: Db, journal: Journal): boolean {
  return journal.holds?.(linesAfter(db, 0)) ?? true;
}

function* linesAfter(db: Db, first: number): Generator<string> {
  for (let after = first; ; ) {
    const rows = pageAfter(db, after);
    for (const { line } of rows) yield line;
    if (rows.length < pageLines) return;
    after = rows.at(-1)?.g ?? after;
  }
}

const pageLines = 1000;

function pageAfter(db: Db, after: number): readonly { readonly g: number; readonly line: string }[] {
  return db.all('SELECT g, line FROM lineage WHERE g > @after ORDER BY g LIMIT @limit', {
    after,
    limit: pageLines,
  });
}

function appendMissing(db: Db, journal: Journal, tail: ReturnType<Journal['tail']>): void {
  for (let after = tail.g; ; ) {
    const rows = pageAfter(db, after);
    if (rows.length > 0 || (tail.torn && after === tail.g)) {
      crashPoint('outbox/before-append');
      journal.append(rows.map((row) => row.line));
      crashPoint('outbox/appended');
    }
    if (rows.length < pageLines) return;
    after = rows.at(-1)?.g ?? after;
  }
}

/**
 * Refuses to begin a database beside a graph file that has records. A file that cannot be read says nothing.
 * @throws GRAPH_DIVERGED
 */
export function assertNoRecords(journal: Journal): void {
  const g = recordsOf(journal);
  if (g > 0) throw lostDatabase(g);
}

function recordsOf(journal: Journal): number {
  try {
    return journal.tail().g;
  } catch (error) {
    if (isIo(error)) return 0;
    throw error;
  }
}

function lostDatabase(g: number): TapeError {
  return new TapeError(
    'GRAPH_DIVERGED',
    `cannot begin a new database: the graph file beside it has ${g === 1 ? 'a line' : `${g} lines`} of another one`,
    { data: { g } },
  );
}

/** Returns the new name of the file; undefined when it cannot be moved, as in a directory that is read-only. */
function setAside(journal: Journal): string | undefined {
  try {
    return journal.setAside?.();
  } catch (error) {
    if (isIo(error)) return undefined;
    throw error;
  }
}

/** Whether the journal could not read or write its file. */
function isIo(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'GRAPH_IO';
}

function matches(db: Db, tail: { readonly g: number; readonly hash: string }): boolean {
  if (tail.g === 0) return tail.hash === firstLinePrev;
  const row = db.get<{ hash: Uint8Array }>('SELECT hash FROM lineage WHERE g = @g', { g: tail.g });
  return row !== undefined && hex(row.hash) === tail.hash;
}

/** The status in the graph: delivery, else task, else lifecycle. */
export function graphStatus(row: Pick<TapeRow, 'delivery' | 'task' | 'lifecycle'>): string {
  return row.delivery ?? row.task ?? row.lifecycle;
}
