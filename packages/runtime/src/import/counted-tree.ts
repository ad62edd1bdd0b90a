import type { HomeStore } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import { SharedCounts } from '../imported/ledger.ts';
import { sessionOf, sourceOf } from '../imported/origins.ts';
import type { ImportPlan } from '../plan/plan.ts';

/** What the conversations of a source have counted here; undefined where it has one alone. */
export function countedTree(
  store: HomeStore,
  { format, session, conversations }: ImportPlan,
): SharedCounts | undefined {
  const copies = copiesIn(store);
  const main = sessionOf(store, { format, session });
  const under = main === undefined ? [] : store.sessions.list({ under: main.id, kind: 'session', all: true });
  // What continues an export is forked from that, as its branches are.
  const branches = copies.tools.branchesOf(sourceOf(format, session)).map(([id]) => id);
  const others = new Set([...under.map(({ id }) => id), ...branches]);
  const isAlone = others.size === 0 && !conversations.some(({ kind }) => kind === 'branch');
  if (isAlone) return undefined;
  const counts = new SharedCounts(copies.ledger);
  for (const id of [...(main === undefined ? [] : [main.id]), ...others]) counts.add(id);
  return counts;
}
