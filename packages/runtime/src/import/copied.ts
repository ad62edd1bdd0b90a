import type { Seq, SqliteTapeStore } from '@tapedeck/tape';
import { copiesIn } from './copies.ts';
import { firstKeyIn } from './first-said.ts';
import { importedIn } from './imported.ts';
import { sessionOf, sourceOf } from './origins.ts';
import type { ConversationPlan, ImportPlan } from './plan.ts';

/** What the home has of a new conversation. */
type Copied =
  /** All of it: the name of the session of another source that shows it. */
  | { readonly whole: string }
  /** A part of it: the session from which it forks, and where. */
  | { readonly at: string; readonly cut: Seq };

/**
 * Where the home has most of a new conversation already, which may be another session than its parent: that of which the source
 * is a copy, or a branch of that. A branch all of which another source's session shows is there as a whole.
 */
export function copiedIn(
  store: SqliteTapeStore,
  {
    plan,
    conversation,
    from,
    as,
  }: {
    readonly plan: ImportPlan;
    readonly conversation: ConversationPlan;
    readonly from: { readonly session: string } | undefined;
    readonly as: string | undefined;
  },
): Copied | undefined {
  const isBranch = conversation.kind === 'branch';
  if (as !== undefined || (conversation.kind !== 'main' && !isBranch)) return undefined;
  const copies = copiesIn(store);
  const family = copies.family(firstKeyIn(conversation))?.family;
  if (family === undefined) return undefined;
  const own = sourceOf(plan.format, plan.session);
  const whole = isBranch ? family.showing(conversation, ({ id }) => copies.sourceOf(id) !== own) : undefined;
  if (whole !== undefined && hasAsides(store, whole.id, conversation)) return { whole: whole.session };
  const { format, copyOf } = plan;
  const preferred =
    from?.session ?? (copyOf === undefined ? undefined : sessionOf(store, { format, session: copyOf }));
  const at = family.branching(conversation, preferred && store.sessions.find(preferred)?.id);
  return at && { at: at.id, cut: at.cut };
}

/** Whether a session has all records that are no part of the conversation. */
function hasAsides(store: SqliteTapeStore, id: string, { asides }: ConversationPlan): boolean {
  if (asides.length === 0) return true;
  const { known } = importedIn(store, id);
  return asides.every(({ draft }) => known.has(draft.key ?? ''));
}
