import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { cutField } from '../lineage/outbox.ts';
import { segments } from '../tape/interval.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { BesideTapes } from './beside.ts';
import { type Problem, problemsOf } from './problem.ts';

/** An entry that a fork begins with, or that its state was copied from. */
interface Row {
  readonly seq: Seq;
  readonly kind: string;
  readonly mark: string | null;
  readonly name: string | null;
  readonly payload: string | null;
}

/**
 * Compares the first entries of a fork with what they repeat: the state in `fork/start` with the parent's, and the
 * intention with the line of the fork.
 */
export function* verifyForkStart(db: Db, tape: TapeRow, tapes: BesideTapes): Generator<Problem> {
  if (tape.parent_id === null || tape.parent_ulid === null) return;
  const problem = problemsOf(tape.name);
  const [start, second] = [1, 2].map((n) => rowAt(db, tapes, { id: tape.id, seq: tape.base_seq + n }));
  const from = start?.name === 'fork/start' && start.payload !== null ? sourceOf(db, tape, tapes) : undefined;
  if (start !== undefined && from !== undefined) {
    const { state } = tapes.parsed(start.payload);
    const isNone = state === undefined && tape.floor_seq === tape.base_seq;
    if (!isNone && textOf(state) !== textOf(from.state))
      yield problem(
        'record-contradicted',
        start.seq,
        `${tape.name}@${start.seq} began with another state than ${from.what}`,
      );
  }
  const line = tapes.of(tape.id).lines.find(({ type }) => type === 'fork');
  const fault =
    line?.fields === undefined || second === undefined
      ? undefined
      : intentionFault(tapes, second, line.fields);
  if (fault !== undefined && second !== undefined)
    yield problem(
      'record-contradicted',
      second.seq,
      `${tape.name}@${second.seq} ${fault} line ${line?.g} of the lineage recorded`,
    );
}

function rowAt(
  db: Db,
  { entries }: BesideTapes,
  place: { readonly id: number; readonly seq: Seq },
): Row | undefined {
  return (
    entries?.at(place.id, place.seq) ??
    db.get<Row>('SELECT seq, kind, mark, name, payload FROM entry WHERE tape_id = @id AND seq = @seq', place)
  );
}

/** The state that a fork was made with, and where it comes from, in words. */
interface Source {
  readonly state: Json | undefined;
  readonly what: string;
}

/** Returns where a fork's state comes from; undefined where that is not known, or was erased. */
function sourceOf(
  db: Db,
  { parent_id, from_anchor, floor_seq, base_seq }: TapeRow,
  tapes: BesideTapes,
): Source | undefined {
  const parent = tapes.tape(parent_id ?? 0);
  if (from_anchor === null) {
    if (parent.parent_id === null) return { state: undefined, what: `${parent.name} has` };
    const start = rowAt(db, tapes, { id: parent.id, seq: parent.base_seq + 1 });
    return start?.name === 'fork/start' ? stateOf(tapes, start, parent.name) : undefined;
  }
  if (from_anchor.startsWith('@'))
    return { state: undefined, what: `${parent.name}${from_anchor}, which is no anchor` };
  // Where nothing is inherited, the anchor may lie behind the base.
  if (floor_seq === base_seq) return undefined;
  const [owner] = segments(db, { ...parent, floor_seq: 0 }, floor_seq - 1, floor_seq);
  const anchor = owner === undefined ? undefined : rowAt(db, tapes, { id: owner.tapeId, seq: floor_seq });
  if (anchor === undefined) return undefined;
  const isAnchor = anchor.mark === 'anchor' || anchor.mark === 'boundary';
  if (!isAnchor || anchor.name !== from_anchor)
    return {
      state: { from_anchor },
      what: `${parent.name}@${floor_seq}, which is no anchor '${from_anchor}'`,
    };
  return stateOf(tapes, anchor, parent.name);
}

function stateOf(tapes: BesideTapes, { seq, payload }: Row, session: string): Source | undefined {
  if (payload === null) return undefined;
  const { state } = tapes.parsed(payload);
  return { state: isObject(state) ? state : undefined, what: `${session}@${seq} has` };
}

function textOf(state: Json | undefined): string {
  return JSON.stringify(state ?? null);
}

/** The fields of an intention, as a request has them and as entries and lines do. */
const fields = [
  ['nextSteps', 'next_steps'],
  ['contextSummary', 'context_summary'],
  ['triggerOnComplete', 'trigger_on_complete'],
] as const;

/** Returns how an entry differs from the intention in a line, in words before the line's number. */
function intentionFault(
  tapes: BesideTapes,
  { kind, name, payload }: Row,
  { intention }: JsonObject,
): string | undefined {
  const isOne = kind === 'anchor' && name === 'intention';
  if (!isObject(intention)) return isOne ? 'is an intention, and none' : undefined;
  if (!isOne) return 'is not the intention that';
  if (payload === null) return undefined;
  const { state } = tapes.parsed(payload);
  const given = fields.flatMap(([of, field]) => {
    const text = isObject(state) ? state[field] : undefined;
    return text === undefined ? [] : [{ of, field, text }];
  });
  const isCut = fields.every(([, field]) => {
    const text = given.find((one) => one.field === field)?.text;
    return intention[field] === (typeof text === 'string' ? cutField(text) : undefined);
  });
  // The digest has the fields in the order of the request.
  const isWhole = orders(given).some(
    (order) =>
      sha256(JSON.stringify(Object.fromEntries(order.map(({ of, text }) => [of, text])))) ===
      intention.digest,
  );
  return isCut && isWhole ? undefined : 'is another intention than';
}

function orders<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length < 2) return [items];
  return items.flatMap((first) =>
    orders(items.filter((other) => other !== first)).map((rest) => [first, ...rest]),
  );
}
