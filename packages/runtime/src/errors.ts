import { TapeError } from '@tapedeck/tape';
import { CodedError } from '@tapedeck/tape/errors';

/** Stable codes of session errors. Branch on the code, never on the message. */
export type SessionErrorCode =
  | 'SESSION_BUSY'
  | 'SESSION_NO_MODEL'
  | 'SESSION_NO_KEY'
  | 'SESSION_NO_FILE'
  | 'SESSION_BAD_SCRIPT'
  | 'SESSION_BAD_CONFIG'
  | 'SESSION_SCRIPT_ENDED'
  | 'SESSION_MODEL_FAILED'
  | 'SESSION_RETRY_LATER'
  | 'SESSION_COMPACTION_FAILED'
  | 'SESSION_MODEL_TOO_SMALL'
  | 'SESSION_CANNOT_UNDO'
  | 'SESSION_BAD_INPUT'
  | 'SESSION_NO_CALL'
  | 'SESSION_NO_TOOL'
  | 'SESSION_NO_ROUTE'
  | 'SESSION_CLOSED'
  | 'SESSION_ENDED'
  | 'SESSION_MERGE_WAITING'
  | 'SESSION_LIMIT'
  | 'SESSION_BAD_RESULT'
  | 'SESSION_NO_GIT'
  | 'SESSION_NO_REPOSITORY'
  | 'SESSION_NO_WORKSPACE'
  | 'SESSION_WORKSPACE_FAILED'
  | 'SESSION_PATCH_TOO_LARGE'
  | 'SESSION_CANNOT_APPLY'
  | 'SESSION_WAITS_FOR_ITSELF';

/**
 * An error of a deck, a session, a run or a model. `code` says which.
 *
 * @example
 * ```ts
 * import { openDeck, SessionError } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:') });
 * const main = await deck.session('main');
 * try {
 *   await main.run('Plan the release.');
 * } catch (error) {
 *   if (!(error instanceof SessionError)) throw error;
 *   console.log(error.code); // SESSION_NO_MODEL
 * }
 * ```
 */
export class SessionError extends CodedError<SessionErrorCode> {
  override readonly name = 'SessionError';
}

/** The message of any thrown value; never empty. */
export function messageOf(error: unknown): string {
  try {
    const message = error instanceof Error ? error.message || error.name : error;
    return String(message) || 'no message';
  } catch {
    return 'a thrown value without a text form';
  }
}

/**
 * Whether the store refused an entry for its content: too large, nested too deep, not JSON. The store still
 * works.
 */
export function isUnstorable(error: unknown): error is TapeError {
  return (
    error instanceof TapeError && (error.code === 'TAPE_BAD_ENTRY' || error.code === 'TAPE_CANNOT_REDACT')
  );
}

/**
 * Whether an error says something of the database, or of who owns a session there, and nothing of a task: done again, the
 * same can succeed.
 */
export function isOfDatabase(error: unknown): error is TapeError {
  return error instanceof TapeError && ofDatabase.has(error.code);
}

const ofDatabase: ReadonlySet<string> = new Set([
  ...['TAPE_IO', 'TAPE_CANNOT_OPEN', 'TAPE_LOCKED', 'TAPE_CLOSED', 'TAPE_FENCED', 'TAPE_BUSY'],
]);
