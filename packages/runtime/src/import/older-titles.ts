import type { HomeStore } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import { isOfImport } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { sourceOf } from '../imported/origins.ts';
import { type ImportPlan, isAside } from '../plan/plan.ts';
import type { Reconciled } from './reconciled.ts';

/**
 * Returns a function that says, by its key, whether the title of a conversation may be an earlier one, as in an older copy: the
 * main file of the plan brought nothing, and lacks a record beside the conversation that a session has, such as a title.
 */
export function olderTitles(
  store: HomeStore,
  plan: ImportPlan,
  done: readonly Reconciled[],
): (conversation: string) => boolean {
  const [main] = plan.conversations;
  const its = new Set(plan.conversations.flatMap(({ key, file }) => (file === main?.file ? key : [])));
  const receipts = done.filter(({ conversation }) => its.has(conversation));
  const isNothing = receipts.every(({ created, added }) => !created && added === 0);
  let isOlder: boolean | undefined;
  return (conversation) => {
    if (!isNothing || !its.has(conversation)) return false;
    isOlder ??= lacksRecords(store, plan, receipts);
    return isOlder;
  };
}

/** Whether sessions of a source have a record beside their conversations that a plan of it has not. */
function lacksRecords(
  store: HomeStore,
  { format, session, conversations }: ImportPlan,
  receipts: readonly Reconciled[],
): boolean {
  const drafts = conversations.flatMap(({ spine, asides }) => [
    ...spine,
    ...asides.map(({ draft }) => draft),
  ]);
  const keys = new Set(drafts.map(keyOf));
  const branches = copiesIn(store).tools.branchesOf(sourceOf(format, session));
  const sessions = new Set([...receipts.map((one) => one.session), ...branches.map(([id]) => id)]);
  for (const one of sessions) {
    if (store.sessions.find(one)?.lifecycle !== 'active') continue;
    for (const entry of store.entries.read(one, { own: true }))
      if (isOfImport(entry) && isAside(entry) && entry.kind !== 'x-derived' && !keys.has(keyOf(entry)))
        return true;
  }
  return false;
}
