import type { HomeStore, JsonObject, SessionInfo } from '@tapedeck/tape';
import { copiesIn, countsElsewhere } from './copies.ts';
import type { Counted } from './imported.ts';
import { countsOf, type SharedCounts, together } from './ledger.ts';
import type { ConversationPlan, ImportPlan } from './plan.ts';

/** Who else may have counted the tokens of a conversation. */
interface Counting {
  readonly plan: ImportPlan;
  readonly conversation: ConversationPlan;
  /** The tokens that the session counted that a transcript was exported of, by the keys of drafts. */
  readonly counted: ReadonlyMap<string, JsonObject>;
  /** What the conversations of the source have counted here. */
  readonly tree: SharedCounts | undefined;
}

/**
 * The tokens that a session of a conversation does not count: those of the exported session, of the other conversations of the
 * source, since a prompt that was left may be gone on from later, and of copies.
 */
export function countedElsewhere(
  store: HomeStore,
  { plan, conversation, counted, tree }: Counting,
  { id, parentId, link }: Partial<SessionInfo> = {},
): Counted | undefined {
  const all: Counted[] = [];
  if (counted.size > 0) all.push({ counted: (key) => counted.get(key), answered: () => undefined });
  if (conversation.kind === 'subagent') return together(all);
  if (tree !== undefined) all.push({ ...tree.elsewhere(id), answered: () => undefined });
  const { ledger } = copiesIn(store);
  for (const one of new Set([parentId, link?.parentId]))
    if (one !== undefined) all.push(countsOf(ledger, one));
  return together([...all, ...countsElsewhere(store, plan, conversation, id)]);
}
