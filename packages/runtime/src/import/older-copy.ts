import type { HomeStore } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import { showing } from '../copies/walk.ts';
import { saysNothingNew } from '../imported/change.ts';
import { firstKeyIn } from '../imported/first-said.ts';
import { importedIn } from '../imported/imported.ts';
import { sourceOf } from '../imported/origins.ts';
import { isAside } from '../plan/plan.ts';
import { beforeRewind, knownIn, type ReadTape } from './read-tape.ts';
import type { Writing } from './writing.ts';

/**
 * A tape with what a source lacks on it that has less of its conversation than before, as an older copy does: what it alone has
 * beside the conversation, such as a title that it got since. Undefined for a source that has something else, and is none.
 * @param others the other sessions of the conversation
 */
export function asOlderCopy(
  store: HomeStore,
  writing: Writing,
  tape: ReadTape,
  { session, others }: { readonly session: string; readonly others: readonly string[] },
): ReadTape | undefined {
  const { conversation } = writing;
  const { imported, change } = tape;
  const { same } = beforeRewind(store, writing, { ...tape, session }) ?? change;
  const lacking = (drafts: ReadTape['change']['drafts']) => ({
    ...tape,
    change: { same: change.same, drafts },
  });
  if (saysNothingNew(conversation, imported)) return lacking([]);
  const own = [imported, ...branchesOf(store, writing).map((id) => importedIn(store, id))];
  const known = new Set(own.flatMap((one) => [...one.known]));
  if (same === conversation.spine.length)
    return lacking(change.drafts.filter((draft) => isAside(draft) && !known.has(draft.key ?? '')));
  const beside = knownIn(store, others);
  const has = own.some((one) => saysNothingNew(conversation, { ...one, known, beside }));
  return has ? lacking([]) : undefined;
}

/**
 * The branches of a source, deleted or not, and what it is a copy of: an older copy shows what is in one of them where a prompt
 * was typed anew since. The session that this import makes show something else counts for none.
 */
function branchesOf(store: HomeStore, { plan, conversation, from }: Writing): readonly string[] {
  const copies = copiesIn(store);
  const branches = copies.branchesOf(sourceOf(plan.format, plan.session)).map(([id]) => id);
  const settled = { ...conversation, spine: conversation.spine.slice(0, conversation.settled) };
  const family = copies.family(firstKeyIn(conversation));
  const other = family && showing(family, settled);
  const left = from?.isLeft === true ? store.sessions.find(from.session)?.id : undefined;
  return other === undefined || other.id === left ? branches : [...branches, other.id];
}
