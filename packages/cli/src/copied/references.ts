import type { Draft, Json, JsonObject, Seq } from '@tapedeck/tape';
import { isObject, omittedIn } from '@tapedeck/tape/internal';
import type { CopiedPlaces } from './places.ts';

/** What has references to positions, once it is known where the entries of a copy are. */
type Referring<T> = (at: (entry: number) => Seq) => T;

/** The places of a log in its copy, as references need them. */
type Places = Pick<CopiedPlaces, 'before' | 'upTo'>;

/**
 * What records the view that a model was sent keeps the policy, by which the next one is made, and the position: the
 * digest and the ranges are those of the original. Undefined for what records none.
 */
export function viewedIn(record: JsonObject | undefined, places: Places): Referring<JsonObject> | undefined {
  const { view } = record ?? {};
  if (!isObject(view) || typeof view.head !== 'number') return undefined;
  const { policy = null, target, head } = view;
  const last = places.upTo(Number(head));
  return (at) => ({
    ...record,
    view: { policy, ...(target !== undefined && { target }), head: at(last) },
  });
}

/** The payload of a boundary; that of a summary says which positions it replaces. */
export function statedIn({ kind, payload }: Draft, places: Places): Referring<unknown> {
  const state: JsonObject = isObject(payload) && isObject(payload.state) ? payload.state : {};
  if (kind !== 'compaction') return () => ({ ...(isObject(payload) && payload), state });
  const { range, summarized_through: through, first_kept: first } = state;
  const from = (seq: Json | undefined) => places.before(Number(seq));
  const upTo = (seq: Json | undefined) => places.upTo(Number(seq));
  const [last, kept] = [upTo(through), from(first)];
  const end = Array.isArray(range) ? upTo(range[1]) : undefined;
  // A range of what was left out alone ends where it begins.
  const ends = Array.isArray(range) && end !== undefined ? [Math.min(from(range[0]), end), end] : undefined;
  return (at) => ({
    ...(isObject(payload) && payload),
    state: {
      ...state,
      summary: state.summary ?? '',
      ...(ends !== undefined && { range: ends.map(at) }),
      ...(through !== undefined && { summarized_through: at(last) }),
      ...(first !== undefined && { first_kept: at(kept) }),
    },
  });
}

/** The payload of a pruning, of the same outputs of the copy: those that were erased have nothing to prune. */
export function prunedIn(payload: JsonObject, places: Pick<CopiedPlaces, 'result'>): Referring<JsonObject> {
  const outputs = (Array.isArray(payload.outputs) ? payload.outputs : []).flatMap((output) => {
    if (!isObject(output) || typeof output.seq !== 'number') return [];
    const number = places.result(output.seq);
    return number === undefined ? [] : [{ output, number }];
  });
  return (at) => ({
    ...payload,
    outputs: outputs.map(({ output, number }) => ({ ...output, seq: at(number) })),
  });
}

/** The payload of an omission, of the same messages of the copy. */
export function omittedOf(payload: JsonObject, places: Pick<CopiedPlaces, 'message'>): Referring<JsonObject> {
  const numbers = omittedIn(payload).flatMap((seq) => places.message(seq) ?? []);
  return (at) => ({ ...payload, entries: numbers.map(at) });
}
