import { crashPoint } from '../crash-point.ts';
import type { Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import { nameKey } from '../entry/name.ts';
import type { TapeError } from '../errors.ts';
import type { OnProgress, Progress } from '../progress.ts';
import type { Writer } from '../tape/append.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import { type BundleEntry, badBundle } from './bundle.ts';
import { Cast, copyBase } from './cast.ts';
import { keepBytes, rebuildRows } from './fill.ts';
import { adoptLines } from './lines.ts';
import { endsDeleted, type Planned, planTapes } from './plan.ts';
import { Projection } from './project.ts';
import { proveTapes } from './prove.ts';
import { entriesFrom } from './records.ts';
import type { Scanned } from './scan.ts';
import { touchMarks } from './touches.ts';

/** What a bundle brought of one session. */
export interface AdoptedSession {
  readonly session: string;
  readonly id: string;
  /**
   * `new`: it was not here. `grown`: entries were added behind those that were here. `same`: there was nothing to add.
   * `copy`: it went on in another way here, and was taken alongside, under another id. `kept`: an ancestor that went on
   * in another way here, behind all that the others need.
   */
  readonly became: 'new' | 'grown' | 'same' | 'copy' | 'kept';
  readonly entries: number;
  readonly filled: number;
}

/** The receipt of an import of a bundle. */
export interface Adopted {
  /** The exported session, as it is here; of a part, its first one. Empty if all were left out. */
  readonly session: string;
  readonly id: string;
  readonly sessions: readonly AdoptedSession[];
  /** Entries, lines of the lineage, and contents that were missing, that were added. */
  readonly entries: number;
  readonly lines: number;
  readonly filled: number;
  /** Entries of its sessions whose content is not here now. */
  readonly absent: number;
  /** Entries that a redaction of the bundle names, and whose content is here. */
  readonly redactedElsewhere: readonly { readonly session: string; readonly seq: Seq }[];
  /** Other names that the bundle gives, and that name something else here. */
  readonly aliasesTaken: readonly string[];
  /** With `leaveOut`: the sessions that could not be taken. */
  readonly leftOut: readonly LeftOut[];
}

/** A session of a bundle that could not be taken. */
export interface LeftOut {
  readonly session: string;
  readonly id: string;
  /** TAPE_DIVERGED, TAPE_EXISTS, TAPE_BUSY or TAPE_MISSING_BASE. */
  readonly error: TapeError;
}

/** How far an import is in one of its parts: bytes that were read, entries that were added, and those that were verified. */
export type AdoptProgress = Progress & { readonly of: 'bytes' | 'entries' | 'verified' };

/**
 * Brings in what a bundle has and this home lacks, in the caller's transaction, and verifies it there by the rules of
 * `verify`. An error leaves nothing behind.
 * @throws TAPE_BAD_BUNDLE, TAPE_DIVERGED, TAPE_EXISTS, TAPE_BUSY
 */
export function adoptBundle(
  writer: Writer,
  scanned: Scanned,
  {
    realm,
    as,
    leaveOut,
    report,
  }: {
    readonly realm: string;
    readonly as: string | undefined;
    readonly leaveOut: boolean;
    readonly report: (of: AdoptProgress['of']) => OnProgress;
  },
): Adopted {
  const { db } = writer;
  crashPoint('bundle/scanned');
  const plans = planTapes(writer, scanned, { realm, as, leaveOut });
  const ids = new Map<string, number>();
  const adopted: { readonly plan: Planned; readonly id: number; readonly entries: number }[] = [];
  const total = plans.reduce((sum, one) => sum + newIn(one), 0);
  const addEntry = counted(total, report('entries'));
  for (const plan of plans) {
    if (plan.refusal !== undefined) {
      if (plan.row !== undefined) ids.set(plan.bundled.tape.ulid, plan.row.id);
      continue;
    }
    const parent = plan.bundled.tape.parent;
    const id =
      plan.row?.id ??
      insertTape(writer, plan, {
        realm,
        parent: parent === null ? undefined : ids.get(parent),
        isDeleted: endsDeleted(scanned, plan.ulid),
      });
    ids.set(plan.bundled.tape.ulid, id);
    adopted.push({ plan, id, entries: adoptEntries(writer, scanned, { plan, id, saw: addEntry }) });
    if (plan.filled > 0) rebuildRows(db, id);
  }
  crashPoint('bundle/entries');
  const { added, aliasesTaken } = adoptLines(writer, scanned, plans);
  crashPoint('bundle/lines');
  touchMarks(db, adopted);
  crashPoint('bundle/state');
  proveTapes(db, scanned, { adopted, saw: counted(total, report('verified')) });
  crashPoint('bundle/verified');
  const sessions = adopted.map((one) => sessionOf(writer, one));
  // A part has no session that is more than the others.
  const main = adopted.find(({ plan }) => plan.bundled.tape.ulid === scanned.header.session) ?? adopted[0];
  const { name = '', ulid = '' } = main === undefined ? {} : tapeById(db, main.id);
  return {
    session: name,
    id: ulid,
    sessions,
    entries: sessions.reduce((sum, one) => sum + one.entries, 0),
    lines: added,
    filled: sessions.reduce((sum, one) => sum + one.filled, 0),
    absent: adopted.reduce((sum, { id }) => sum + countAbsent(writer, id), 0),
    redactedElsewhere: adopted.flatMap(({ plan, id }) => redactedElsewhere(writer, plan, id)),
    aliasesTaken,
    leftOut: plans.flatMap(({ name, ulid, refusal }) =>
      refusal === undefined ? [] : [{ session: name, id: ulid, error: refusal }],
    ),
  };
}

function sessionOf(
  { db }: Writer,
  { plan, id, entries }: { readonly plan: Planned; readonly id: number; readonly entries: number },
): AdoptedSession {
  const { name, ulid } = tapeById(db, id);
  const { isNew, isCopy, isKept, filled } = plan;
  const became = isKept ? 'kept' : isNew && isCopy ? 'copy' : isNew ? 'new' : entries > 0 ? 'grown' : 'same';
  return { session: name, id: ulid, became, entries, filled };
}

/** Inserts the row of a new session, without entries: a copy begins as its original does. */
function insertTape(
  { db, sources }: Writer,
  plan: Planned,
  {
    realm,
    parent,
    isDeleted,
  }: { readonly realm: string; readonly parent: number | undefined; readonly isDeleted: boolean },
): number {
  const { tape } = plan.bundled;
  const above = parent === undefined ? undefined : tapeById(db, parent);
  const base = Buffer.from(plan.isCopy ? copyBase(plan.ulid, tape) : tape.base_hash, 'hex');
  const spawnKey = plan.isCopy && tape.parent !== null ? plan.ulid : tape.spawn_key;
  const own = above?.realm ?? realm;
  const isOrdered = spawnKey !== null && spawnKey === plan.ulid;
  const id = db.insert(
    `INSERT INTO tape (ulid, realm, name, incarnation, kind, parent_id, spawn_key, request_hash, from_seq, from_anchor,
         floor_seq, base_seq, base_hash, head_seq, head_hash, settled_seq, title, ephemeral, deliver, spawn_call,
         created_at, updated_at, ordinal, name_key, lifecycle)
       VALUES (@ulid, @realm, @name, @incarnation, @kind, @parent, @spawnKey, @request, @fromSeq, @fromAnchor,
         @floor, @base, @hash, @base, @hash, @base, @title, @ephemeral, @deliver, @spawnCall, @created, @created, @ordinal, @key, @lifecycle)`,
    {
      ulid: plan.ulid,
      realm: own,
      name: plan.name,
      incarnation: incarnationFor({ db, sources }, own, plan),
      kind: tape.kind,
      parent: above?.id ?? null,
      spawnKey,
      request: tape.request === null ? null : Buffer.from(tape.request, 'hex'),
      fromSeq: tape.from_seq,
      fromAnchor: tape.from_anchor,
      floor: tape.floor,
      base: tape.base,
      hash: base,
      title: tape.title,
      ephemeral: tape.ephemeral ? 1 : 0,
      deliver: tape.deliver,
      spawnCall: tape.spawn_call,
      created: tape.created_at,
      ordinal: isOrdered && above !== undefined ? ordinalFor({ db, sources }, above, tape.ordinal) : null,
      key: nameKey(plan.name),
      // A session that was deleted has no names, so that others of the bundle can have them.
      lifecycle: !plan.isCopy && isDeleted ? 'destroyed' : 'active',
    },
  );
  crashPoint('bundle/tape');
  return id;
}

/** The incarnation that it has elsewhere, or the next one where a name is used again. */
function incarnationFor({ db }: Writer, realm: string, { name, bundled: { tape } }: Planned): number {
  const { last } = db.get<{ last: number | null }>(
    'SELECT max(incarnation) AS last FROM tape WHERE realm = @realm AND name = @name',
    { realm, name },
  ) ?? { last: null };
  if (name !== tape.name) return (last ?? 0) + 1;
  return last === null || tape.incarnation > last ? tape.incarnation : last + 1;
}

/** The number that a child without a key has elsewhere, or the next one here. */
function ordinalFor({ db }: Writer, { id }: TapeRow, ordinal: number | null): number {
  const isTaken =
    ordinal === null ||
    ordinal < 1 ||
    db.get('SELECT 1 FROM tape WHERE parent_id = @id AND ordinal = @ordinal', { id, ordinal }) !== undefined;
  if (!isTaken) return ordinal;
  return (
    (db.get<{ last: number | null }>(
      'SELECT max(ordinal) AS last FROM tape WHERE parent_id = @id AND ordinal IS NOT NULL',
      { id },
    )?.last ?? 0) + 1
  );
}

/** How many entries of a session are not here. */
function newIn({ bundled: { tape }, isKept, common }: Planned): number {
  return isKept ? 0 : Math.max(0, tape.head - Math.max(common, tape.base));
}

/** Counts, and reports each hundredth. */
function counted(total: number, onProgress: OnProgress): () => void {
  let done = 0;
  return () => {
    done += 1;
    if (done % 100 === 0) onProgress({ done, total: Math.max(done, total) });
  };
}

/** Adds the entries that are not here, with the rows beside them; returns how many. */
function adoptEntries(
  writer: Writer,
  { file }: Scanned,
  { plan, id, saw }: { readonly plan: Planned; readonly id: number; readonly saw: () => void },
): number {
  const { tape } = plan.bundled;
  if (newIn(plan) === 0) return 0;
  const { db } = writer;
  const row = tapeById(db, id);
  const epoch = plan.isNew ? row.epoch : row.epoch + 1;
  const cast = plan.isCopy ? new Cast(plan.ulid, hex(row.head_hash)) : undefined;
  const projection = new Projection(db, row);
  let [seq, head] = [row.head_seq, hex(row.head_hash)];
  for (const bundled of entriesFrom(file, { from: plan.resume, after: row.head_seq })) {
    const entry = cast?.of(bundled.entry) ?? bundled.entry;
    if (entry.seq > tape.head) break;
    const entryId = insertEntry(writer, {
      id,
      epoch,
      entry,
      bad: (cause) =>
        badBundle(file.name, bundled.at.number, 'the entry cannot be stored: its key is not its own', {
          cause,
        }),
    });
    keepBytes(db, file, { bundled, id: entryId, hashes: projection.saw(entry) });
    crashPoint('bundle/entry');
    saw();
    [seq, head] = [entry.seq, entry.hash];
  }
  if (seq !== tape.head || (cast === undefined && head !== tape.head_hash))
    throw badBundle(
      file.name,
      plan.bundled.at.number,
      `the head of session ${tape.ulid} is not its last entry`,
    );
  projection.save({ head: seq, hash: head, epoch });
  db.run('INSERT INTO adopted (tape_id, from_seq, to_seq) VALUES (@id, @from, @seq)', {
    id,
    from: row.head_seq + 1,
    seq,
  });
  return seq - row.head_seq;
}

function insertEntry(
  { db }: Writer,
  {
    id,
    epoch,
    entry,
    bad,
  }: {
    readonly id: number;
    readonly epoch: number;
    readonly entry: BundleEntry;
    readonly bad: (cause: unknown) => TapeError;
  },
): number {
  const { seq, kind, mark, name, ref, at, key, salt, body, hash, meta, payload } = entry;
  let entryId: number;
  try {
    entryId = db.insert(
      `INSERT INTO entry (tape_id, seq, kind, mark, name, ref, at, key, epoch, salt, body_hash, hash, meta, payload)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        ...[id, seq, kind, mark, name, ref, at, key, epoch],
        ...[
          salt === null ? null : Buffer.from(salt, 'hex'),
          Buffer.from(body, 'hex'),
          Buffer.from(hash, 'hex'),
        ],
        ...[meta, payload],
      ],
    );
  } catch (cause) {
    // A trigger of the table: the position and the id are the next ones, so it is the key.
    if ((cause as { code?: unknown }).code === 'SQLITE_CONSTRAINT_TRIGGER') throw bad(cause);
    throw cause;
  }
  if (payload === null) db.run('INSERT INTO absent (tape_id, seq) VALUES (@id, @seq)', { id, seq });
  // What was redacted is gone for good: nothing is missing here.
  if (mark === 'redaction' && ref !== null)
    db.run('DELETE FROM absent WHERE tape_id = @id AND seq = @ref', { id, ref });
  return entryId;
}

function countAbsent({ db }: Writer, id: number): number {
  return db.get<{ n: number }>('SELECT count(*) AS n FROM absent WHERE tape_id = @id', { id })?.n ?? 0;
}

/** Entries whose content is here, and that a new entry says to be redacted. An import erases nothing. */
function redactedElsewhere({ db }: Writer, plan: Planned, id: number): Adopted['redactedElsewhere'] {
  const { name } = tapeById(db, id);
  return db
    .all<{ seq: Seq }>(
      `SELECT e.seq FROM entry r JOIN entry e ON e.tape_id = r.tape_id AND e.seq = r.ref
         WHERE r.tape_id = @id AND r.mark = 'redaction' AND r.mark IN ('boundary','rewind','redaction') AND r.seq > @common
           AND e.payload IS NOT NULL ORDER BY e.seq`,
      { id, common: plan.common },
    )
    .map(({ seq }) => ({ session: name, seq }));
}
