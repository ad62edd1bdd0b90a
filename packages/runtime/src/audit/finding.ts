import type { Seq } from '@tapedeck/tape';

/**
 * What a record of delegation lacks. `children-not-terminal`: a delegated child has not come to its end, and nobody runs
 * it; `result-not-merged`: it has, and its parent does not know what it came to; `edge-on-one-side`: of a fork, merge or
 * discard only one side tells; `orphaned-call`: a tool call has no result, and nobody is going to give it one;
 * `merge-refused`: a merge that waited could not be done.
 */
export type AuditCode =
  | 'children-not-terminal'
  | 'result-not-merged'
  | 'edge-on-one-side'
  | 'orphaned-call'
  | 'merge-refused';

/** What can be done about a finding, and to which session or position of it. */
export interface Remedy {
  /**
   * `recover`: go on with what was cut off; `run`: go on by a run of the session; `answer`: answer the calls that wait;
   * `merge`: merge the session; `unarchive`: make it active again, then look again; `rebuild`: write the graph file anew;
   * `verify`: find what was changed; `look`: read the entry.
   */
  readonly act: 'recover' | 'run' | 'answer' | 'merge' | 'unarchive' | 'rebuild' | 'verify' | 'look';
  readonly session?: string;
  readonly seq?: Seq;
}

/** One thing that the record lacks. */
export interface AuditFinding {
  readonly code: AuditCode;
  /** The session that it is about: a child, or whose call or inbox it is. */
  readonly session: string;
  /** Where it shows on that session's tape, if it shows at one place. */
  readonly seq: Seq | null;
  readonly message: string;
  readonly remedy: Remedy;
}
