import type { Json, Seq, Task } from '@tapedeck/tape';
import type { Usage } from '../usage/usage.ts';
import type { CallName, WaitingCall } from './call.ts';

/**
 * The events of a run, in order. An event that stands for an entry follows the commit of the entry; texts are
 * sent as they arrive. Times are milliseconds since the epoch.
 */
export type SessionEvent =
  | { readonly type: 'run-started'; readonly run: string; readonly session: string; readonly at: number }
  /** Another process has sent items to the session's inbox; they are executed at the next settled point. */
  | { readonly type: 'inbox-waiting'; readonly items: number }
  /** Messages sent during the run are on the tape; the next step sees them. */
  | { readonly type: 'steered'; readonly messages: number }
  /**
   * The message of the run has answered calls that waited: `calls` are denied. `parted`, calls that waited for children, have
   * what has come of these so far; the children still wait, and are merged when they end.
   */
  | {
      readonly type: 'superseded';
      readonly calls: readonly CallName[];
      readonly parted?: readonly CallName[];
    }
  | { readonly type: 'content-chunk'; readonly text: string }
  | { readonly type: 'reasoning-started' }
  | { readonly type: 'reasoning-chunk'; readonly text: string }
  | { readonly type: 'reasoning-ended' }
  | ({ readonly type: 'tool-detected'; readonly input: Json } & CallName)
  | {
      readonly type: 'tool-batch-started';
      readonly calls: readonly CallName[];
      readonly parallel: boolean;
      readonly at: number;
    }
  | ({ readonly type: 'tool-started'; readonly at: number } & CallName)
  | ({
      readonly type: 'tool-completed';
      readonly success: boolean;
      readonly output: Json;
      readonly at: number;
    } & CallName)
  /** A call failed; the calls after it do not run. */
  | { readonly type: 'tool-batch-halted'; readonly at: number }
  | { readonly type: 'tool-batch-completed'; readonly at: number }
  | { readonly type: 'tool-waiting'; readonly calls: readonly WaitingCall[] }
  /** A model call failed and is retried after the delay. */
  | {
      readonly type: 'retrying';
      readonly attempt: number;
      readonly message: string;
      readonly delayMs: number;
    }
  /** A summary has replaced the range in the view. The sizes are estimates of the whole view. */
  | {
      readonly type: 'compacted';
      readonly seq: Seq;
      readonly range: readonly [Seq, Seq];
      readonly trigger: CompactionTrigger;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  /** Outputs of calls were pruned from the view: their number and total size. */
  | { readonly type: 'pruned'; readonly seq: Seq; readonly outputs: number; readonly tokens: number }
  | {
      readonly type: 'iteration-completed';
      readonly iteration: number;
      readonly usage: Usage;
      readonly willContinue: boolean;
    }
  /** How a delegated child does: when it starts, at most twice a second while it works, and when it ends. */
  | ({ readonly type: 'child-progress' } & ChildProgress)
  /** An event of a delegated child, of a delegation with `childEvents: 'all'`. */
  | { readonly type: 'child-event'; readonly session: string; readonly event: SessionEvent }
  | { readonly type: 'session-completed'; readonly finish: Finish; readonly haltedAtLimit: boolean }
  | { readonly type: 'session-cancelled'; readonly reason: string }
  /** An application sent a history that is not what the tape has; see `recorded`. */
  | {
      readonly type: 'history-diverged';
      readonly kind: 'changed' | 'shortened' | 'window';
      readonly seq: Seq;
      readonly recorded: string;
      readonly index?: number;
      readonly sent?: string;
    }
  /** A problem that does not stop the run. */
  | { readonly type: 'warning'; readonly message: string }
  /**
   * The status of the session has changed. Only subscribers to the session receive this event; it is not part
   * of a run.
   */
  | { readonly type: 'status-changed'; readonly status: RunStatus }
  /**
   * The subscriber reads too slowly: so many events before the next one were dropped. Only subscribers receive this
   * event. What they missed is on the tape.
   */
  | { readonly type: 'lagged'; readonly missed: number };

/** The progress of a delegated child. */
export interface ChildProgress {
  readonly session: string;
  readonly task?: string;
  /** The call that delegates, if one does. */
  readonly toolCallId?: string;
  /** `waiting`: for an answer to a call of the child. */
  readonly state: 'started' | 'running' | 'waiting' | 'ended';
  readonly phase?: 'reasoning' | 'answering' | 'tool' | 'retrying';
  /** Its model calls so far, and their tokens. */
  readonly steps: number;
  readonly tokens: number;
  /** The tool that runs, or that waits. */
  readonly tool?: string;
  /** The line that it writes; at its end, the beginning of its result. */
  readonly text?: string;
  /** How its task ended, of a child that ended. */
  readonly status?: Task;
  readonly error?: string;
}

/** The most characters of the text of a child that its progress has. */
export const progressTextMax = 500;

/** The result of a child as its progress has it. */
export function progressText(text: string): string {
  return text.length <= progressTextMax ? text : `${text.slice(0, progressTextMax).toWellFormed()} …`;
}

/** How a run ended. */
export type Finish = 'stop' | 'halted' | 'waiting' | 'aborted' | 'length' | 'filtered' | 'error';

/** How a run ends whose last answer ended in this way, in the words of the AI SDK. Pure. */
export function finishAfter(reason: unknown): 'stop' | 'length' | 'filtered' | 'error' {
  if (reason === 'content-filter') return 'filtered';
  return reason === 'length' || reason === 'error' ? reason : 'stop';
}

/** The phase of a run: reading its tape, streaming an answer, compacting, or writing the answer. */
export type Phase = 'processing' | 'streaming' | 'compacting' | 'completing';

/**
 * The state of a session. Not stored: a session without a run is idle, waiting, or interrupted when the process
 * of its last run died during it.
 */
export interface RunStatus {
  readonly state: 'idle' | 'busy' | 'waiting' | 'retrying' | 'error' | 'interrupted';
  readonly phase?: Phase;
  readonly run?: string;
  /** Milliseconds since the epoch. */
  readonly startedAt?: number;
  /** The MCP servers that the run uses. */
  readonly servers?: readonly string[];
  /** The number of the retry, from 1. */
  readonly attempt?: number;
  /** Why the call is retried, or why the last run failed. */
  readonly message?: string;
}

/**
 * Why a session is compacted. `overflow`: its model refused the prompt; `model-switch`: the new model would.
 */
export type CompactionTrigger = 'manual' | 'threshold' | 'overflow' | 'model-switch';
