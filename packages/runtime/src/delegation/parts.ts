import type { Seq, SessionInfo } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import type { OutputSpec } from '../model/output.ts';
import type { Input, RunOptions } from '../run/options.ts';
import type { WorkerParts } from '../run/parts.ts';
import type { Run } from '../run/run.ts';
import type { Worker } from '../run/worker.ts';
import type { RunEngine } from './engine.ts';
import type { RunEnd } from './outcome.ts';

/** The interface of a session that delegation uses, for the parent and for children. */
export interface Delegator {
  readonly name: string;
  /** The session's ULID. */
  readonly id: string;
  info(): Promise<SessionInfo>;
  run(input?: Input, options?: RunOptions): Run;
}

/** A child that this process started. */
interface StartedChild {
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly end: Promise<RunEnd>;
}

/** Options of a child handle. */
export interface ChildOptions<T = unknown> {
  /** The child's task. */
  readonly task?: string;
  /**
   * What to do at the end of an `await using` block with a child neither finished nor discarded (default
   * `fail`).
   */
  readonly onUnmerged?: 'fail' | 'discard' | 'keep';
  /** The directory of its worktree. */
  readonly directory?: string | undefined;
  /** Schema of its result. */
  readonly output?: OutputSpec<T> | undefined;
}

/** Shared by forks, delegations and their recovery. */
export interface DelegationParts extends WorkerParts {
  readonly engine: RunEngine;
  /** The worker that runs a session in this process. All handles of the session share it. */
  readonly worker: (session: Pick<SessionInfo, 'session' | 'id'>) => Worker;
  /** Makes a handle of a child. */
  readonly child: <T>(info: ChildInfo, options: ChildOptions<T>) => Delegator;
  /** The children started here that have not ended, by name. */
  readonly startedChildren: Map<string, StartedChild>;
  /** The last run that continued a session whose children have ended, and where its tape ended then; by ULID. */
  readonly continued: Map<string, { readonly head: Seq; readonly run: Run }>;
  /** Forks of this process, one after another: two at once could both find room within a limit. */
  readonly forking: { add<T>(fork: () => Promise<T>): Promise<T> };
  /** The running delegations of this process. */
  readonly delegations: Set<PromiseLike<unknown>>;
  /** Aborted when the deck is closed. */
  readonly closing: AbortSignal;
}

/** What never changes of the row of a child. */
export type ChildInfo = Pick<
  SessionInfo,
  'session' | 'id' | 'tape' | 'kind' | 'parent' | 'parentId' | 'base'
>;

/**
 * Refuses an act that calls models in a deck that was closed.
 * @throws SESSION_CLOSED
 */
export function assertOpen(
  { closing }: Pick<DelegationParts, 'closing'>,
  act: string,
  session: string,
): void {
  if (closing.aborted)
    throw new SessionError('SESSION_CLOSED', `cannot ${act} '${session}': the deck was closed`, {
      data: { session },
    });
}
