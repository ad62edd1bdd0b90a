import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';

/**
 * The branches of a conversation, and those of these, that have any of what its session shows no more once it is rewound, parents
 * first. They are written before that: between the two, what its user left would be in no view. Pure.
 * @param left the keys of what it shows no more
 */
export function branchesWith(
  { conversations }: Pick<ImportPlan, 'conversations'>,
  { key }: Pick<ConversationPlan, 'key'>,
  left: ReadonlySet<string>,
): readonly ConversationPlan[] {
  const below = new Map<string, ConversationPlan>();
  for (const one of conversations) {
    const above = one.parent?.key ?? '';
    if (one.kind === 'branch' && (above === key || below.has(above))) below.set(one.key, one);
  }
  const wanted = new Set<string>();
  for (const one of [...below.values()].toReversed()) {
    const own = one.spine.slice(one.shared ?? 0);
    if (!wanted.has(one.key) && !own.some((draft) => left.has(draft.key ?? ''))) continue;
    wanted.add(one.key).add(one.parent?.key ?? '');
  }
  return [...below.values()].filter((one) => wanted.has(one.key));
}

/**
 * How many of the drafts that are written of a branch its parent has, too. Pure.
 * @param given both, as the plan has them: they share drafts
 */
export function commonWithParent(
  given: ConversationPlan,
  parent: ConversationPlan | undefined,
  { spine }: Pick<ConversationPlan, 'spine'>,
): number {
  let count = given.shared ?? 0;
  const all = given.spine;
  while (count < all.length && all[count] === parent?.spine[count]) count += 1;
  // A base takes some from the beginning, and a compaction puts others there.
  return Math.max(0, count + spine.length - all.length);
}
