import type { ForkRequest, HomeStore, Seq } from '@tapedeck/tape';
import { commonOf, spineOf } from '../imported/change.ts';
import { importedIn, type Shown } from '../imported/imported.ts';
import type { ConversationPlan } from '../plan/plan.ts';

/** A conversation to fork from its parent. */
export interface Forking {
  readonly conversation: ConversationPlan;
  /** The session of the parent. */
  readonly session: string;
  /** What the parent showed before this import. */
  readonly earlier: readonly Shown[];
}

/**
 * Where a conversation is forked from its parent: a subagent before the message with the call that started it, with nothing
 * of its parent, unless it knows what its parent knew; that and a branch behind the last entry that both have, which the
 * parent may have shown only before this import.
 */
export function forkOf(store: HomeStore, { conversation, session, earlier }: Forking): ForkRequest {
  const { kind, base, parent: { call, inherits } = {} } = conversation;
  const now = importedIn(store, session, base).shown;
  const spawn = call === undefined ? {} : { spawnCall: call };
  if (kind === 'subagent' && inherits !== true) {
    const cut = call === undefined ? undefined : callAt(now, call);
    // What is forked since a mark would inherit its state.
    const [at] = cut === undefined ? [] : store.entries.read(session, { from: cut, to: cut });
    const isPlain = at !== undefined && at.mark === undefined;
    const place = isPlain ? { inherit: { since: at.seq }, cut: at.seq } : { inherit: 'nothing' as const };
    return { ...place, ...spawn, kind };
  }
  const cut = sharedWith(store, { conversation, session, earlier }).at(-1)?.seq ?? base?.cut;
  return { ...placeAt(store, session, cut), ...spawn, kind: kind === 'subagent' ? kind : 'session' };
}

/** Where a session is forked: behind a position or, of one with which nothing is shared, before all that it has. */
export function placeAt(
  store: HomeStore,
  session: string,
  cut: Seq | undefined,
): Pick<ForkRequest, 'cut' | 'inherit'> {
  if (cut !== undefined) return { cut };
  // One that begins behind a part of its parent has no first position.
  return store.sessions.find(session)?.floor === 0 ? { cut: 1 } : { inherit: 'nothing' };
}

/** What of a conversation a session shows behind its base, or showed before this import. */
export function sharedWith(store: HomeStore, { conversation, session, earlier }: Forking): readonly Shown[] {
  const { base } = conversation;
  const was = spineOf(earlier).filter(({ seq }) => seq > (base?.cut ?? 0));
  const is = spineOf(importedIn(store, session, base).shown);
  const [before, now] = [commonOf(conversation, was), commonOf(conversation, is)];
  return before > now ? was.slice(0, before) : is.slice(0, now);
}

/** The position before the message that makes a call. */
export function callAt(shown: readonly Shown[], call: string): Seq | undefined {
  const message = shown.find(({ calls }) => calls.includes(call));
  return message && message.seq - 1;
}
