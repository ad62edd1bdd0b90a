import { chat, wholeChat } from './provider/chat.ts';
import type { ChatRequest, Protocol } from './provider/protocol.ts';
import { type Answers, type Provider, startServer } from './provider/server.ts';

export type { ChatAnswer, ChatRequest } from './provider/protocol.ts';
export type { Provider } from './provider/server.ts';

/**
 * Starts a strict server of a provider, by default one of OpenAI's chat completions: it answers every valid request
 * with what `answer` says, and refuses every other one as the real one does.
 */
export async function startProvider(answer: Answers, protocol: Protocol = chat): Promise<Provider> {
  return await startServer(protocol, answer);
}

/** Starts the same server for clients that do not stream, too. */
export async function startWholeProvider(answer: Answers): Promise<Provider> {
  return await startServer(wholeChat, answer);
}

/** The text of the last user message of a request: what it is about. */
export function lastUserText({ messages }: ChatRequest): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}

/** Whether a request comes after the results of a tool call. */
export function isAfterTools({ messages }: ChatRequest): boolean {
  return messages.at(-1)?.role === 'tool';
}
