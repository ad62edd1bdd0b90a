import type { Session } from '@tapedeck/runtime';
import { safeValidateUIMessages, type UIMessage } from 'ai';
import { expect } from 'vitest';
import { type ChatServer, serveChats, type TestChat } from './chat.ts';
import type { ChatAnswer, ChatRequest } from './provider.ts';
import { type Served, served } from './served.ts';

/** The session `main` of a strict model server, served to chats. */
export interface Chatting extends Served {
  readonly server: ChatServer;
}

/** Starts a model server with this answer, and the endpoint of a deck that calls it. */
export async function chatting(
  answer: (request: ChatRequest, index: number) => ChatAnswer | Promise<ChatAnswer>,
  options: Parameters<typeof served>[1] = {},
  mount?: Parameters<typeof serveChats>[2],
): Promise<Chatting> {
  const behind = await served(answer, options);
  const server = await serveChats(behind.deck, { sessions: ['main'] }, mount);
  return {
    ...behind,
    server,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await behind[Symbol.asyncDispose]();
    },
  };
}

/** The chat holds what the session says, and the SDK accepts it. */
export async function expectSame({ main }: { readonly main: Session }, chat: TestChat): Promise<UIMessage[]> {
  await expect.poll(() => chat.status).toBe('ready');
  expect(chat.error).toBeUndefined();
  const messages = await main.uiMessages();
  expect(messages).toEqual(chat.plain);
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
  return messages;
}

/** The types and states of the parts of a message. */
export const shape = (message: UIMessage | undefined): string[] | undefined =>
  message?.parts.map((part) => ('state' in part ? `${part.type} ${part.state}` : part.type));
