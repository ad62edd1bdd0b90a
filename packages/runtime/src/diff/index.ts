/**
 * The comparison of two sessions: `base.ts` finds the last position that both show, `side.ts` reads what each has after
 * it. Reads only, and loads no AI SDK. Imports `config`, `terms`, `store-of`, `errors` and `fields`.
 */
import type { Seq, TapeStore } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import { assertFields, type Fields } from '../fields.ts';
import { type StoreSource, storeOf } from '../store-of.ts';
import { type CommonBase, commonBase } from './base.ts';
import { type DiffPlace, type Placed, placeOf } from './place.ts';
import { type DiffLimits, type DiffSide, lastAnswer, sideOf } from './side.ts';

export type { CommonBase } from './base.ts';
export type { DiffPlace } from './place.ts';
export type { DiffLimits, DiffMessage, DiffSide } from './side.ts';

/** The common base of two sessions, and what each has beyond it. */
export interface SessionDiff {
  /** Absent if they share no tape. */
  readonly base?: CommonBase;
  readonly a: DiffSide;
  readonly b: DiffSide;
  /** What both have written since: `state:KEY` or `file:PATH`. */
  readonly both: readonly string[];
}

/**
 * Compares two sessions, each at its point: where they diverge, and what each has since. Reads entries one at
 * a time, the newest of each side, and shared ones only to find the last answer.
 * @param source a store, or a deck
 * @param one a session, by its name or id, or a point of it; so is `other`
 * @param limits how much of each side is read and listed
 * @throws TAPE_NO_SESSION, TAPE_NO_ANCHOR, TAPE_NO_SEQ, SESSION_BAD_INPUT
 *
 * @example
 * ```ts
 * import { diffSessions, openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.run('Plan the release.');
 * const idea = await main.branch('head', { name: 'idea' });
 * await idea.run('Shorter?');
 * const { base, b } = await diffSessions(deck.store, { session: 'main' }, { session: 'idea' });
 * console.log(base?.session, b.messages.user); // main 1
 * ```
 */
export async function diffSessions(
  source: StoreSource,
  one: string | DiffPlace,
  other: string | DiffPlace,
  limits: DiffLimits = {},
): Promise<SessionDiff> {
  assertFields(limits, limitFields, 'compare sessions');
  for (const [field, most = 0] of Object.entries(limits))
    if (typeof most !== 'number' || !(most >= 0))
      throw new SessionError('SESSION_BAD_INPUT', `cannot compare sessions: '${field}' is no number from 0`, {
        data: { field },
      });
  const store = storeOf(source, 'compare sessions');
  const a = await placeOf(store, one);
  const b = await placeOf(store, other);
  const base = await commonBase(store, a, b);
  const sides = [await side(store, a, { base, limits }), await side(store, b, { base, limits })] as const;
  const wrote = new Set(written(sides[1]));
  return {
    ...(base !== undefined && { base }),
    a: sides[0],
    b: sides[1],
    both: written(sides[0]).filter((what) => wrote.has(what)),
  };
}

const limitFields: Fields<DiffLimits> = { entries: true, messages: true };

async function side(
  store: TapeStore,
  place: Placed,
  { base, limits }: { readonly base: CommonBase | undefined; readonly limits: DiffLimits },
): Promise<DiffSide> {
  const { info, at, visible } = place;
  const from = base?.seq ?? 0;
  const added = visible.flatMap(([lo, hi]) => (hi <= from ? [] : [[Math.max(lo, from + 1), hi] as const]));
  const own = await sideOf(info.session, at, {
    ranges: added,
    read: (range) => read(store, info.id, range),
    limits,
  });
  if (own.answer !== undefined) return own;
  const answer = await lastAnswer(store, info.id, own.read === undefined ? upTo(visible, from) : visible);
  return answer === undefined ? own : { ...own, answer };
}

function upTo(ranges: Placed['visible'], last: Seq): Placed['visible'] {
  return ranges.flatMap(([lo, hi]) => (lo > last ? [] : [[lo, Math.min(hi, last)] as const]));
}

function read(store: TapeStore, id: string, [from, to]: readonly [Seq, Seq]) {
  return store.entries.read(id, { from, to });
}

function written({ files, state }: DiffSide): string[] {
  return [
    ...state.map(({ key }) => `state:${key}`),
    ...files.filter(({ wrote }) => wrote).map(({ path }) => `file:${path}`),
  ];
}
