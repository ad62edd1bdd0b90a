import type { HomeStore, Seq } from '@tapedeck/tape';
import { hasAside } from '../imported/change.ts';
import { firstKeyIn } from '../imported/first-said.ts';
import { type Records, type Shown, shownOf } from '../imported/imported.ts';
import { keyAgain, saysLine } from '../imported/keys.ts';
import { sourceNamedBy } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';
import { type Begun, branching, shows } from './walk.ts';

/** The session from which a conversation forks, where, and how many drafts of the conversation precede that. */
export interface CopiedPart {
  readonly at: string;
  readonly cut: Seq;
  readonly count: number;
  /** The keys of what was erased in the sessions that begin alike. */
  readonly erased: ReadonlySet<string>;
}

/** A conversation that is written. */
interface Copying {
  readonly plan: ImportPlan;
  readonly conversation: ConversationPlan;
  /** The session of its parent. */
  readonly from: { readonly session: string } | undefined;
  readonly begun: Begun | undefined;
  readonly as: string | undefined;
}

/**
 * Where the home has most of a new conversation already, which may be another session than its parent: that of which the source
 * is a copy, or a branch of that. What has all of a branch may be the session of a copy: the branch is a fork of its last entry
 * then, so that a source has the same sessions whichever of its copies came before it.
 */
export function copiedIn(
  store: HomeStore,
  { plan, conversation, from, begun, as }: Copying,
): CopiedPart | undefined {
  if (as !== undefined || conversation.kind === 'subagent') return undefined;
  const copies = copiesIn(store);
  const family = copies.family(firstKeyIn(conversation));
  if (family === undefined) return undefined;
  const preferred = from === undefined ? sourceNamedBy(store, plan) : store.sessions.find(from.session);
  const at = branching(family, conversation, preferred?.id, begun);
  return at && { at: at.id, cut: at.cut, count: at.count, erased: family.erased };
}

/** Whether the session of a branch shows that, and nothing else. */
export function isAsItWas(
  store: HomeStore,
  session: string,
  { conversation, begun, as }: Pick<Copying, 'conversation' | 'begun' | 'as'>,
): boolean {
  const { kind, base } = conversation;
  if (kind !== 'branch' || base !== undefined || as !== undefined) return false;
  const id = store.sessions.find(session)?.id ?? '';
  const family = copiesIn(store).family(firstKeyIn(conversation));
  const isShown = family !== undefined && shows(family, id, conversation, begun);
  return isShown && hasAsides(store, id, conversation);
}

/** What a session has up to a position of the records beside a conversation. */
export function asidesIn(
  store: HomeStore,
  id: string,
  { asides }: ConversationPlan,
  to: Seq = Number.MAX_SAFE_INTEGER,
): Records {
  const known = new Set<string>();
  const byLine = new Map<string, readonly Shown[]>();
  for (const { draft } of asides) {
    const { key = '' } = draft;
    const there = [...writtenUnder(store, id, { key, to })];
    if (there.length > 0) known.add(key);
    if (there.length > 0 && saysLine(key)) byLine.set(key, there);
  }
  return { known, byLine };
}

function* writtenUnder(
  store: HomeStore,
  id: string,
  { key, to }: { readonly key: string; readonly to: Seq },
): Generator<Shown> {
  for (let again = 0; ; again += 1) {
    const [entry] = store.entries.read(id, { key: `u:${keyAgain(key, again)}`, to });
    if (entry === undefined) return;
    yield shownOf(entry, key);
  }
}

function hasAsides(store: HomeStore, id: string, conversation: ConversationPlan): boolean {
  const records = asidesIn(store, id, conversation);
  return conversation.asides.every(({ draft }) => hasAside(records, draft));
}
