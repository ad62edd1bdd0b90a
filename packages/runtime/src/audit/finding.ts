import type { Seq } from '@tapedeck/tape';

/**
 * A gap in the record of work. `children-not-terminal`: a delegated child has not ended, and no process
 * runs it; `result-not-merged`: it has ended, but its result is not in the parent; `edge-on-one-side`: only
 * the tape or only the lineage records a fork, merge or discard; `orphaned-call`: a tool call has no result,
 * and no process will answer it; `merge-refused`: a queued merge was refused; `fork-not-merged`: a fork with a task, or
 * one that notifies its parent, has work that its parent lacks; `run-interrupted`: the process of a run died during it;
 * `message-unanswered`: a message was acknowledged, and no run answered it; `call-waiting`: a call waits for an
 * approval or for the result of a client; `database-damaged`: a stored text of the session cannot be read, so that the
 * session was not examined.
 */
export type AuditCode =
  | 'children-not-terminal'
  | 'result-not-merged'
  | 'edge-on-one-side'
  | 'orphaned-call'
  | 'merge-refused'
  | 'fork-not-merged'
  | 'run-interrupted'
  | 'message-unanswered'
  | 'call-waiting'
  | 'database-damaged';

/** What mends or shows a finding, and the session or position to which it applies. */
export interface NextStep {
  /**
   * `recover`: continue interrupted work; `run`: run the session; `answer`: answer its pending calls;
   * `merge`: merge the session; `unarchive`: unarchive the session, then audit again; `undelete`: bring back the
   * deleted session, then audit again; `rebuild`: rewrite the graph file; `verify`: find what was changed; `look`: read the entry.
   */
  readonly act:
    | 'recover'
    | 'run'
    | 'answer'
    | 'merge'
    | 'unarchive'
    | 'undelete'
    | 'rebuild'
    | 'verify'
    | 'look';
  readonly session?: string;
  readonly seq?: Seq;
}

/** One gap in the record. */
export interface AuditFinding {
  readonly code: AuditCode;
  /** The session concerned: the child, or the owner of the call or inbox. */
  readonly session: string;
  /** The position on the tape of that session, if the finding has one. */
  readonly seq: Seq | null;
  readonly message: string;
  readonly next: NextStep;
}
