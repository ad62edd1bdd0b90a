import type { Seq } from '../entry/entry.ts';
import { isObject, type JsonObject } from '../entry/json.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from '../tape/append.ts';
import { hiddenBy, segments, settledAt, visible } from '../tape/interval.ts';
import { anchorNameAt, isStart, resolvePoint } from '../tape/point.ts';
import { entryAt } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';
import { newestFirst } from '../view/source.ts';
import { windowStart } from '../view/window.ts';
import { actOf, type ForkRequest, partOf } from './request.ts';

/** The end of the inherited part: as requested and settled (`base`). */
export interface Cut {
  readonly requested: Seq;
  readonly base: Seq;
  readonly hash: Uint8Array;
}

export function resolveCut({ db }: Writer, parent: TapeRow, request: ForkRequest): Cut {
  const { inherit, cut, whereShown } = request;
  const requested =
    cut === undefined || inherit === 'nothing' ? parent.head_seq : resolvePoint(db, parent, cut);
  // A cut at the head inherits the visible part, even if a rewind is the newest entry.
  const hidden =
    whereShown === true && requested !== parent.head_seq ? hiddenBy(db, parent, requested) : undefined;
  if (hidden !== undefined)
    throw new TapeError(
      'TAPE_BAD_POINT',
      `cannot ${actOf(request)} '${parent.name}' at @${requested}: the rewind ${parent.name}@${hidden} hides it`,
      { data: { session: parent.name, seq: requested, hidden } },
    );
  const base = requested === parent.head_seq ? parent.settled_seq : settledAt(db, parent, requested);
  return { requested, base, hash: hashAt(db, parent, base) };
}

function hashAt(db: Writer['db'], tape: TapeRow, seq: Seq): Uint8Array {
  if (seq === tape.head_seq) return tape.head_hash;
  const [owner] = segments(db, { ...tape, floor_seq: 0 }, seq - 1, seq);
  const row =
    owner === undefined
      ? undefined
      : db.get<{ hash: Uint8Array }>('SELECT hash FROM entry WHERE tape_id = @tape AND seq = @seq', {
          tape: owner.tapeId,
          seq,
        });
  if (row !== undefined) return row.hash;
  if (seq === tape.base_seq) return tape.base_hash;
  throw new TapeError('TAPE_CORRUPT', `cannot find ${tape.name}@${seq}: the entry is missing`, {
    data: { session: tape.name, seq },
  });
}

export interface Since {
  readonly floor: Seq;
  readonly anchor: string | undefined;
  readonly state: JsonObject | undefined;
}

/** Returns where the inherited part begins, and the state that replaces all entries before it. */
export function resolveSince(
  { db }: Writer,
  parent: TapeRow,
  request: ForkRequest,
  { requested: cut, base }: { requested: Seq; base: Seq },
): Since {
  const { inherit } = request;
  if (inherit === 'nothing') return { floor: base, anchor: undefined, state: undefined };
  const { since, last } = partOf(inherit);
  if (last !== undefined)
    return {
      floor: floorOfLast(db, parent, { last, base }),
      anchor: undefined,
      state: startState(db, parent),
    };
  if (since === undefined || isStart(parent, since))
    return { floor: Math.min(parent.floor_seq, base), anchor: undefined, state: startState(db, parent) };
  const requested = resolvePoint(db, parent, since);
  if (requested > cut)
    throw new TapeError(
      'TAPE_BAD_POINT',
      `cannot ${actOf(request)} '${parent.name}' since ${quote(String(since))}: it is at @${requested}, after the cut @${cut}`,
      { data: { session: parent.name, since: requested, cut } },
    );
  const anchor = anchorNameAt(db, parent, requested) ?? `@${requested}`;
  return { floor: Math.min(requested, base), anchor, state: stateAt(db, parent, requested) };
}

/** Returns the position before the n-th last message. A call and its result are never separated there. */
function floorOfLast(db: Writer['db'], tape: TapeRow, { last, base }: { last: number; base: Seq }): Seq {
  // Messages that a rewind hides do not count.
  const start = windowStart(newestFirst(db, tape, visible(db, tape, base)), last, { isFull: true });
  return start === undefined ? Math.min(tape.floor_seq, base) : start - 1;
}

function startState(db: Writer['db'], tape: TapeRow): JsonObject | undefined {
  return tape.parent_id === null ? undefined : stateAt(db, tape, tape.base_seq + 1);
}

function stateAt(db: Writer['db'], tape: TapeRow, seq: Seq): JsonObject | undefined {
  const entry = entryAt(db, tape, seq);
  if (entry?.mark !== 'anchor' && entry?.mark !== 'boundary') return undefined;
  const { payload } = entry;
  return isObject(payload) && isObject(payload.state) ? payload.state : undefined;
}
