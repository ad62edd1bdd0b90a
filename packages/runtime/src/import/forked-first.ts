import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { bothOf } from './append-drafts.ts';
import type { Reconciled } from './reconciled.ts';

/** The branch of a conversation that has a draft, by the key of that: what its user has left. Pure. */
export function branchWith(
  { conversations }: Pick<ImportPlan, 'conversations'>,
  { key }: Pick<ConversationPlan, 'key'>,
  draft: string,
): ConversationPlan | undefined {
  return conversations.find(
    ({ kind, parent, spine }) =>
      kind === 'branch' && parent?.key === key && spine.some((one) => one.key === draft),
  );
}

/** What was written of a conversation whose session may have been forked before its turn. Pure. */
export function togetherWith(first: Reconciled | undefined, written: Reconciled): Reconciled {
  if (first === undefined || first.session !== written.session) return written;
  const { created, beside } = first;
  return { ...written, ...bothOf(first, written), created, ...(beside && { beside }) };
}
