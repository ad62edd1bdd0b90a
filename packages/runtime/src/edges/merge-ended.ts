import type { Draft, HomeStore, MergeRequest, Seq, SessionInfo } from '@tapedeck/tape';
import { isDeleted, isObject } from '@tapedeck/tape/internal';
import type { LineageLine } from '@tapedeck/tape/store';
import { withAncestors } from '../imported/ancestors.ts';
import { isReturned } from '../imported/copy-notes.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { text } from '../plan/text.ts';
import { parentSession, receivedIn } from './parent-session.ts';
import { isRefusal } from './refusal.ts';

/**
 * Merges each subagent whose result came back into the session that got it, once, with the time at which it came, and the
 * position at which that session has it. Views do not show the merge: they show the result, as the model got it. A merge that a
 * rewind of an import hid is made again, and so is one into a branch that has ended; one that a person undid stays undone.
 */
export function mergeEnded(
  store: HomeStore,
  plan: ImportPlan,
  sessionOf: (key: string) => string | undefined,
): void {
  const { conversations } = plan;
  const plans = new Map(conversations.map((one) => [one.key, one]));
  // Before the first merge: behind each the tape of the parent would be read again.
  const ended = endedIn(store, plan, sessionOf);
  // Those that were called last first: what a subagent got of its own is part of what it delivers.
  for (const { conversation, session, status, into } of ended.toReversed()) {
    const { parent } = conversation;
    const child = store.sessions.find(session);
    if (child === undefined) continue;
    const above = into === undefined ? undefined : store.sessions.find(into);
    // What stands for its parent until that comes takes no report: that may be a fork, which takes its place.
    if (above !== undefined && showsNothing(store, above.id)) continue;
    const isHere = above !== undefined && withAncestors(store, child.parentId).includes(above.id);
    // Where its parent was not known before, the merge is in what stood for that, and stays the only one.
    if (isHere ? isMerged(store, child) : child.delivery !== undefined) continue;
    const timestamp = timeOf(conversation, plans.get(parent?.key ?? ''));
    const received = isHere ? receivedIn(store, above.id, conversation) : undefined;
    mergeIfFree(store, session, {
      ...{ context: false, status },
      ...(isHere && { into: above.id }),
      ...(timestamp !== undefined && { timestamp }),
      ...(received !== undefined && { received }),
    });
  }
}

/** A subagent that has ended, and the session that got it. */
interface Ended {
  readonly conversation: ConversationPlan;
  readonly session: string;
  readonly status: NonNullable<ConversationPlan['ended']>;
  /** Undefined where that was not written. */
  readonly into: string | undefined;
}

function endedIn(
  store: HomeStore,
  plan: ImportPlan,
  sessionOf: (key: string) => string | undefined,
): readonly Ended[] {
  return plan.conversations.flatMap((conversation): Ended[] => {
    const { key, ended: status, parent } = conversation;
    const session = sessionOf(key);
    const child = session === undefined ? undefined : store.sessions.find(session);
    if (session === undefined || child?.parent === undefined || status === undefined) return [];
    const written = sessionOf(parent?.key ?? '');
    const into =
      written === undefined ? undefined : parentSession(store, plan, conversation, { session, written });
    return [{ conversation, session, status, into }];
  });
}

/** Merges a subagent, unless one of the two sessions is archived or in use: a later import merges it. */
export function mergeIfFree(store: HomeStore, child: string, request: MergeRequest): void {
  try {
    store.lineage.merge(child, request);
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
}

/** The last merge of a session. */
export function lastMerge(store: HomeStore, id: string): LineageLine | undefined {
  return [...store.lineage.read({ session: id, types: ['merge'] })].at(-1);
}

function showsNothing(store: HomeStore, id: string): boolean {
  return [...store.entries.read(id, { kind: 'message', limit: 1 })].length === 0;
}

/** Whether a session was merged, and no import took that back: by a rewind of what got it, or with the end of a branch. */
export function isMerged(store: HomeStore, info: SessionInfo): boolean {
  return info.delivery !== undefined && !isOpenAgain(store, info);
}

function isOpenAgain(store: HomeStore, { id, undone }: SessionInfo): boolean {
  const { into, seq } = lastMerge(store, id) ?? {};
  if (into === undefined || seq === undefined) return false;
  const target = store.sessions.find(into);
  if (undone !== true) return target !== undefined && isDeleted(target) && isReturned(store, into);
  // What hid it first: a later rewind of an import may hide that, too.
  for (let at: Seq | undefined; ; ) {
    const [range] = store.views.ranges(into, { from: seq, ...(at !== undefined && { at }) });
    if (range?.hiddenBy === undefined) return true;
    const [rewind] = store.entries.read(into, { from: range.hiddenBy, to: range.hiddenBy });
    if (!isObject(rewind?.payload) || rewind.payload.mode !== 'import') return false;
    at = range.hiddenBy - 1;
  }
}

/** When the result of a subagent came back, or else when that said something last. */
function timeOf(
  { received, spine }: ConversationPlan,
  parent: ConversationPlan | undefined,
): string | undefined {
  const came = received === undefined ? undefined : parent?.spine.find(({ key }) => key === received);
  return timestampOf(came) ?? timestampOf(spine.findLast((draft) => timestampOf(draft) !== undefined));
}

function timestampOf(draft: Draft | undefined): string | undefined {
  return text(draft?.meta?.timestamp);
}
