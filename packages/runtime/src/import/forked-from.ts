import type { HomeStore } from '@tapedeck/tape';
import { beginsLike } from '../copies/begins-like.ts';
import { emptyMainOf } from '../copies/empty-main.ts';
import { sharedWith } from '../edges/fork-of.ts';
import type { Origins } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import type { From } from './writing.ts';

/** Of some sessions from which a conversation can be forked, the first one that shows most of it. */
export function forkedFrom(
  store: HomeStore,
  conversation: ConversationPlan,
  sessions: readonly (From | undefined)[],
): From | undefined {
  const all = sessions.filter((one) => one !== undefined);
  // What is forked from a session that takes nothing is refused as that is.
  if (all.length < 2 || all[0]?.refused !== undefined) return all[0];
  const shares = all.map((one) => sharedWith(store, { ...one, conversation }).length);
  return all[shares.indexOf(Math.max(...shares))];
}

/** The session from which a new conversation with a base can be forked, since both begin alike. */
export function alikeBehindBase(
  store: HomeStore,
  plan: ImportPlan,
  conversation: ConversationPlan,
  origins: Origins,
): From | undefined {
  const { base, name } = conversation;
  const there = store.sessions.find(name);
  const isNew = there === undefined || there.id === emptyMainOf(store, plan, origins)?.id;
  if (base === undefined || !isNew) return undefined;
  const session = beginsLike(store, plan, { ...conversation, base });
  return session === undefined ? undefined : { session, earlier: [] };
}
