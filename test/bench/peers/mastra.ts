import { join } from 'node:path';
import type { Peer, Text } from './peer.ts';

interface Message {
  readonly content: { readonly parts: readonly { readonly text?: string }[] };
}

interface Recall {
  readonly threadId: string;
  readonly perPage: number;
  readonly page?: number;
  readonly orderBy?: { readonly field: 'createdAt'; readonly direction: 'ASC' };
}

interface Memory {
  saveThread(o: { thread: unknown }): Promise<unknown>;
  saveMessages(o: { messages: readonly unknown[] }): Promise<unknown>;
  recall(o: Recall): Promise<{ readonly messages: readonly Message[]; readonly hasMore: boolean }>;
  copyThread(o: { sourceThreadId: string }): Promise<{ readonly thread: { readonly id: string } }>;
  listThreads(o: { perPage: false }): Promise<{ readonly threads: readonly unknown[] }>;
}

interface LibSql {
  readonly LibSQLStore: new (o: {
    id: string;
    url: string;
  }) => {
    init(): Promise<void>;
    close?(): Promise<void>;
  };
}

interface MemoryPackage {
  readonly Memory: new (o: { storage: unknown; options: unknown }) => Memory;
}

/** A recall takes time that grows with the square of its page, and each counts all messages: this is the fastest. */
const perPage = 500;

/** The memory of Mastra, in libSQL. */
export const mastra: Peer = {
  name: 'Mastra',
  packages: { '@mastra/memory': '1.31.0', '@mastra/libsql': '1.23.1', '@mastra/core': '1.71.0' },
  async load(load) {
    const { LibSQLStore } = await load<LibSql>('@mastra/libsql');
    const { Memory } = await load<MemoryPackage>('@mastra/memory');
    return async (home) => {
      const storage = new LibSQLStore({ id: 'bench', url: `file:${join(home, 'mastra.db')}` });
      await storage.init();
      const memory = new Memory({ storage, options: { semanticRecall: false } });
      // Messages are sorted by their time, in milliseconds.
      let clock = Date.now();
      const messageOf = (threadId: string, { role, text }: Text) => {
        clock += 1;
        const content = { format: 2, parts: [{ type: 'text', text }] };
        return {
          id: crypto.randomUUID(),
          role,
          createdAt: new Date(clock),
          threadId,
          resourceId: 'r',
          content,
        };
      };
      return {
        async fill(texts) {
          const id = crypto.randomUUID();
          const now = new Date();
          await memory.saveThread({
            thread: { id, resourceId: 'r', title: 'bench', createdAt: now, updatedAt: now, metadata: {} },
          });
          for (let at = 0; at < texts.length; at += 1000)
            await memory.saveMessages({
              messages: texts.slice(at, at + 1000).map((text) => messageOf(id, text)),
            });
          return id;
        },
        appender: async (session) => (text) => memory.saveMessages({ messages: [messageOf(session, text)] }),
        fork: async (session) => (await memory.copyThread({ sourceThreadId: session })).thread.id,
        last: async (session, count) =>
          (await memory.recall({ threadId: session, perPage: count })).messages.map(textOf),
        async all(session, see) {
          const orderBy = { field: 'createdAt', direction: 'ASC' } as const;
          for (let page = 0, more = true; more; page += 1) {
            const recalled = await memory.recall({ threadId: session, perPage, page, orderBy });
            for (const message of recalled.messages) see(textOf(message));
            more = recalled.hasMore;
          }
        },
        list: async () => (await memory.listThreads({ perPage: false })).threads.length,
        close: () => storage.close?.(),
      };
    };
  },
};

function textOf({ content }: Message): string {
  return content.parts.map(({ text = '' }) => text).join('');
}
