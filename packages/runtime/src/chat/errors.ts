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

/**
 * Called with each failure of the server, and with that of a model or a tool that ends an answer. The client learns the
 * text that it returns; without a text, only that the request or the answer failed.
 */
export type OnChatError = (error: unknown) => unknown;

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

/**
 * The statuses of errors that the request is to blame for, or that pass, and what the client learns of them: their own
 * messages name sessions and paths. All others are failures of the server.
 */
const shown: Readonly<Record<string, readonly [status: number, message: string]>> = {
  SESSION_BAD_INPUT: [400, 'the message cannot be sent to a model'],
  TAPE_BAD_NAME: [400, 'the id cannot be that of a chat'],
  TAPE_BAD_ENTRY: [400, 'the message cannot be stored'],
  TAPE_BAD_POINT: [409, 'the message is not one that the chat shows'],
  SESSION_NO_CALL: [409, 'the call does not wait for this answer'],
  SESSION_BUSY: [409, 'the chat is being written'],
  TAPE_BUSY: [409, 'the chat is being written'],
  TAPE_KEY_CONFLICT: [409, 'the chat has another message with this id'],
  TAPE_ARCHIVED: [409, 'the chat is archived'],
  TAPE_LOCKED: [503, 'the server is busy'],
  SESSION_CLOSED: [503, 'the server is closing'],
  TAPE_CLOSED: [503, 'the server is closing'],
};

/** What a request that failed is answered with. */
interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

function refusalFor(error: unknown): Refusal | undefined {
  if (error instanceof ChatError) {
    const { code, message } = error;
    return { status: ownStatuses[code], code, message };
  }
  const [status, message] = (error instanceof CodedError ? shown[error.code] : undefined) ?? [];
  if (!(error instanceof CodedError) || status === undefined || message === undefined) return undefined;
  return { status, code: error.code, message };
}

/** The response to a request that failed: `{ error: { code, message } }`. */
export function failureResponse(error: unknown, onError: OnChatError = () => {}): Response {
  const refusal = refusalFor(error);
  const { status = 500, code = 'CHAT_FAILED', message = 'the request failed' } = refusal ?? {};
  const told = status >= 500 ? textOf(onError(error)) : undefined;
  const body = { error: { code, message: told ?? message } };
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } });
}

/** What a client learns of what ended its answer. */
export function errorText(error: unknown, onError: OnChatError): string {
  if (error instanceof ChatError) return error.message;
  return textOf(onError(error)) ?? 'the answer failed';
}

function textOf(told: unknown): string | undefined {
  return typeof told === 'string' ? told : undefined;
}
