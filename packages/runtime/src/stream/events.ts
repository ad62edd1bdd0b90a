import type { Json, Seq } from '@tapedeck/tape';
import type { Usage } from '../usage/usage.ts';
import type { CallName, WaitingCall } from './call.ts';

/**
 * What happens during a run, in order (X11-X22). Every event that stands for an entry comes after the entry is
 * committed; texts come as they arrive. Times are milliseconds since the epoch.
 */
export type SessionEvent =
  | { readonly type: 'run-started'; readonly run: string; readonly session: string; readonly at: number }
  /** Somebody left something for this session: it is done at the next settled point. */
  | { readonly type: 'inbox-waiting'; readonly items: number }
  /** Messages that were sent while the run was under way are on the tape: its next step sees them. */
  | { readonly type: 'steered'; readonly messages: number }
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
  /** A call failed, and the calls after it were not run. */
  | { readonly type: 'tool-batch-halted'; readonly at: number }
  | { readonly type: 'tool-batch-completed'; readonly at: number }
  | { readonly type: 'tool-waiting'; readonly calls: readonly WaitingCall[] }
  /** A model call failed, and is made again after the delay. */
  | {
      readonly type: 'retrying';
      readonly attempt: number;
      readonly message: string;
      readonly delayMs: number;
    }
  /** A summary stands for the entries of the range now. The sizes are those of the view, as an estimate. */
  | {
      readonly type: 'compacted';
      readonly seq: Seq;
      readonly range: readonly [Seq, Seq];
      readonly trigger: CompactionTrigger;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  /** Outputs of calls are left out of the view now: how many, and how large they were. */
  | { readonly type: 'pruned'; readonly seq: Seq; readonly outputs: number; readonly tokens: number }
  | {
      readonly type: 'iteration-completed';
      readonly iteration: number;
      readonly usage: Usage;
      readonly willContinue: boolean;
    }
  | { readonly type: 'session-completed'; readonly finish: Finish; readonly haltedAtLimit: boolean }
  | { readonly type: 'session-cancelled'; readonly reason: string }
  /** Something is amiss that stops no run: what others are shown of it cannot be written. */
  | { readonly type: 'warning'; readonly message: string }
  /** Told to those who subscribed to the session: what its run is at. Not part of a run's own events. */
  | { readonly type: 'status-changed'; readonly status: RunStatus };

/** How a run ended. */
export type Finish = 'stop' | 'halted' | 'waiting' | 'aborted' | 'length' | 'error';

/** What a run is at: reading its tape, hearing its model, summarising, or writing what was answered (N29, N30). */
export type Phase = 'processing' | 'streaming' | 'compacting' | 'completing';

/** Whether a session is at work. Not stored: a session that no process runs is idle, or waits (G78-G80, K15). */
export interface RunStatus {
  readonly state: 'idle' | 'busy' | 'waiting' | 'retrying' | 'error';
  readonly phase?: Phase;
  readonly run?: string;
  /** Milliseconds since the epoch. */
  readonly startedAt?: number;
  /** Of a model call that is made again, from 1. */
  readonly attempt?: number;
  /** Why it is made again, or what the last run failed of. */
  readonly message?: string;
}

/** Why a session is summarised. `overflow`: its model refused it; `model-switch`: the next one would. */
export type CompactionTrigger = 'manual' | 'threshold' | 'overflow' | 'model-switch';
