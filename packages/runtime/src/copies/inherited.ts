import type { HomeStore } from '@tapedeck/tape';
import { spineOf } from '../imported/change.ts';
import { lastResumed } from '../imported/copy-notes.ts';
import { shownAt } from '../imported/imported.ts';
import { sourceOf } from '../imported/origins.ts';
import { isStandIn } from '../plan/output.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';

/**
 * Finds which key a draft of a plan has in the session that was resumed, by its own one, as far as the sessions of the plan
 * inherit it: what was erased there since is known by nothing else, so that most never read this.
 * @param main the session of the main conversation
 */
export function keysInherited(
  store: HomeStore,
  plan: ImportPlan,
  main: string,
): (key: string) => string | undefined {
  let keys: ReadonlyMap<string, string> | undefined;
  return (key) => {
    keys ??= readKeys(store, plan, main);
    return keys.get(key);
  };
}

function readKeys(
  store: HomeStore,
  { format, session, conversations }: ImportPlan,
  main: string,
): ReadonlyMap<string, string> {
  const copies = copiesIn(store);
  const ids = [main, ...copies.tools.branchesOf(sourceOf(format, session)).map(([id]) => id)];
  const keys = new Map<string, string>();
  for (const id of ids) {
    const last = lastResumed(store, id);
    if (last === undefined) continue;
    // Whatever follows it by now: what precedes a record is the same wherever that is.
    const spine = conversations.find((one) => one.spine.some(({ key }) => key === last))?.spine ?? [];
    const end = spine.findIndex(({ key }) => key === last);
    const shown = spineOf(shownAt(store, id, store.sessions.find(id)?.base ?? 0));
    for (const [i, { key = '' }] of spine.slice(0, end + 1).entries()) {
      const origin = shown[i]?.key;
      // A result that has come since is no copy of what stood for it.
      if (origin !== undefined && isStandIn(origin) === isStandIn(key)) keys.set(key, origin);
    }
  }
  return keys;
}
