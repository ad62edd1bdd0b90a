import type { Draft, Entry, HomeStore } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import { isSame } from '../imported/change.ts';
import type { Cleaner } from '../imported/cleaner.ts';
import { isOfImport, shownOf } from '../imported/imported.ts';
import { keyOf, saysLine } from '../imported/keys.ts';
import { sourceOf } from '../imported/origins.ts';
import { type ImportPlan, isAside } from '../plan/plan.ts';
import { prepared } from './prepared.ts';
import type { Reconciled } from './reconciled.ts';

/**
 * Returns a function that says, by its key, whether the title of a conversation may be an earlier one, as in an older copy: the
 * main file of the plan brought nothing of that, nor of its main conversation, and lacks a record beside the conversation that a
 * session has, such as a title.
 */
export function olderTitles(
  store: HomeStore,
  plan: ImportPlan,
  { done, clean }: { readonly done: readonly Reconciled[]; readonly clean: Cleaner | undefined },
): (conversation: string) => boolean {
  const [main] = plan.conversations;
  const its = new Set(plan.conversations.flatMap(({ key, file }) => (file === main?.file ? key : [])));
  const receipts = done.filter(({ conversation }) => its.has(conversation));
  const isNew = ({ created, added }: Reconciled) => created || added > 0;
  let isOlder: boolean | undefined;
  return (conversation) => {
    if (!its.has(conversation)) return false;
    // Of a copy that went on elsewhere, a branch can be new, and the title of its conversation be there.
    if (receipts.some((one) => [main?.key, conversation].includes(one.conversation) && isNew(one)))
      return false;
    isOlder ??= lacksRecords(store, plan, { receipts, clean });
    return isOlder;
  };
}

/** Whether sessions of a source have a record beside their conversations that a plan of it has not. */
function lacksRecords(
  store: HomeStore,
  { format, session, conversations }: ImportPlan,
  { receipts, clean }: { readonly receipts: readonly Reconciled[]; readonly clean: Cleaner | undefined },
): boolean {
  const keys = new Set<string>();
  const byLine = new Map<string, readonly Draft[]>();
  for (const conversation of conversations) {
    const { spine, asides } = conversation;
    for (const one of [...spine, ...asides.map(({ draft }) => draft)]) keys.add(keyOf(one));
    // In the same line of another copy of the file there can be another record.
    const ofLines = asides.filter(({ draft }) => saysLine(keyOf(draft)));
    for (const { draft } of prepared({ ...conversation, spine: [], asides: ofLines }, clean).asides)
      byLine.set(keyOf(draft), [...(byLine.get(keyOf(draft)) ?? []), draft]);
  }
  const isIn = (entry: Entry) => {
    const key = keyOf(entry);
    if (!saysLine(key)) return keys.has(key);
    return byLine.get(key)?.some((draft) => isSame(draft, shownOf(entry, key))) === true;
  };
  const branches = copiesIn(store).tools.branchesOf(sourceOf(format, session));
  const sessions = new Set([...receipts.map((one) => one.session), ...branches.map(([id]) => id)]);
  for (const one of sessions) {
    if (store.sessions.find(one)?.lifecycle !== 'active') continue;
    for (const entry of store.entries.read(one, { own: true }))
      if (isOfImport(entry) && isAside(entry) && entry.kind !== 'x-derived' && !isIn(entry)) return true;
  }
  return false;
}
