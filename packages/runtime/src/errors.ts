/** What can go wrong with a session. Callers branch on the code, never on the message. */
export type SessionErrorCode =
  | 'SESSION_BUSY'
  | 'SESSION_NO_MODEL'
  | 'SESSION_NO_KEY'
  | 'SESSION_NO_FILE'
  | 'SESSION_BAD_SCRIPT'
  | 'SESSION_BAD_CONFIG'
  | 'SESSION_SCRIPT_ENDED'
  | 'SESSION_MODEL_FAILED'
  | 'SESSION_CLOSED'
  | 'SESSION_ENDED'
  | 'SESSION_MERGE_WAITING';

/** Says what could not be done, to what, and why. */
export class SessionError extends Error {
  override readonly name = 'SessionError';
  readonly code: SessionErrorCode;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(
    code: SessionErrorCode,
    message: string,
    { data = {}, cause }: { data?: Readonly<Record<string, unknown>>; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = data;
  }
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
