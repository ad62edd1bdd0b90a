import type { Json } from '@tapedeck/tape';

/**
 * What a call waits for. `approval`: a decision; `result`: a result from the client, which alone can run it;
 * `tool`: approved, runs in the next run whose deck has the tool; `children`: children to which it delegates, one of
 * which waits.
 */
export type AwaitedAnswer = 'approval' | 'result' | 'tool' | 'children';

/** Whether a call waits for this itself; those behind a waiting call are held. */
export function isAwaited(waitsFor: unknown): waitsFor is AwaitedAnswer {
  return waitsFor === 'approval' || waitsFor === 'result' || waitsFor === 'tool' || waitsFor === 'children';
}

/** A call as events name it. */
export interface CallName {
  readonly toolCallId: string;
  readonly name: string;
  /** The argument that represents the call in displays, for tools that name one. */
  readonly display?: string;
}

/** A call that needs an answer from a person or a client before the session continues. */
export interface WaitingCall extends CallName {
  readonly input: Json;
  readonly for: AwaitedAnswer;
  /** The session below, by its name, whose call it is; absent for a call of the session itself. */
  readonly session?: string;
  /** All that the call claims to do, where it waits for approval: `write(/a/b)`, `exec(git log)`; its tool is a name alone. */
  readonly claims?: readonly string[];
  /** What its approval can be given for, for good: `write(/a/**)`, `exec(git *)`. */
  readonly offers?: readonly string[];
  /** The sessions that sent the messages of the turn and whose rules ask: an answer for good does not count for these. */
  readonly askedFor?: readonly string[];
}

/** What a request for an approval says. */
export interface CallRequest {
  readonly claims: readonly string[];
  readonly offers: readonly string[];
  /** Only where a sender's rules ask. */
  readonly askedFor?: readonly string[];
}

/** The answer to a request for approval. The model receives the reason. */
export interface Decision {
  readonly approved: boolean;
  readonly reason?: string;
  /** Those of the offers of the call for which the answer counts for good, in the session and its later forks. */
  readonly remember?: readonly string[];
}

/** What the request for the approval of a call says: absent for calls that wait for something else. */
export function requestOf({ for: what, claims, offers, askedFor }: OpenCall): Partial<CallRequest> {
  if (what !== 'approval') return {};
  return {
    ...(claims !== undefined && { claims }),
    ...(offers !== undefined && { offers }),
    ...(askedFor !== undefined && { askedFor }),
  };
}

/** A call at the end of a tape that has no result yet. */
export interface OpenCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Json;
  /** Why it cannot run: its arguments are not valid. */
  readonly invalid?: string;
  /**
   * `waiting`: pending an answer from a person or client, or the end of children; `held`: behind a waiting call; `begun`: may have
   * run; `unbegun`: cannot have run, because the answer or the run was cut off before.
   */
  readonly state: 'begun' | 'waiting' | 'held' | 'unbegun';
  /** The run was aborted while the call ran. */
  readonly aborted?: true;
  /** The answer that it waits for. */
  readonly for?: AwaitedAnswer;
  /** The decision, once given. */
  readonly decision?: Decision;
  /** What it claims to do, as the request for its approval has recorded. */
  readonly claims?: readonly string[];
  /** What its approval can be given for, for good. */
  readonly offers?: readonly string[];
  /** The senders whose rules ask. */
  readonly askedFor?: readonly string[];
  /** It was recorded before the home came here: it runs only when it is approved here. */
  readonly elsewhere?: true;
}

/** The most characters kept of arguments that are incomplete or cannot be used. */
export const rawMax = 100_000;

/** What the request for an approval has recorded. */
export function requestIn({
  claims,
  offers,
  askedFor,
}: {
  readonly claims?: Json | undefined;
  readonly offers?: Json | undefined;
  readonly askedFor?: Json | undefined;
}): Partial<CallRequest> {
  const texts = (list: readonly Json[]) => list.filter((one) => typeof one === 'string');
  return {
    ...(Array.isArray(claims) && { claims: texts(claims) }),
    ...(Array.isArray(offers) && { offers: texts(offers) }),
    ...(Array.isArray(askedFor) && { askedFor: texts(askedFor) }),
  };
}
