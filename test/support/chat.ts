import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChatHandler, type ChatOptions, chatHandler, type Deck, nodeListener } from '@tapedeck/runtime';
import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  type UIMessage,
} from 'ai';

/** A server of the chats of a deck, at an address of this machine. */
export interface ChatServer extends AsyncDisposable {
  /** The address of the endpoint. */
  readonly api: string;
  /** A chat of the AI SDK with an id, as `useChat` has it. */
  chat(id: string, init?: Omit<ChatInit<UIMessage>, 'id' | 'transport'>): TestChat;
  /** Sends a request to a path below the endpoint. */
  ask(path: string, init?: RequestInit): Promise<Response>;
}

/** Serves the sessions of a deck to chats over HTTP. `mount` makes a listener of the handler. */
export async function serveChats(
  deck: Deck,
  options: ChatOptions = { sessions: ['main'] },
  mount: (handle: ChatHandler) => RequestListener = nodeListener,
): Promise<ChatServer> {
  const server = createServer(mount(chatHandler(deck, options)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const api = `http://127.0.0.1:${port}/api/chat`;
  return {
    api,
    chat: (id, init) => new TestChat({ ...init, id, transport: new DefaultChatTransport({ api }) }),
    ask: async (path, init) => await fetch(`${api}${path}`, init),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** State of a chat in memory: `useChat` keeps the same in React. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = 'ready';
  error: Error | undefined = undefined;
  messages: UIMessage[];

  constructor(messages: UIMessage[]) {
    this.messages = messages;
  }

  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, this.snapshot(message)];
  };

  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.map((one, i) => (i === index ? this.snapshot(message) : one));
  };

  snapshot = <T>(value: T): T => structuredClone(value);
}

/** The SDK's chat. */
export class TestChat extends AbstractChat<UIMessage> {
  constructor({ messages = [], ...init }: ChatInit<UIMessage>) {
    super({ ...init, state: new PlainState(messages) });
  }

  /** The messages as JSON: without the fields that the SDK leaves undefined. */
  get plain(): UIMessage[] {
    return JSON.parse(JSON.stringify(this.messages)) as UIMessage[];
  }
}
