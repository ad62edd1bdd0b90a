import { setImmediate as turn } from 'node:timers/promises';
import type { UsageSum } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import { isoTime } from '@tapedeck/tape/internal';
import type { ModelCalls } from '@tapedeck/tape/store';

/** The calls of a session by day, as far as they were read. */
interface Days {
  readonly days: Map<string, UsageSum>;
  sum: UsageSum;
  last: number;
}

/** What was read of the sessions of a store: the sums of a home are stored, but not by day. */
const known = new WeakMap<HomeStore, Map<string, Days>>();

/** How long calls are read before others have their turn, in milliseconds. */
const turnMs = 20;

/**
 * Adds up calls by day in UTC: of the sessions of some stored sums, all calls that these count. Of each session it reads what
 * is new since it was asked before, and all of it where something that counted was erased: the stored sum tells.
 */
export async function daysOf(
  store: HomeStore,
  calls: readonly ModelCalls[],
): Promise<ReadonlyMap<string, UsageSum>> {
  const { addSums, noSum, sumOf } = await import('@tapedeck/runtime/internal');
  const before = known.get(store) ?? new Map<string, Days>();
  known.set(store, before);
  const days = new Map<string, UsageSum>();
  let began = performance.now();
  for (const [id, own] of Map.groupBy(calls, (of) => of.id)) {
    const stored = own.map(sumOf).reduce<UsageSum>(addSums, noSum);
    let found = before.get(id) ?? { days: new Map(), sum: noSum, last: 0 };
    for (const again of [false, true]) {
      if (isSame(found.sum, stored)) break;
      if (again) found = { days: new Map(), sum: noSum, last: 0 };
      for (const { seq, at, ...call } of store.recordedCalls(id, found.last)) {
        const sum = sumOf(call);
        const day = isoTime(at).slice(0, 10);
        found.days.set(day, addSums(found.days.get(day) ?? noSum, sum));
        found.sum = addSums(found.sum, sum);
        found.last = seq;
        if (performance.now() - began < turnMs) continue;
        await turn();
        began = performance.now();
      }
    }
    before.set(id, found);
    for (const [day, sum] of found.days) days.set(day, addSums(days.get(day) ?? noSum, sum));
  }
  return days;
}

/** Whether two sums are of the same calls; what rounding leaves is no difference. */
function isSame(a: UsageSum, b: UsageSum): boolean {
  return a.steps === b.steps && Math.abs(a.total - b.total) <= 1e-6 * Math.max(1, b.total);
}
