/**
 * The base class of the errors of all packages, and those of tapes. Loads nothing else.
 *
 * @module @tapedeck/tape/errors
 */

/** An error with a stable code. Its message says what could not be done, to what, and why. */
export abstract class CodedError<Code extends string> extends Error {
  readonly code: Code;
  /** Facts about the failure, for programs: near names, the lease holder, a line number. */
  readonly data: Readonly<Record<string, unknown>>;

  constructor(
    code: Code,
    message: string,
    {
      data = {},
      cause,
    }: { readonly data?: Readonly<Record<string, unknown>>; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = data;
  }
}

/** Errors of tapes. Callers branch on the code, never on the message. */
export type TapeErrorCode =
  | 'TAPE_NO_SESSION'
  | 'TAPE_NO_ANCHOR'
  | 'TAPE_NO_SEQ'
  | 'TAPE_NO_BLOB'
  | 'TAPE_BAD_NAME'
  | 'TAPE_BAD_ENTRY'
  | 'TAPE_BAD_OPTION'
  | 'TAPE_BAD_POINT'
  | 'TAPE_BAD_POLICY'
  | 'TAPE_BAD_STATUS'
  | 'TAPE_EXISTS'
  | 'TAPE_KEY_CONFLICT'
  | 'TAPE_CONFLICT'
  | 'TAPE_ARCHIVED'
  | 'TAPE_STALE_HEAD'
  | 'TAPE_BUSY'
  | 'TAPE_FENCED'
  | 'TAPE_UNSETTLED'
  | 'TAPE_LOCKED'
  | 'TAPE_CLOSED'
  | 'TAPE_CANNOT_OPEN'
  | 'TAPE_CANNOT_REDACT'
  | 'TAPE_UNSAFE_PLACE'
  | 'TAPE_SCHEMA_NEWER'
  | 'TAPE_SCHEMA_OLDER'
  | 'TAPE_NOT_A_TAPE'
  | 'TAPE_CORRUPT'
  | 'TAPE_BAD_BUNDLE'
  | 'TAPE_DIVERGED'
  | 'TAPE_MISSING_BASE'
  | 'TAPE_REMOTE_FAILED'
  | 'TAPE_BAD_REMOTE'
  | 'TAPE_IO'
  | 'GRAPH_DIVERGED';

/**
 * An error of a store, a tape or a view. `code` says which.
 *
 * @example
 * ```ts
 * import { openTapeStore, TapeError, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * try {
 *   store.entries.append('mian', [user('Plan the release.')]);
 * } catch (error) {
 *   if (!(error instanceof TapeError)) throw error;
 *   console.log(error.code); // TAPE_NO_SESSION
 * }
 * ```
 */
export class TapeError extends CodedError<TapeErrorCode> {
  override readonly name = 'TapeError';
}
