import type { HomeStore } from '@tapedeck/tape';
import { commonOf, spineOf } from '../imported/change.ts';
import { firstKeyIn } from '../imported/first-said.ts';
import { importedIn } from '../imported/imported.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { sourceNamedBy, sourceOf } from '../imported/origins.ts';
import type { Base, ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';

/**
 * The session with which a new conversation that has a base has the longest beginning in common, by the keys and contents
 * of its entries: its source, a copy of the same one or, of a branch, another session of its own. Of several, the one that its
 * source names.
 */
export function beginsLike(
  store: HomeStore,
  plan: ImportPlan,
  conversation: ConversationPlan & { readonly base: Base },
): string | undefined {
  const { format, session: own } = plan;
  const key = firstKeyIn(conversation);
  const named = sourceNamedBy(store, plan)?.session;
  const { kind, base } = conversation;
  const copies = copiesIn(store);
  const mains = key === undefined ? [] : copies.mains(key);
  // A branch of its own source may be what it shows by now.
  const continuing = copies.tools
    .continuing(base.session)
    .flatMap(({ id, source }) => (kind === 'main' && source === sourceOf(format, own) ? [] : id));
  const first = conversation.spine[0]?.key ?? '';
  const begins = (id: string) => [...store.entries.read(id, { key: `u:${first}`, limit: 1 })].length > 0;
  const forks = forksOf(store, base.session).filter((id) => begins(id) && isMain(store, id));
  const others = [...mains.filter(begins), ...forks, ...continuing.filter(begins)].flatMap((id) => {
    const info = store.sessions.find(id);
    return info?.lifecycle === 'active' ? info.session : [];
  });
  let best: { readonly session: string; readonly common: number } | undefined;
  for (const session of new Set([...(named === undefined ? [] : [named]), ...others])) {
    const common = commonOf(conversation, spineOf(importedIn(store, session, base).shown));
    if (common > (best?.common ?? 0)) best = { session, common };
  }
  return best?.session;
}

/** The sessions that were forked from one: of those that go on from it, one may be a copy of another. */
function forksOf(store: HomeStore, from: string): readonly string[] {
  const id = store.sessions.find(from)?.id;
  return id === undefined ? [] : [...copiesIn(store).forksOf(id)];
}

/** Whether a session is the main conversation of an import. */
function isMain(store: HomeStore, id: string): boolean {
  const info = store.sessions.find(id);
  const origin = info?.kind === 'session' ? knownSessionsIn(store).of(info).origin : undefined;
  return origin !== undefined && origin.conversation === undefined;
}
