import type { ImportPlan } from './plan.ts';

const keysOfPlans = new WeakMap<Pick<ImportPlan, 'conversations'>, ReadonlySet<string>>();

/** The keys of all that the conversations of a plan have. Pure. */
export function keysOf(plan: Pick<ImportPlan, 'conversations'>): ReadonlySet<string> {
  const known = keysOfPlans.get(plan);
  if (known !== undefined) return known;
  const keys = new Set(plan.conversations.flatMap(({ spine }) => spine.map(({ key = '' }) => key)));
  keysOfPlans.set(plan, keys);
  return keys;
}
