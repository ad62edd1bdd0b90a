import type { Json } from '@tapedeck/tape';

/**
 * What a call waits for. `approval`: whether it may be run; `result`: what it came to, since nothing here can run it; `tool`: it may be
 * run, and the next run in which its tool is offered does.
 */
export type AwaitedAnswer = 'approval' | 'result' | 'tool';

/** A call as events name it. */
export interface CallName {
  readonly toolCallId: string;
  readonly name: string;
  /** The argument that stands for the call where it is shown, of a tool that names one (X57). */
  readonly display?: string;
}

/** A call that a person or a client has to answer before the session goes on. */
export interface WaitingCall extends CallName {
  readonly input: Json;
  readonly for: AwaitedAnswer;
}

/** The answer to a request for approval. The model is told the reason. */
export interface Decision {
  readonly approved: boolean;
  readonly reason?: string;
}

/** A call that has no result yet, at the end of a tape. */
export interface OpenCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Json;
  /** Why it cannot be run: its arguments were no JSON. */
  readonly invalid?: string;
  /**
   * `waiting`: a person or client is to answer it; `held`: it comes after one that waits; `begun`: it may have been run;
   * `unbegun`: it was certainly not: its answer was broken off, or the run was.
   */
  readonly state: 'begun' | 'waiting' | 'held' | 'unbegun';
  /** The run was aborted while it was under way. */
  readonly aborted?: true;
  /** What it waits for. */
  readonly for?: AwaitedAnswer;
  /** The answer, once it is given. */
  readonly decision?: Decision;
}
