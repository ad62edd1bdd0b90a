import type { Intention, SessionInfo } from '@tapedeck/tape';
import type { Input, RunOptions } from '../run/options.ts';
import type { WorkerParts } from '../run/parts.ts';
import type { Run } from '../run/run.ts';
import type { Worker } from '../run/worker.ts';
import type { RunEngine } from './engine.ts';
import type { RunEnd } from './outcome.ts';

/** A session as delegation sees it, the parent or a child. */
export interface Delegator {
  readonly name: string;
  /** The session's ULID. */
  readonly id: string;
  info(): Promise<SessionInfo>;
  run(input?: Input, options?: RunOptions): Run;
}

/** A child that was started here. */
interface StartedChild {
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly end: Promise<RunEnd>;
}

/** What a handle of a child is made with. */
export interface ChildOptions {
  readonly intention?: Intention;
  /** What leaving an `await using` block does to a child that was neither finished nor discarded (default `fail`). */
  readonly onUnmerged?: 'fail' | 'discard' | 'keep';
  /** The directory of its worktree. */
  readonly directory?: string | undefined;
}

/** What forks, delegations and their recovery work with. */
export interface DelegationParts extends WorkerParts {
  readonly engine: RunEngine;
  /** Runs a session in this process: one worker for all handles of a session. */
  readonly worker: (session: { readonly name: string; readonly id: string }) => Worker;
  /** A handle of a child. */
  readonly child: (info: SessionInfo, options: ChildOptions) => Delegator;
  /** What running each started child means here, by its name, until it has ended. */
  readonly startedChildren: Map<string, StartedChild>;
  /** The delegations that are under way in this process. */
  readonly delegations: Set<PromiseLike<unknown>>;
  /** Aborted when the deck is closed. */
  readonly closing: AbortSignal;
}
