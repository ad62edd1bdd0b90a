import type { Db, SqlValue } from '../db/db.ts';
import { PageSize } from '../db/page-size.ts';
import { clientCalls } from '../entry/client-calls.ts';
import type { Entry, EntryKind, Mark, Meta, Seq } from '../entry/entry.ts';
import { isObject, type Json } from '../entry/json.ts';
import { tapeName } from '../entry/name.ts';
import { sourceTime } from '../entry/source-time.ts';
import { TapeError } from '../errors.ts';
import { isRareKind } from '../sqlite/schema.ts';
import { type Segment, segments } from './interval.ts';
import { batchesIn } from './open-calls.ts';
import { type TapeRow, tapeById } from './tape.ts';

/** The columns of `entry` that a reader receives. */
export interface StoredEntry {
  readonly id: number;
  readonly seq: number;
  readonly kind: string;
  readonly mark: string | null;
  readonly name: string | null;
  readonly ref: number | null;
  readonly payload: string | null;
  readonly meta: string | null;
  readonly at: number;
  readonly key: string | null;
  readonly hash: string;
}

/** Selects the hash as text: a buffer per row costs more than the rest of the row. */
const columns = 'id, seq, kind, mark, name, ref, payload, meta, at, key, lower(hex(hash)) AS hash';

/** Selects entries of a session; all bounds are inclusive. */
export interface EntryQuery {
  readonly from?: Seq;
  readonly to?: Seq;
  readonly kind?: EntryKind;
  /** Only anchors and events of this name. */
  readonly name?: string;
  /** Only anchors and events whose name begins with this: `merge/` selects the marks of merges. */
  readonly namePrefix?: string;
  /** Only the entry with this key, as entries have it: one that a caller gave begins with `u:`. */
  readonly key?: string;
  /** Only messages with client-side tool calls, found without reading other entries. */
  readonly calls?: boolean;
  /** True: only the session's own entries; false: only inherited ones. */
  readonly own?: boolean;
  /** Only the last N, in ascending order. */
  readonly last?: number;
  readonly limit?: number;
}

/**
 * Reads the entries of a session in order, page by page: no statement stays open between pages, so a slow
 * reader never blocks a writer.
 */
export function* readEntries(db: Db, tape: TapeRow, query: EntryQuery = {}): Generator<Entry> {
  const lo = Math.max(query.own === true ? tape.base_seq : tape.floor_seq, (query.from ?? 1) - 1);
  const hi = Math.min(query.own === false ? tape.base_seq : tape.head_seq, query.to ?? tape.head_seq);
  const { namePrefix } = query;
  if (namePrefix !== undefined) {
    yield* readNamed(db, tape, { lo, hi, query, namePrefix });
    return;
  }
  if (query.calls === true) {
    yield* readCalls(db, tape, { lo, hi, query });
    return;
  }
  if (query.last !== undefined) {
    yield* readLast(db, tape, { lo, hi, only: query, last: query.last });
    return;
  }
  const size = new PageSize(db);
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  for (const segment of segments(db, tape, lo, hi).reverse()) {
    const toEntry = entriesOf(db, tape, segment);
    for (let after = segment.lo; left > 0; ) {
      const limit = Math.min(size.next(), left);
      const rows = page(db, { ...segment, lo: after }, query, limit, 'ASC');
      size.took(rows);
      for (const row of rows) yield toEntry(row);
      left -= rows.length;
      after = rows.at(-1)?.seq ?? segment.hi;
      if (rows.length < limit || after >= segment.hi) break;
    }
  }
}

/** Reads the messages with client-side calls: each is in a batch, whose positions are stored. */
function* readCalls(
  db: Db,
  tape: TapeRow,
  { lo, hi, query }: { lo: Seq; hi: Seq; query: EntryQuery },
): Generator<Entry> {
  const { last, limit = Number.POSITIVE_INFINITY } = query;
  if (last === undefined) {
    let left = limit;
    for (const entry of callsIn(db, tape, { lo, hi, query, order: 'ASC' })) {
      if (left <= 0) return;
      yield entry;
      left -= 1;
    }
    return;
  }
  const found: Entry[] = [];
  for (const entry of callsIn(db, tape, { lo, hi, query, order: 'DESC' })) {
    if (found.length >= last) break;
    found.push(entry);
  }
  yield* found.reverse();
}

function* callsIn(
  db: Db,
  tape: TapeRow,
  { lo, hi, query, order }: { lo: Seq; hi: Seq; query: EntryQuery; order: 'ASC' | 'DESC' },
): Generator<Entry> {
  const { kind = 'message', name, key } = query;
  if (kind !== 'message') return;
  const newestFirst = segments(db, tape, lo, hi);
  const size = new PageSize(db);
  for (const segment of order === 'DESC' ? newestFirst : newestFirst.reverse()) {
    const toEntry = entriesOf(db, tape, segment);
    for (const batch of batchesIn(db, segment, order))
      for (let { lo: after, hi: to } = batch; after < to; ) {
        const only = { kind, ...(name !== undefined && { name }), ...(key !== undefined && { key }) };
        const limit = size.next();
        const rows = page(db, { ...segment, lo: after, hi: to }, only, limit, order);
        size.took(rows);
        for (const row of rows) {
          const entry = toEntry(row);
          if (clientCalls(entry.payload).length > 0) yield entry;
        }
        const end = rows.at(-1)?.seq;
        if (end === undefined || rows.length < limit) break;
        if (order === 'ASC') after = end;
        else to = end - 1;
      }
  }
}

