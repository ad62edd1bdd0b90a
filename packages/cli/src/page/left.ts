import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { toneOf } from '../output/session.ts';
import { stated } from '../session/stated.ts';
import { type Left, leftIn } from '../transcript/forks.ts';
import type { TimelineItem } from './data.ts';
import { lineOf, type PageSource, refOf } from './source.ts';

/** Children that an answer names. */
const childrenMax = 200;

/** The items of a range of positions, and between them the children that left there. */
export async function withLeft(
  source: PageSource,
  info: SessionInfo,
  {
    items,
    from,
    to,
  }: { readonly items: readonly TimelineItem[]; readonly from: number; readonly to: number },
): Promise<readonly TimelineItem[]> {
  const { store } = source;
  const left = [...Iterator.from(leftIn(store, info.id, { from, to })).take(childrenMax)];
  if (left.length === 0) return items;
  const children = left.flatMap((one) => ('child' in one ? [one.child] : []));
  const states = new Map((await stated(store, children)).map(({ info: { id }, state }) => [id, state]));
  const owner = refOf(store, info);
  const forks = Array.from(
    Map.groupBy(left, ({ at }) => at),
    ([seq, here]): TimelineItem => ({
      ...{ seq, owner, inherited: false, kind: 'forks', parts: [] },
      forks: here.flatMap((one) => forkOf(store, one, states)),
      ...(here.some((one) => 'more' in one) && { moreForks: true }),
      commands: [{ what: 'List all children', line: lineOf(source, 'children', [owner]) }],
    }),
  );
  // A child has read the entry at its place: it comes behind that.
  return [...items, ...forks].sort(
    (a, b) => a.seq - b.seq || Number(a.kind === 'forks') - Number(b.kind === 'forks'),
  );
}

function forkOf(
  store: HomeStore,
  one: Left,
  states: ReadonlyMap<string, string>,
): NonNullable<TimelineItem['forks']> {
  if (!('child' in one)) return [];
  const state = states.get(one.child.id) ?? '';
  return [{ session: refOf(store, one.child), state, tone: toneOf(state) }];
}
