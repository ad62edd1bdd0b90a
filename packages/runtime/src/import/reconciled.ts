import type { Draft, TapeError } from '@tapedeck/tape';
import type { Beside } from '../imported/own-sessions.ts';
import type { ImportError } from '../lines/errors.ts';

/** What an import wrote of one conversation. */
export interface Reconciled {
  readonly conversation: string;
  readonly session: string;
  /** Whether the session is new. */
  readonly created: boolean;
  /** Entries, without rewinds. */
  readonly added: number;
  readonly rewound: boolean;
  /** Whether the source has less than the session, as one that was shortened, or an older copy. */
  readonly isBehind?: true;
  /** Of a session that is new, and has not the name of its conversation: the one that has it, and why it is not that. */
  readonly beside?: Beside;
  /** Secrets that were replaced in these entries. */
  readonly redacted: number;
  /** Those of them that were too large, and say how large. */
  readonly omitted: number;
  /** Why the session takes nothing: it was deleted, its source was forgotten, or it is in use. */
  readonly refused?: TapeError | ImportError;
}

/** What is said of a conversation of which nothing was written. */
export const nothing = { created: false, added: 0, rewound: false, redacted: 0, omitted: 0 };

/** How many drafts tell of secrets that were replaced in them, or of a size that no entry has. */
export function repairsIn(drafts: readonly Draft[]): Pick<Reconciled, 'redacted' | 'omitted'> {
  return {
    redacted: drafts.reduce((sum, { meta }) => sum + Number(meta?.redacted ?? 0), 0),
    omitted: drafts.filter(({ meta }) => meta?.omittedBytes !== undefined).length,
  };
}
