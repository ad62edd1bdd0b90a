import type { Json, Merged, Task } from '@tapedeck/tape';
import type { SessionEvent } from '../stream/events.ts';
import type { Usage } from '../usage/usage.ts';

/** The outcome of one child. */
export interface ChildOutcome {
  readonly session: string;
  readonly status: Task;
  readonly merged: Merged | undefined;
  readonly usage: Usage | undefined;
  readonly text: string;
  /** Its structured result. */
  readonly output?: Json;
  /**
   * Why the child failed or its result is not merged. A child that waits for an answer has the status
   * `running`.
   */
  readonly error?: string;
}

/** An event of a delegation. */
export type ChildEvent =
  | { readonly type: 'child-forked'; readonly session: string; readonly task: string }
  | { readonly type: 'child-event'; readonly session: string; readonly event: SessionEvent }
  | { readonly type: 'child-ended'; readonly session: string; readonly status: Task }
  | { readonly type: 'child-merged'; readonly session: string; readonly merged: Merged };

/** How the run of a child ended. */
export interface RunEnd {
  readonly usage?: Usage;
  readonly error?: string;
  /** The run has no recorded end. */
  readonly broken?: true;
  /** A user or client has to answer a call before the child continues. */
  readonly waits?: true;
  /** The run did not begin: the deck was closed, or the child was archived. */
  readonly closed?: true;
}
