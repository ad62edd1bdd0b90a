import { CodedError } from '@tapedeck/tape/errors';

/** Stable codes of refused chat requests. */
export type ChatErrorCode =
  | 'CHAT_BAD_BODY'
  | 'CHAT_BAD_TYPE'
  | 'CHAT_TOO_LARGE'
  | 'CHAT_NOT_FOUND'
  | 'CHAT_BAD_METHOD'
  | 'CHAT_UNKNOWN_USER'
  | 'CHAT_FORBIDDEN'
  | 'CHAT_CONFLICT';

/**
 * A chat request that is refused. Nothing was written, and a current run continues. The handler makes a response of it.
 *
 * @example
 * ```ts
 * import { ChatError, chatHandler, openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:') });
 * const authorize = () => {
 *   throw new ChatError('CHAT_FORBIDDEN', 'cannot use the chat: the trial has ended');
 * };
 * const response = await chatHandler(deck, { authorize })(new Request('http://localhost/api/chat/main'));
 * console.log(response.status, await response.json());
 * // 403 {
 * //   error: {
 * //     code: 'CHAT_FORBIDDEN',
 * //     message: 'cannot use the chat: the trial has ended'
 * //   }
 * // }
 * ```
 */
export class ChatError extends CodedError<ChatErrorCode> {
  override readonly name = 'ChatError';
}

const ownStatuses: Readonly<Record<ChatErrorCode, number>> = {
  CHAT_BAD_BODY: 400,
  CHAT_BAD_TYPE: 415,
  CHAT_TOO_LARGE: 413,
  CHAT_NOT_FOUND: 404,
  CHAT_BAD_METHOD: 405,
  CHAT_UNKNOWN_USER: 401,
  CHAT_FORBIDDEN: 403,
  CHAT_CONFLICT: 409,
};

/** The statuses of errors that the request is to blame for, or that pass. All others are failures of the server. */
const statuses: Readonly<Record<string, number>> = {
  ...ownStatuses,
  SESSION_BAD_INPUT: 400,
  TAPE_BAD_NAME: 400,
  TAPE_BAD_ENTRY: 400,
  TAPE_BAD_POINT: 409,
  SESSION_NO_CALL: 409,
  SESSION_BUSY: 409,
  TAPE_BUSY: 409,
  TAPE_KEY_CONFLICT: 409,
  TAPE_ARCHIVED: 409,
  TAPE_LOCKED: 503,
  SESSION_CLOSED: 503,
  TAPE_CLOSED: 503,
};

/**
 * The response to a request that failed: `{ error: { code, message } }`. The message of a failure of the server is not
 * sent, since it can name what the client must not see.
 */
export function failureResponse(error: unknown): Response {
  const coded = error instanceof CodedError ? error : undefined;
  const status = coded === undefined ? undefined : statuses[coded.code];
  const body =
    coded === undefined || status === undefined
      ? { code: 'CHAT_FAILED', message: 'the request failed' }
      : { code: coded.code, message: coded.message };
  return Response.json({ error: body }, { status: status ?? 500, headers: { 'cache-control': 'no-store' } });
}

/** Whether an error is a failure of the server, which its operator wants to know. */
export function isServerFailure(error: unknown): boolean {
  return !(error instanceof CodedError) || (statuses[error.code] ?? 500) >= 500;
}