function readLast(
  db: Db,
  tape: TapeRow,
  { lo, hi, only, last }: { lo: Seq; hi: Seq; only: Only; last: number },
): Entry[] {
  const entries: Entry[] = [];
  for (const segment of segments(db, tape, lo, hi)) {
    if (entries.length >= last) break;
    const toEntry = entriesOf(db, tape, segment);
    for (const row of page(db, segment, only, last - entries.length, 'DESC')) entries.push(toEntry(row));
  }
  return entries.reverse();
}

/** The condition for a kind. The likelihood lets SQLite seek a rare one, in place of reading all positions. */
function ofKind(kind: EntryKind): string {
  const isRare = kind !== 'message' && kind !== 'tool-result' && kind !== 'event';
  return isRare ? `AND likelihood(kind = @kind, 0.001) AND ${isRareKind}` : 'AND kind = @kind';
}

/** The condition for a name. Without the likelihood SQLite reads all positions: it orders them by one index as by the other. */
const ofName = 'AND likelihood(name = @name, 0.001)';

/** Filters the entries of a segment. */
type Only = Pick<EntryQuery, 'kind' | 'name' | 'key'>;

function page(
  db: Db,
  { tapeId, lo, hi }: Segment,
  { kind, name, key }: Only,
  limit: number,
  order: 'ASC' | 'DESC',
): StoredEntry[] {
  if (kind === undefined && name === undefined && key === undefined)
    return db.all(positions[order], [tapeId, lo, hi, limit]);
  const params: Record<string, SqlValue> = {
    tapeId,
    lo,
    hi,
    limit,
    ...(kind !== undefined && { kind }),
    ...(name !== undefined && { name }),
    ...(key !== undefined && { key }),
  };
  return db.all<StoredEntry>(
    `SELECT ${columns} FROM entry WHERE tape_id = @tapeId AND seq > @lo AND seq <= @hi
       ${name === undefined ? '' : ofName}
       ${key === undefined ? '' : 'AND key = @key'}
       ${kind === undefined ? '' : ofKind(kind)} ORDER BY seq ${order} LIMIT @limit`,
    params,
  );
}

/** The statements of most pages: a chain of forks has a short page of each. */
const positions = {
  ASC: `SELECT ${columns} FROM entry WHERE tape_id = ? AND seq > ? AND seq <= ? ORDER BY seq ASC LIMIT ?`,
  DESC: `SELECT ${columns} FROM entry WHERE tape_id = ? AND seq > ? AND seq <= ? ORDER BY seq DESC LIMIT ?`,
} as const;

/**
 * Reads the entries whose name begins with a prefix. An index on names finds their positions, in another order
 * than that of the tape, without reading other entries.
 */
function* readNamed(
  db: Db,
  tape: TapeRow,
  { lo, hi, query, namePrefix }: { lo: Seq; hi: Seq; query: EntryQuery; namePrefix: string },
): Generator<Entry> {
  const { kind, name, key, last, limit } = query;
  const named = segments(db, tape, lo, hi).flatMap((segment) => {
    const toEntry = entriesOf(db, tape, segment);
    // The sign keeps SQLite from searching by position.
    return db
      .all<{ seq: Seq }>(
        `SELECT seq FROM entry WHERE tape_id = @tapeId AND name >= @namePrefix AND name < @end
           AND +seq > @lo AND +seq <= @hi
           ${name === undefined ? '' : 'AND name = @name'} ${kind === undefined ? '' : 'AND kind = @kind'}
           ${key === undefined ? '' : 'AND key = @key'}`,
        {
          ...segment,
          namePrefix,
          end: `${namePrefix}\u{10ffff}`,
          ...(kind !== undefined && { kind }),
          ...(name !== undefined && { name }),
          ...(key !== undefined && { key }),
        },
      )
      .map(({ seq }) => ({ tapeId: segment.tapeId, seq, toEntry }));
  });
  named.sort((a, b) => a.seq - b.seq);
  const asked = last === undefined ? named.slice(0, limit) : last > 0 ? named.slice(-last) : [];
  for (const { tapeId, seq, toEntry } of asked) {
    const row = db.get<StoredEntry>(`SELECT ${columns} FROM entry WHERE tape_id = @tapeId AND seq = @seq`, {
      tapeId,
      seq,
    });
    if (row !== undefined) yield toEntry(row);
  }
}

/** Returns one entry of a session, own or inherited. */
export function entryAt(db: Db, tape: TapeRow, seq: Seq): Entry | undefined {
  const [entry] = readEntries(db, tape, { from: seq, to: seq });
  return entry;
}

/**
 * Returns one entry of a session.
 * @throws TAPE_NO_SEQ when the session has no such position
 */
