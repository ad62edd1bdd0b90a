import type { Json, Merged, Task } from '@tapedeck/tape';
import type { SessionEvent } from '../stream/events.ts';
import type { Usage } from '../usage/usage.ts';

/** What one child came to. */
export interface ChildOutcome {
  readonly session: string;
  readonly status: Task;
  readonly merged: Merged | undefined;
  readonly usage: Usage | undefined;
  readonly text: string;
  /** The result that it gave in a form. */
  readonly output?: Json;
  /** Why the child failed, or why its result could not be merged: one that waits for an answer is still running. */
  readonly error?: string;
}

/** What happens in a delegation, as it happens. */
export type ChildEvent =
  | { readonly type: 'child-forked'; readonly session: string; readonly task: string }
  | { readonly type: 'child-event'; readonly session: string; readonly event: SessionEvent }
  | { readonly type: 'child-ended'; readonly session: string; readonly status: Task }
  | { readonly type: 'child-merged'; readonly session: string; readonly merged: Merged };

/** What running a child came to. */
export interface RunEnd {
  readonly usage?: Usage;
  readonly error?: string;
  /** The run never came to a recorded end. */
  readonly broken?: true;
  /** A person or a client has to answer a call before the child goes on. */
  readonly waits?: true;
  /** The deck was closed before it could begin. */
  readonly closed?: true;
}
