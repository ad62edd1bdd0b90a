import type { Json, Merged, SessionInfo, Task } from '@tapedeck/tape';
import type { OutputSpec } from '../model/output.ts';
import type { SessionEvent } from '../stream/events.ts';
import type { Usage } from '../usage/usage.ts';

/** The outcome of one child. `T` is the type of its structured result. */
export interface ChildOutcome<T = Json> {
  readonly session: string;
  /** An earlier delegation had forked the child, under the same key. Without `usage`, nothing ran now. */
  readonly repeated?: true;
  readonly status: Task;
  readonly merged: Merged | undefined;
  readonly usage: Usage | undefined;
  readonly text: string;
  /** Its structured result, as its schema makes it. */
  readonly output?: T;
  /**
   * Why the child failed or its result is not merged. A child that waits for an answer has the status
   * `running`.
   */
  readonly error?: string;
  /** A call of the child, or of a session below it, waits for an answer. */
  readonly waits?: true;
}

/** The type of the result of a task: that of its own schema, else `T`, that of the delegation. */
type OutputOf<Task, T> = Task extends { readonly output: OutputSpec<infer Own> } ? Own : T;

/** The outcomes of tasks, in their order, each with the type of its schema. */
export type OutcomesOf<Tasks extends readonly unknown[], T> = {
  readonly [I in keyof Tasks]: ChildOutcome<OutputOf<Tasks[I], T>>;
};

/** An event of a delegation. */
export type ChildEvent =
  | {
      readonly type: 'child-forked';
      readonly session: string;
      readonly task: string;
      /** An earlier delegation had forked it, under the same key. */
      readonly repeated?: true;
    }
  | { readonly type: 'child-event'; readonly session: string; readonly event: SessionEvent }
  | {
      readonly type: 'child-ended';
      readonly session: string;
      readonly status: Task;
      /** The text of `ChildOutcome`. */
      readonly text: string;
      /** Why its run failed. An error without a code is not one of this library. */
      readonly error?: { readonly code?: string; readonly message: string };
    }
  | { readonly type: 'child-merged'; readonly session: string; readonly merged: Merged };

/** How the run of a child ended. */
export interface RunEnd {
  readonly usage?: Usage;
  readonly error?: string;
  /** The code of that error, if it has one. */
  readonly code?: string;
  /** The run has no recorded end. */
  readonly broken?: true;
  /** A user or client has to answer a call before the child continues. */
  readonly waits?: true;
  /** The row of the child, where nothing has run it since. */
  readonly row?: SessionInfo;
  /** The run did not begin: the deck was closed, or the child was archived. */
  readonly closed?: true;
}
