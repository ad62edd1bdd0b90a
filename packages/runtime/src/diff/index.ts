/**
 * The comparison of two sessions: `base.ts` finds the last position that both show, `side.ts` reads what each has after
 * it. Reads only, and loads no AI SDK. Imports `config`, `terms`, `store-of` and `fields`.
 */
import type { Seq, TapeStore } from '@tapedeck/tape';
import { type StoreSource, storeOf } from '../store-of.ts';
import { type CommonBase, commonBase } from './base.ts';
import { type DiffPlace, type Placed, placeOf } from './place.ts';
import { type DiffSide, lastAnswer, sideOf } from './side.ts';

export type { CommonBase } from './base.ts';
export type { DiffPlace } from './place.ts';
export type { DiffMessage, DiffSide } from './side.ts';

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
 * a time, and shared ones only to find the last answer.
 * @param source a store, or a deck
 * @param one a session, by its name or id, or a point of it; so is `other`
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
): Promise<SessionDiff> {
  const store = storeOf(source, 'compare sessions');
  const a = await placeOf(store, one);
  const b = await placeOf(store, other);
  const base = await commonBase(store, a, b);
  const sides = [await side(store, a, base), await side(store, b, base)] as const;
  const wrote = new Set(written(sides[1]));
  return {
    ...(base !== undefined && { base }),
    a: sides[0],
    b: sides[1],
    both: written(sides[0]).filter((what) => wrote.has(what)),
  };
}

async function side(store: TapeStore, place: Placed, base: CommonBase | undefined): Promise<DiffSide> {
  const { info, at, visible } = place;
  const from = base?.seq ?? 0;
  const added = visible.flatMap(([lo, hi]) => (hi <= from ? [] : [[Math.max(lo, from + 1), hi] as const]));
  const own = await sideOf(info.session, at, { ranges: added, read: (range) => read(store, info.id, range) });
  if (own.answer !== undefined) return own;
  const before = visible.flatMap(([lo, hi]) => (lo > from ? [] : [[lo, Math.min(hi, from)] as const]));
  const answer = await lastAnswer(store, info.id, before);
  return answer === undefined ? own : { ...own, answer };
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
