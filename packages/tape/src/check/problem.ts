import { Suspended } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { TapeError } from '../errors.ts';

/**
 * Damage and its place. `session` owns the damaged entry; `seq` is null when no single entry is damaged. `not-here` is no
 * damage: content, or a child, that a bundle did not bring.
 */
export interface Problem {
  /** The kind of damage; `docs/format.md` explains each. */
  readonly code:
    | 'entry-changed'
    | 'entry-missing'
    | 'chain-broken'
    | 'head-wrong'
    | 'head-contradicted'
    | 'tail-missing'
    | 'base-wrong'
    | 'body-erased'
    | 'not-here'
    | 'row-changed'
    | 'open-calls-differ'
    | 'open-run-differs'
    | 'usage-differs'
    | 'messages-differ'
    | 'blob-changed'
    | 'merge-contradicted'
    | 'view-contradicted'
    | 'record-contradicted'
    | 'lineage-broken'
    | 'trigger-wrong'
    | 'index-wrong'
    | 'search-wrong'
    | 'database-damaged';
  readonly session: string | null;
  readonly seq: Seq | null;
  readonly message: string;
}

/** Makes a problem of one session. */
export type ReportProblem = (code: Problem['code'], seq: Seq | null, message: string) => Problem;

export function problemsOf(session: string): ReportProblem {
  return (code, seq, message) => ({ code, session, seq, message });
}

/** Whether an error says nothing of the data that was read: nothing can be read now, as of a server that is gone. */
export function stopsReading(error: unknown): boolean {
  if (error instanceof Suspended) return true;
  if (!(error instanceof TapeError)) return false;
  return error.code === 'TAPE_CLOSED' || (error.data.server !== undefined && error.code !== 'TAPE_CORRUPT');
}
