import type { ConversationPlan } from '../plan/plan.ts';

/** A conversation whose drafts have other places. */
export function placed(conversation: ConversationPlan, placeOf: (after: number) => number): ConversationPlan {
  const { settled, asides } = conversation;
  return {
    ...conversation,
    settled: placeOf(settled),
    asides: asides.map(({ draft, after }) => ({ draft, after: placeOf(after) })),
  };
}

/** The place behind some drafts once those are taken out that a compaction keeps, which follow the first one. */
export function behindKept(after: number, kept: number): number {
  return Math.max(Math.min(after, 1), after - kept);
}