export function getEntry(db: Db, tape: TapeRow, seq: Seq): Entry {
  const entry = entryAt(db, tape, seq);
  if (entry === undefined) throw noSeq(tape, seq);
  return entry;
}

export function noSeq(tape: TapeRow, seq: Seq | string): TapeError {
  const has =
    tape.head_seq === tape.floor_seq ? 'it is empty' : `it has ${tape.floor_seq + 1} to ${tape.head_seq}`;
  return new TapeError('TAPE_NO_SEQ', `cannot find ${tape.name}@${seq}: ${has}`, {
    data: { session: tape.name, seq: Number(seq), from: tape.floor_seq + 1, to: tape.head_seq },
  });
}

/** Makes entries of the own rows of a tape that were read before, in a range. */
export function* ownEntries(
  db: Db,
  tape: TapeRow,
  { from, to, kept }: { readonly from: Seq; readonly to: Seq; readonly kept: readonly StoredEntry[] },
): Generator<Entry> {
  const toEntry = entriesOf(db, tape, { tapeId: tape.id, lo: tape.base_seq, hi: tape.head_seq });
  const [lo, hi] = [Math.max(from, tape.base_seq + 1), Math.min(to, tape.head_seq)];
  for (const row of kept) if (row.seq >= lo && row.seq <= hi) yield toEntry(row);
}

/** What an entry says of the tape that stores it. `has_adopted`: 0 where no bundle brought entries of it. */
type Owner = Pick<TapeRow, 'id' | 'realm' | 'name' | 'incarnation'> & { readonly has_adopted?: number };

/** Returns the owner of a segment; a chain of forks has many, and the rest of their rows would cost more than their entries. */
function ownerOf(db: Db, id: number): Owner {
  const owner = db.get<Owner>(
    `SELECT id, realm, name, incarnation, EXISTS (SELECT 1 FROM adopted a WHERE a.tape_id = tape.id) AS has_adopted
     FROM tape WHERE id = ?`,
    [id],
  );
  return owner ?? tapeById(db, id);
}

/** Returns a function that makes entries of the rows of one segment. */
function entriesOf(db: Db, requested: TapeRow, { tapeId }: Segment): (row: StoredEntry) => Entry {
  const owner: Owner = tapeId === requested.id ? requested : ownerOf(db, tapeId);
  const tape = tapeName(owner.realm, owner.name, owner.incarnation);
  const session = requested.name;
  const inherited = owner.id !== requested.id;
  const adopted = owner.has_adopted === 0 ? [] : adoptedIn(db, owner.id);
  return (row) => {
    const meta = row.meta === null ? {} : parseMeta(owner, row, row.meta);
    const sourceAt = sourceTime(meta);
    const { mark, name, ref, at, key, hash } = row;
    const isAdopted = adopted.some(({ from_seq, to_seq }) => from_seq <= row.seq && row.seq <= to_seq);
    const isElsewhere = isAdopted || row.id <= db.elsewhere.entries || meta.elsewhere === true;
    const payload = row.payload === null ? null : parseStored(owner, row, row.payload);
    const kind = row.kind as EntryKind;
    // Most entries have nothing else, and what an object may have costs more than what it has.
    if (
      mark === null &&
      name === null &&
      ref === null &&
      key === null &&
      sourceAt === undefined &&
      !isElsewhere
    )
      return { session, tape, seq: row.seq, kind, payload, meta, at, hash, inherited };
    return {
      session,
      tape,
      seq: row.seq,
      kind,
      ...(mark !== null && { mark: mark as Mark }),
      ...(name !== null && { name }),
      ...(ref !== null && { ref }),
      payload,
      meta,
      at,
      ...(sourceAt !== undefined && { sourceAt }),
      ...(key !== null && { key }),
      hash,
      inherited,
      ...(isElsewhere && { elsewhere: true as const }),
      ...(isAdopted && { adopted: true as const }),
      ...(isAdopted && payload === null && isAbsent(db, owner.id, row.seq) && { absent: true as const }),
    };
  };
}

/** The positions of a tape that bundles brought. Most tapes have none. */
function adoptedIn(db: Db, tape: number): readonly { readonly from_seq: Seq; readonly to_seq: Seq }[] {
  return db.all('SELECT from_seq, to_seq FROM adopted WHERE tape_id = ?', [tape]);
}

function isAbsent(db: Db, tape: number, seq: Seq): boolean {
  return db.get('SELECT 1 FROM absent WHERE tape_id = ? AND seq = ?', [tape, seq]) !== undefined;
}

function parseMeta(owner: Owner, row: StoredEntry, text: string): Meta {
  const meta = parseStored(owner, row, text);
  if (isObject(meta)) return meta;
  throw unreadable(owner, row, 'its stored meta is not a JSON object');
}

function parseStored(owner: Owner, row: StoredEntry, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    throw unreadable(owner, row, 'its stored text is not JSON', cause);
  }
}

function unreadable({ name }: Owner, { seq }: StoredEntry, why: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_CORRUPT', `cannot read ${name}@${seq}: ${why}`, {
    data: { session: name, seq },
    cause,
  });
}
