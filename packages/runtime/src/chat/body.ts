import { isObject } from '@tapedeck/tape/internal';
import type { UIMessage } from 'ai';
import { ChatError } from './errors.ts';

/** What a chat of the AI SDK sends. */
export interface ChatBody {
  /** The id of the chat. */
  readonly id?: string;
  /** The messages of the chat; only the last, or the one that `messageId` names, is new. */
  readonly messages: readonly UIMessage[];
  readonly trigger: 'submit-message' | 'regenerate-message';
  /** The message that is edited, answered or generated again. */
  readonly messageId?: string;
  /** The whole body, as the client sent it. */
  readonly given: Readonly<Record<string, unknown>>;
  /** For which offers of calls the approvals and denials in it count for good, by the ids of the calls. */
  readonly remember?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Reads the body of a request. It has the fields of the AI SDK's transports: `messages`, or `message` for a transport
 * that sends the last one alone. The messages before the last are not checked: the tape has them.
 * @throws CHAT_BAD_TYPE, CHAT_TOO_LARGE, CHAT_BAD_BODY
 */
export async function readBody(request: Request, maxBytes: number): Promise<ChatBody> {
  const type = request.headers.get('content-type') ?? '';
  if (!/^application\/json\s*(?:;|$)/i.test(type))
    throw new ChatError('CHAT_BAD_TYPE', `cannot take a body of type '${type}': it must be application/json`);
  const text = await limitedText(request, maxBytes);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw new ChatError('CHAT_BAD_BODY', 'cannot read the body: it is not JSON', { cause });
  }
  return await parseBody(body);
}

async function limitedText(request: Request, maxBytes: number): Promise<string> {
  const tooLarge = () =>
    new ChatError('CHAT_TOO_LARGE', `cannot take the body: it has more than ${maxBytes} bytes`, {
      data: { maxBytes },
    });
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge();
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const part of request.body?.values({ preventCancel: true }) ?? []) {
      size += part.byteLength;
      if (size > maxBytes) throw tooLarge();
      parts.push(part);
    }
  } catch (cause) {
    if (cause instanceof ChatError) throw cause;
    throw new ChatError('CHAT_BAD_BODY', 'cannot read the body: it ends early', { cause });
  }
  return new TextDecoder().decode(Buffer.concat(parts));
}

/** How much of the body of a refused request is read, in bytes, and for how long, in milliseconds. */
const [discardMax, discardMs] = [32 * 1024 * 1024, 30_000];

/**
 * Reads the rest of the body of a refused request. Some servers close the connection of a request whose body was not
 * read: a client that is still sending it would not find the response.
 */
export async function discardBody({ body, headers }: Request): Promise<void> {
  if (body === null || body.locked || Number(headers.get('content-length') ?? 0) > discardMax) return;
  const reader = body.getReader();
  const stop = () => {
    // The client is gone, or sends more than anyone reads.
    reader.cancel().catch(() => {});
  };
  const timer = setTimeout(stop, discardMs).unref();
  try {
    for (let size = 0; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      size += value.byteLength;
      if (size > discardMax) return stop();
    }
  } catch {
    stop();
  } finally {
    clearTimeout(timer);
  }
}

async function parseBody(body: unknown): Promise<ChatBody> {
  const refuse = (why: string) => new ChatError('CHAT_BAD_BODY', `cannot read the body: ${why}`);
  if (!isObject(body)) throw refuse('it is not an object');
  const {
    id,
    message,
    messages = message === undefined ? [] : [message],
    trigger,
    messageId,
    remember,
  } = body as Record<string, unknown>;
  if (id !== undefined && typeof id !== 'string') throw refuse('its id is not a text');
  if (messageId !== undefined && messageId !== null && typeof messageId !== 'string')
    throw refuse('its messageId is not a text');
  if (trigger !== undefined && trigger !== 'submit-message' && trigger !== 'regenerate-message')
    throw refuse(`its trigger is ${JSON.stringify(trigger)}, expected submit-message or regenerate-message`);
  if (remember !== undefined && !isRemember(remember))
    throw refuse('its remember is not an object of lists of texts');
  if (!Array.isArray(messages) || messages.length === 0) throw refuse('it has no messages');
  if (!messages.every((one) => isObject(one))) throw refuse('a message is not an object');
  const isNamed = (one: unknown) => typeof messageId === 'string' && isObject(one) && one.id === messageId;
  const taken = [...new Set([messages.findLast(isNamed), messages.at(-1)])].filter(
    (one) => one !== undefined,
  );
  for (const one of taken) {
    const fault = sizeFault(one);
    if (fault !== undefined) throw refuse(fault);
  }
  const { safeValidateUIMessages } = await import('ai');
  const checked = await safeValidateUIMessages({ messages: taken });
  if (!checked.success) throw refuse(`its last message is not valid: ${shortened(checked.error.message)}`);
  return {
    ...(id !== undefined && { id }),
    messages: messages as unknown as readonly UIMessage[],
    trigger: trigger ?? 'submit-message',
    given: body,
    ...(typeof messageId === 'string' && { messageId }),
    ...(remember !== undefined && { remember: { ...remember } }),
  };
}

/** The most parts of a message of a user, and of an answer, and the most characters of an id. */
const [partsMax, answerPartsMax, idMax] = [1_000, 20_000, 500];

/** Why a message would take too long to check, or cannot be found again by its id. */
function sizeFault({ id, role, parts }: Readonly<Record<string, unknown>>): string | undefined {
  const most = role === 'assistant' ? answerPartsMax : partsMax;
  if (Array.isArray(parts) && parts.length > most) return `a message has more than ${most} parts`;
  if (typeof id !== 'string') return undefined;
  if (id.length > idMax) return `the id of a message has more than ${idMax} characters`;
  return /\p{Cc}|\p{Cs}/u.test(id) ? 'the id of a message has control characters' : undefined;
}

function isRemember(value: unknown): value is Readonly<Record<string, readonly string[]>> {
  const isTexts = (list: unknown) => Array.isArray(list) && list.every((one) => typeof one === 'string');
  return isObject(value) && Object.values(value).every(isTexts);
}

/** The errors of the SDK's checks quote the whole message. */
function shortened(text: string): string {
  return text.length <= 300 ? text : `${text.slice(0, 300).toWellFormed()} …`;
}
