import type { Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import { derivedNameMax, nameFault, parseName, quote } from '../entry/name.ts';
import { TapeError, type TapeErrorCode } from '../errors.ts';
import { rowDigest } from '../lineage/line.ts';
import { isAlias, lookAlike, readsAsPoint } from '../session/names.ts';
import type { Writer } from '../tape/append.ts';
import { segments } from '../tape/interval.ts';
import { assertIdle } from '../tape/lease.ts';
import { type TapeRow, tapeByName } from '../tape/tape.ts';
import { type BundleTape, badBundle } from './bundle.ts';
import { copyBase, copyUlid } from './cast.ts';
import { type Compared, compareTape } from './compare.ts';
import { assertAsMerged, assertSameChildren } from './merged-ways.ts';
import { ownHash, rowOf } from './part.ts';
import type { Place } from './records.ts';
import type { BundledLine, BundledTape, Scanned } from './scan.ts';

/** What becomes of a session of a bundle. */
export interface Planned {
  readonly bundled: BundledTape;
  /** The id that it has here: its own, or that of a copy. */
  readonly ulid: string;
  readonly name: string;
  /** It is not here yet. */
  readonly isNew: boolean;
  /** It is a copy of a session that went on in another way here. */
  readonly isCopy: boolean;
  /** An ancestor that went on in another way here: nothing of it is needed, and nothing is added. */
  readonly isKept: boolean;
  /** Its row, of a session that is here. */
  readonly row: TapeRow | undefined;
  /** The last position that both have; of a copy, the last one that it has. */
  readonly common: Seq;
  /** The last position that it shares with the session of its own id here. */
  readonly shared: Seq;
  /** Where its new entries begin in the file. */
  readonly resume: Place;
  /** How many entries that were here got their content. */
  readonly filled: number;
  /** Why it is left out. It is then like one that is kept. */
  readonly refusal?: TapeError;
}

/** How to name what is brought in. */
export interface Naming {
  readonly realm: string;
  /** The name for the exported session. */
  readonly as: string | undefined;
  /** Whether sessions that cannot be taken are left out, with those that need them. Else the whole file is refused. */
  readonly leaveOut: boolean;
}

/**
 * Compares the sessions of a bundle with those that are here, and decides what is added, in the caller's transaction.
 * @throws TAPE_EXISTS for a name that is taken; TAPE_DIVERGED; TAPE_BUSY for a session that is written here;
 *   TAPE_MISSING_BASE for one that continues what is not here; TAPE_BAD_BUNDLE
 */
export function planTapes(writer: Writer, scanned: Scanned, naming: Naming): Planned[] {
  const ulids = new Set(scanned.tapes.map(({ tape }) => tape.ulid));
  const merges = Map.groupBy(
    scanned.lines.filter(({ line }) => line.type === 'merge' && line.into !== undefined),
    ({ line }) => line.into ?? '',
  );
  const refused = new Set<string>();
  return scanned.tapes.map((bundled) => {
    const { ulid } = bundled.tape;
    const planning = { bundled, ulids, naming, merges: merges.get(ulid) ?? [] };
    if (!naming.leaveOut) return planTape(writer, scanned, planning);
    const { db } = writer;
    try {
      if (refused.has(bundled.tape.parent ?? '')) assertParent(writer, scanned, bundled);
      // What it has put in place of missing content is undone.
      return db.savepoint(() => planTape(writer, scanned, planning));
    } catch (error) {
      if (!(error instanceof TapeError) || !refusals.has(error.code)) throw error;
      refused.add(bundled.tape.ulid);
      return leftOut(writer, bundled, error);
    }
  });
}

/** Errors about one session of a bundle, while others can be taken. */
const refusals: ReadonlySet<TapeErrorCode> = new Set([
  'TAPE_EXISTS',
  'TAPE_DIVERGED',
  'TAPE_BUSY',
  'TAPE_MISSING_BASE',
]);

function leftOut(writer: Writer, bundled: BundledTape, refusal: TapeError): Planned {
  const { tape } = bundled;
  const row = rowOf(writer, tape.ulid);
  return {
    ...{
      bundled,
      ulid: tape.ulid,
      name: row?.name ?? tape.name,
      row,
      isNew: false,
      isCopy: false,
      isKept: true,
    },
    ...{ common: tape.base, shared: tape.base, resume: bundled.from, filled: 0, refusal },
  };
}

/** A session that is not here can be taken without its parent's new entries, if the parent has what it inherits. */
function assertParent(writer: Writer, scanned: Scanned, { tape, at }: BundledTape): void {
  if (rowOf(writer, tape.ulid) !== undefined || tape.parent === null) return;
  const parent = rowOf(writer, tape.parent);
  const [owner] =
    parent === undefined ? [] : segments(writer.db, { ...parent, floor_seq: 0 }, tape.base - 1, tape.base);
  const has =
    owner !== undefined &&
    writer.db.get('SELECT 1 FROM entry WHERE tape_id = @id AND seq = @seq AND hash = unhex(@hash)', {
      ...{ id: owner.tapeId, seq: tape.base, hash: tape.base_hash },
    }) !== undefined;
  if (!has && tape.base > 0)
    throw missing(
      scanned,
      { tape, at },
      `it descends from @${tape.base} of ${parent === undefined ? `session ${tape.parent}` : `'${parent.name}'`}`,
    );
}

function missing({ file }: Scanned, { tape, at }: Pick<BundledTape, 'tape' | 'at'>, why: string): TapeError {
  return new TapeError(
    'TAPE_MISSING_BASE',
    `cannot import '${tape.name}' from '${file.name}:${at.number}': ${why}, which is not here`,
    { data: { session: tape.name, file: file.name, line: at.number } },
  );
}

interface Planning {
  readonly bundled: BundledTape;
  readonly ulids: ReadonlySet<string>;
  readonly naming: Naming;
  /** The lines of merges into it. */
  readonly merges: readonly BundledLine[];
}

function planTape(writer: Writer, scanned: Scanned, planning: Planning): Planned {
  const { bundled, naming } = planning;
  const { tape } = bundled;
  const { db } = writer;
  const isMain = tape.ulid === scanned.header.session;
  const row = rowOf(writer, tape.ulid);
  if (row === undefined) {
    assertWhole(scanned, bundled);
    assertSameChildren(writer, { ...planning, common: tape.base });
    assertAsMerged(writer, scanned, { bundled, common: tape.base });
    assertKeyFree(writer, scanned, bundled);
    return {
      ...{ bundled, ulid: tape.ulid, name: nameFor(writer, scanned, planning), row },
      ...{
        isNew: true,
        isCopy: false,
        isKept: false,
        common: tape.base,
        shared: tape.base,
        resume: bundled.from,
        filled: 0,
      },
    };
  }
  assertSame(scanned, bundled, row);
  assertStart(writer, scanned, { bundled, row });
  const compared = compareTape(writer, scanned.file, { bundled, row });
  if (compared.divergedAt !== undefined) return diverged(writer, scanned, { ...planning, row, compared });
  assertSameChildren(writer, { ...planning, common: compared.common });
  assertAsMerged(writer, scanned, { bundled, common: compared.common });
  if (isMain && naming.as !== undefined && naming.as !== row.name)
    throw new TapeError(
      'TAPE_EXISTS',
      `cannot import '${tape.name}' as ${quote(naming.as)}: it is here as '${row.name}'`,
      {
        data: { session: row.name, as: naming.as },
      },
    );
  if (compared.common < tape.head || compared.filled > 0) assertIdle(db, row, writer.sources);
  const { common, resume, filled } = compared;
  return {
    ...{ bundled, ulid: tape.ulid, name: row.name, row, isNew: false, isCopy: false, isKept: false },
    ...{ common, shared: common, resume, filled },
  };
}

/** A session that is not here needs all of its entries. */
function assertWhole(scanned: Scanned, { tape, start, at }: BundledTape): void {
  if (start.after > tape.base) throw missing(scanned, { tape, at }, `it continues @${start.after}`);
}

/** No other child of its parent here has its key. */
function assertKeyFree(writer: Writer, { file }: Scanned, { tape, at }: BundledTape): void {
  const parent = tape.parent === null ? undefined : rowOf(writer, tape.parent);
  const other =
    parent === undefined
      ? undefined
      : writer.db.get<{ name: string }>(
          'SELECT name FROM tape WHERE parent_id = @parent AND spawn_key = @key',
          { parent: parent.id, key: tape.spawn_key },
        );
  if (other !== undefined)
    throw new TapeError(
      'TAPE_EXISTS',
      `cannot import '${file.name}:${at.number}': '${other.name}' is the child of '${parent?.name}' with the key of '${tape.name}'`,
      { data: { session: other.name } },
    );
}

/** What the entries of the file follow is here. */
function assertStart(
  { db }: Writer,
  scanned: Scanned,
  { bundled, row }: { readonly bundled: BundledTape; readonly row: TapeRow },
): void {
  const { tape, start } = bundled;
  if (start.after > row.head_seq) throw missing(scanned, bundled, `it continues @${start.after}`);
  if (ownHash(db, row, start.after) !== start.after_hash)
    throw divergence(tape.name, row, { seq: start.after });
}

function divergence(
  name: string,
  row: TapeRow,
  { seq, ...data }: { readonly seq: Seq; readonly alongside?: boolean },
): TapeError {
  return new TapeError(
    'TAPE_DIVERGED',
    `cannot import '${name}': it went on in another way here: @${seq} is another entry`,
    { data: { session: row.name, seq, ...data } },
  );
}

/** Decides on a session that went on in another way here. */
function diverged(
  writer: Writer,
  scanned: Scanned,
  {
    bundled,
    naming,
    row,
    compared,
    ulids,
  }: Planning & { readonly row: TapeRow; readonly compared: Compared },
): Planned {
  const { tape } = bundled;
  const { header } = scanned;
  const { common, divergedAt = tape.head, other = '' } = compared;
  const isNeeded = reachOf(scanned, tape) >= divergedAt;
  const shared = common;
  const isAncestor = isAbove(scanned, tape);
  if (isAncestor && !isNeeded)
    return {
      ...{ bundled, ulid: tape.ulid, name: row.name, row, isNew: false, isCopy: false, isKept: true },
      ...{ common, shared, resume: bundled.from, filled: compared.filled },
    };
  const copy = copyUlid(tape.ulid, other);
  const known = rowOf(writer, copy);
  const mayCopy = tape.ulid === header.session && !isNeeded;
  if (mayCopy && known !== undefined) {
    const again = compareTape(writer, scanned.file, {
      bundled,
      row: known,
      cast: { ulid: copy, previous: copyBase(copy, tape) },
    });
    if (again.divergedAt === undefined) {
      if (again.common < tape.head || again.filled > 0) assertIdle(writer.db, known, writer.sources);
      return {
        ...{ bundled, ulid: copy, name: known.name, row: known, isNew: false, isCopy: true, isKept: false },
        ...{ common: again.common, shared, resume: again.resume, filled: again.filled },
      };
    }
  }
  if (mayCopy && known === undefined && naming.as !== undefined)
    return {
      ...{ bundled, ulid: copy, name: nameFor(writer, scanned, { bundled, naming, ulids }), row: undefined },
      ...{
        isNew: true,
        isCopy: true,
        isKept: false,
        common: tape.base,
        shared,
        resume: bundled.from,
        filled: 0,
      },
    };
  throw divergence(tape.name, row, { seq: divergedAt, alongside: mayCopy && known === undefined });
}

/** The last position of a session that another one of the bundle inherits. */
function reachOf({ tapes }: Scanned, { ulid }: BundleTape): Seq {
  const byUlid = new Map(tapes.map(({ tape }) => [tape.ulid, tape]));
  let most = 0;
  for (const { tape } of tapes) {
    let reach = Number.POSITIVE_INFINITY;
    for (let at: BundleTape | undefined = tape; at !== undefined && at.ulid !== ulid; ) {
      reach = Math.min(reach, at.base);
      at = at.parent === null ? undefined : byUlid.get(at.parent);
      if (at?.ulid === ulid) most = Math.max(most, reach);
    }
  }
  return most;
}

/** Whether a session is an ancestor of the exported one. */
function isAbove({ header, tapes }: Scanned, { ulid }: BundleTape): boolean {
  const byUlid = new Map(tapes.map(({ tape }) => [tape.ulid, tape]));
  for (
    let at = byUlid.get(header.session ?? '');
    at !== undefined && at.parent !== null;
    at = byUlid.get(at.parent)
  )
    if (at.parent === ulid) return true;
  return false;
}

/** Refuses a session with an id that is here, and another origin: one of them is forged. */
function assertSame({ file }: Scanned, { tape, at }: BundledTape, row: TapeRow): void {
  const isSame =
    row.lifecycle !== 'staging' &&
    row.parent_ulid === tape.parent &&
    row.base_seq === tape.base &&
    row.floor_seq === tape.floor &&
    hex(row.base_hash) === tape.base_hash &&
    row.kind === tape.kind &&
    row.created_at === tape.created_at;
  if (!isSame) throw badBundle(file.name, at.number, `session ${tape.ulid} is here, with another origin`);
}

/**
 * The name of a new session: its own, or the given one. With a given name, others of the bundle whose names are taken get
 * names made of it.
 */
function nameFor(
  writer: Writer,
  scanned: Scanned,
  { bundled: { tape, at }, ulids, naming }: Omit<Planning, 'merges'>,
): string {
  const { header, file } = scanned;
  const { as } = naming;
  const isMain = tape.ulid === header.session;
  if (isMain && as !== undefined) parseName(as);
  const wanted = isMain && as !== undefined ? as : tape.name;
  // A session that was deleted where it comes from has no names.
  if (endsDeleted(scanned, tape.ulid)) return wanted;
  const why = takenBy(writer, naming.realm, { name: wanted, ulid: tape.ulid, ulids });
  if (why === undefined) return wanted;
  if (!isMain && as !== undefined && header.name !== undefined) {
    const derived = tape.name.startsWith(header.name)
      ? as + tape.name.slice(header.name.length)
      : `${as}+${tape.name}`;
    if (
      nameFault(derived, derivedNameMax) === undefined &&
      takenBy(writer, naming.realm, { name: derived, ulid: tape.ulid, ulids }) === undefined
    )
      return derived;
  }
  throw new TapeError(
    'TAPE_EXISTS',
    `cannot import '${file.name}:${at.number}' as ${quote(wanted)}: ${why}`,
    {
      data: { session: wanted, bundle: true },
    },
  );
}

/** Whether a session is deleted, or purged, where a bundle comes from. */
export function endsDeleted({ lines }: Pick<Scanned, 'lines'>, ulid: string): boolean {
  const last = lines.findLast(({ line }) => line.session === ulid)?.line.lifecycle;
  return last === 'destroyed' || last === 'purged';
}

/** Returns why a name cannot be given to a new session; undefined when it can. */
function takenBy(
  { db }: Writer,
  realm: string,
  {
    name,
    ulid,
    ulids,
  }: { readonly name: string; readonly ulid: string; readonly ulids: ReadonlySet<string> },
): string | undefined {
  const taken = tapeByName(db, realm, name);
  if (taken !== undefined && taken.lifecycle !== 'staging' && taken.ulid !== ulid && !ulids.has(taken.ulid))
    return `another session has this name`;
  if (isAlias(db, realm, name)) return 'it is an alias of another session';
  const near = lookAlike(db, realm, name);
  if (near !== undefined) return `it differs from '${near}' only by case or Unicode form`;
  return readsAsPoint(db, realm, name);
}

/** The digest of what only the row of a session has, as its line should have it. */
export function digestOf(tape: BundleTape): string {
  return rowDigest({
    request_hash: tape.request === null ? null : Buffer.from(tape.request, 'hex'),
    ordinal: tape.ordinal,
    deliver: tape.deliver,
    spawn_call: tape.spawn_call,
    title: tape.title,
    ephemeral: tape.ephemeral ? 1 : 0,
  });
}
