import { hex } from '../entry/hash.js';
import { isTime } from '../entry/iso-time.js';
                                                   
import { nameKey, tapeName } from '../entry/name.js';
import { parsed } from '../entry/parsed.js';
import { hashLine, rowDigest } from '../lineage/line.js';
                                              
                                               
import { linesOf } from './lineage.js';
                                            

/**
 * Compares a tape's row with the lineage, whose lines are hashed: its identity with the first line, its
 * states with the last.
 */
export function* verifyRow(db    , tape         )                     {
  const lines = linesOf(db, tape);
  // `verifyLineage` reports a changed line, and it proves nothing about the row.
  if (lines.some(({ line, hash }) => hashLine(line) !== hex(hash))) return;
  const [made, last] = [lines[0], lines.at(-1)].map((row) =>
    row === undefined ? undefined : parsed(row.line),
  );
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
    ...((made.row ?? rowDigest(tape)) === rowDigest(tape) ? [] : ['request, title or delivery']),
    ...(startDiffers(db, tape) ? ['fork/start'] : []),
    ...(tape.from_seq === (tape.parent_id === null ? null : tape.floor_seq) ? [] : ['from_seq']),
    ...((tape.request_hash === null) === (tape.parent_id === null) ? [] : ['request_hash']),
    ...(ordinalFollows(db, tape) ? [] : ['ordinal']),
    ...(tape.name_key === nameKey(tape.name) ? [] : ['name_key']),
    ...((tape.merged_at === null) === (tape.delivery === null) ? [] : ['merged_at']),
  ];
  const untimely = (['updated_at', 'merged_at', 'last_message_at']         ).filter(
    (column) => !isTime(tape[column] ?? 0),
  );
  if (untimely.length > 0) yield changed(tape, `its ${untimely.join(', ')} is no time`);
  if (wrong.length > 0)
    yield changed(
      tape,
      `its ${wrong.join(', ')} ${wrong.length === 1 ? 'differs' : 'differ'} from the lineage`,
    );
}

/** Whether the first entry of a fork says another origin than its row. An erased or damaged one says none. */
function startDiffers(db    , tape         )          {
  if (tape.parent_id === null) return false;
  const start = db.get                                                 (
    'SELECT name, payload FROM entry WHERE tape_id = @id AND seq = @seq',
    { id: tape.id, seq: tape.base_seq + 1 },
  );
  if (start === undefined || start.payload === null) return false;
  return (
    start.name !== 'fork/start' ||
    differing(parsed(start.payload), {
      parent: tape.parent_ulid,
      parent_name: tape.parent_name,
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
function ordinalFollows(db    , { id, ulid, parent_id, spawn_key, ordinal }         )          {
  if (parent_id === null || spawn_key !== ulid) return ordinal === null;
  if (ordinal === null || ordinal < 1) return false;
  if (ordinal === 1) return true;
  const before = db.get                (
    'SELECT id FROM tape WHERE parent_id = @parent_id AND ordinal = @before AND ordinal IS NOT NULL',
    { parent_id, before: ordinal - 1 },
  );
  return before !== undefined && before.id < id;
}

/** Returns a time as lines have it; null for one that no line can have. */
function isoOf(ms        )                {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

/**
 * Returns whether no line is missing: `verifyLineage` reports gaps, but cannot see lines that were cut off at
 * the end.
 */
function isWhole(db    )          {
  const { lines = 0, last = 0 } =
    db.get                                 (
      'SELECT count(*) AS lines, coalesce(max(g), 0) AS last FROM lineage',
    ) ?? {};
  return lines === last;
}

function differing(line            , expected            )           {
  return Object.keys(expected).filter(
    (field) => JSON.stringify(line[field] ?? null) !== JSON.stringify(expected[field] ?? null),
  );
}

function changed(tape         , why        )          {
  return {
    code: 'row-changed',
    session: tape.name,
    seq: null,
    message: `the row of '${tape.name}' was changed: ${why}`,
  };
}
