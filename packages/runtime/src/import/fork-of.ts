import type { Entry, ForkRequest, Seq, SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { commonOf, spineOf } from './change.ts';
import { importedIn } from './imported.ts';
import type { ConversationPlan } from './plan.ts';

/** A conversation to fork from its parent. */
export interface Forking {
  readonly conversation: ConversationPlan;
  /** The session of the parent. */
  readonly session: string;
  /** What the parent showed before this import. */
  readonly earlier: readonly Entry[];
}

/**
 * Where a conversation is forked from its parent: a subagent before the message with the call that started it, with nothing
 * of its parent; a branch behind the last entry that both have, which the parent may have shown only before this import.
 */
export function forkOf(
  store: SqliteTapeStore,
  { conversation, session, earlier }: Forking,
): ForkRequest {
  const { kind, spine, parent } = conversation;
  const now = importedIn(store, session).shown;
  if (kind === 'subagent') {
    const call = parent?.call;
    const cut = call === undefined ? undefined : callAt(now, call);
    // What is forked since a mark would inherit its state.
    const [at] = cut === undefined ? [] : store.entries.read(session, { from: cut, to: cut });
    const isPlain = at !== undefined && at.mark === undefined;
    const place = isPlain ? { inherit: { since: at.seq }, cut: at.seq } : { inherit: 'nothing' as const };
    return { ...place, kind: 'subagent', ...(call !== undefined && { spawnCall: call }) };
  }
  const [was, is] = [spineOf(earlier), spineOf(now)];
  const shared = commonOf(spine, was) > commonOf(spine, is) ? was : is;
  return { kind: 'session', cut: shared[commonOf(spine, shared) - 1]?.seq ?? 1 };
}

/** The position before the message that makes a call. */
function callAt(shown: readonly Entry[], call: string): Seq | undefined {
  const message = shown.find(
    ({ kind, payload }) =>
      kind === 'message' &&
      isObject(payload) &&
      Array.isArray(payload.content) &&
      payload.content.some((part) => isObject(part) && part.type === 'tool-call' && part.toolCallId === call),
  );
  return message && message.seq - 1;
}
