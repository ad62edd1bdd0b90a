import type { Db } from '../db/db.ts';
import { isTime } from '../entry/iso-time.ts';
import type { Json, JsonObject } from '../entry/json.ts';
import { nameKey, tapeName } from '../entry/name.ts';
import { isTitleErased, rowDigest } from '../lineage/line.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type BesideTapes, isAdopted } from './beside.ts';
import type { Problem } from './problem.ts';

/**
 * Compares a tape's row with the lineage, whose lines are hashed: its identity with the first line, its
 * states with the last.
 */
export function* verifyRow(db: Db, tape: TapeRow, tapes: BesideTapes): Generator<Problem> {
  const { lines, childBefore } = tapes.of(tape.id);
  // `verifyLineage` reports a changed line, and it proves nothing about the row.
  if (lines.some(({ fields }) => fields === undefined)) return;
  const [made, last] = [lines[0]?.fields, lines.at(-1)?.fields];
  // A staged session has no line yet.
  if (made === undefined || last === undefined) {
    if (tape.lifecycle !== 'staging' && isWhole(db)) yield changed(tape, 'the lineage has no line for it');
    return;
  }
  const wrong = [
    ...differing(made, {
      session: tape.ulid,
      session_id: tape.name,
      tape: tapeName(tape.realm, tape.name, tape.incarnation),
      kind: tape.kind,
      parent: tape.parent_ulid,
      parent_session_id: tape.parent_name,
      from_anchor: tape.from_anchor,
      created_at: isoOf(tape.created_at),
      spawn_key: tape.spawn_key,
      ...(tape.parent_id !== null && {
        base: tape.base_seq,
        range: tape.floor_seq === tape.base_seq ? null : [tape.floor_seq + 1, tape.base_seq],
      }),
    }),
    ...differing(last, { lifecycle: tape.lifecycle, task: tape.task, delivery: tape.delivery }),
    ...(tape.parent_id === null || tape.parent_id < tape.id ? [] : ['parent_id']),
    // Lines of schema 1 have no digest.
    ...(hasDigest(db, tape, made.row) ? [] : ['request, title or delivery']),
    ...(startDiffers(db, tape, tapes) ? ['fork/start'] : []),
    ...(tape.from_seq === (tape.parent_id === null ? null : tape.floor_seq) ? [] : ['from_seq']),
    ...((tape.request_hash === null) === (tape.parent_id === null) ? [] : ['request_hash']),
    ...(isAdopted(tapes.of(tape.id), tape.base_seq + 1) || ordinalFollows(tape, childBefore)
      ? []
      : ['ordinal']),
    ...(tape.name_key === nameKey(tape.name) ? [] : ['name_key']),
    ...((tape.merged_at === null) === (tape.delivery === null) ? [] : ['merged_at']),
  ];
  const untimely = (['updated_at', 'merged_at', 'last_message_at'] as const).filter(
    (column) => !isTime(tape[column] ?? 0),
  );
  if (untimely.length > 0) yield changed(tape, `its ${untimely.join(', ')} is no time`);
  if (wrong.length > 0)
    yield changed(
      tape,
      `its ${wrong.join(', ')} ${wrong.length === 1 ? 'differs' : 'differ'} from the lineage`,
    );
}

/**
 * Whether a row has the digest of its line. A purge erases the title, and so does a redaction of the first entry: it is known
 * by its digest alone then.
 */
function hasDigest(db: Db, tape: TapeRow, digest: unknown): boolean {
  return (digest ?? rowDigest(tape)) === rowDigest(tape) || isTitleErased(db, tape);
}

/** Whether the first entry of a fork says another origin than its row. An erased or damaged one says none. */
function startDiffers(db: Db, tape: TapeRow, tapes: BesideTapes): boolean {
  if (tape.parent_id === null) return false;
  const place = { id: tape.id, seq: tape.base_seq + 1 };
  const start =
    tapes.entries?.at(place.id, place.seq) ??
    db.get<{ name: string | null; payload: string | null }>(
      'SELECT name, payload FROM entry WHERE tape_id = @id AND seq = @seq',
      place,
    );
  if (start === undefined || start.payload === null) return false;
  return (
    start.name !== 'fork/start' ||
    differing(tapes.parsed(start.payload), {
      parent: tape.parent_ulid,
      // A bundle brought the name that the parent has in another home.
      ...(!isAdopted(tapes.of(tape.id), place.seq) && { parent_name: tape.parent_name }),
      from_anchor: tape.from_anchor,
      range: tape.floor_seq === tape.base_seq ? null : [tape.floor_seq + 1, tape.base_seq],
      base: tape.base_seq,
    }).length > 0
  );
}

/**
 * Whether a fork without a key, which has its own ULID as one, is the next after an older child of its parent, and
 * others have no number.
 */
function ordinalFollows(
  { id, ulid, parent_id, spawn_key, ordinal }: TapeRow,
  before: number | undefined,
): boolean {
  if (parent_id === null || spawn_key !== ulid) return ordinal === null;
  if (ordinal === null || ordinal < 1) return false;
  return ordinal === 1 || (before !== undefined && before < id);
}

/** Returns a time as lines have it; null for one that no line can have. */
function isoOf(ms: number): string | null {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

/**
 * Returns whether no line is missing: `verifyLineage` reports gaps, but cannot see lines that were cut off at
 * the end.
 */
function isWhole(db: Db): boolean {
  const { lines = 0, last = 0 } =
    db.get<{ lines: number; last: number }>(
      'SELECT count(*) AS lines, coalesce(max(g), 0) AS last FROM lineage',
    ) ?? {};
  return lines === last;
}

function differing(line: JsonObject, expected: JsonObject): string[] {
  return Object.keys(expected).filter((field) => !isSameJson(line[field] ?? null, expected[field] ?? null));
}

/** Whether two values have the same JSON; most are the same text or number. */
function isSameJson(a: Json, b: Json): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function changed(tape: TapeRow, why: string): Problem {
  return {
    code: 'row-changed',
    session: tape.name,
    seq: null,
    message: `the row of '${tape.name}' was changed: ${why}`,
  };
}
