import { join } from 'node:path';
import type { Peer, Text } from './peer.ts';

interface Message {
  readonly content: string;
}

interface Checkpoint {
  readonly id: string;
  readonly channel_values: { messages?: readonly Message[] };
}

interface Config {
  readonly configurable: { readonly thread_id?: string; readonly checkpoint_id?: string };
}

interface Tuple {
  readonly config: Config;
  readonly checkpoint: Checkpoint;
}

interface Sqlite {
  readonly SqliteSaver: {
    fromConnString(path: string): {
      readonly db: { close(): void };
      put(config: Config, checkpoint: Checkpoint, metadata: unknown): Promise<Config>;
      getTuple(config: Config): Promise<Tuple | undefined>;
      list(config: Config): AsyncIterable<Tuple>;
    };
  };
}

interface Checkpoints {
  emptyCheckpoint(): Checkpoint;
  uuid6(clock: number): string;
}

type MessageClass = new (text: string) => Message;

interface Messages {
  readonly HumanMessage: MessageClass;
  readonly AIMessage: MessageClass;
}

/** The SQLite saver of LangGraph: each checkpoint has all messages. */
export const langGraph: Peer = {
  name: 'LangGraph SQLite saver',
  packages: {
    '@langchain/langgraph-checkpoint-sqlite': '1.0.4',
    '@langchain/langgraph-checkpoint': '1.2.2',
    '@langchain/core': '1.4.0',
  },
  async load(load) {
    const { SqliteSaver } = await load<Sqlite>('@langchain/langgraph-checkpoint-sqlite');
    const { emptyCheckpoint, uuid6 } = await load<Checkpoints>('@langchain/langgraph-checkpoint');
    const { HumanMessage, AIMessage } = await load<Messages>('@langchain/core/messages');
    const messageOf = ({ role, text }: Text) => new (role === 'user' ? HumanMessage : AIMessage)(text);
    return (home) => {
      const saver = SqliteSaver.fromConnString(join(home, 'checkpoints.db'));
      let step = 0;
      const save = (config: Config, messages: readonly Message[]) => {
        step += 1;
        const checkpoint = { ...emptyCheckpoint(), id: uuid6(step), channel_values: { messages } };
        return saver.put(config, checkpoint, { source: 'loop', step, parents: {} });
      };
      const thread = (id: string): Config => ({ configurable: { thread_id: id } });
      const saved = async (id: string) => {
        const tuple = await saver.getTuple(thread(id));
        if (tuple === undefined) throw new Error(`there is no thread ${id}`);
        return { config: tuple.config, messages: tuple.checkpoint.channel_values.messages ?? [] };
      };
      return {
        async fill(texts) {
          const id = crypto.randomUUID();
          await save(thread(id), texts.map(messageOf));
          return id;
        },
        async appender(session) {
          let { config, messages } = await saved(session);
          return async (text) => {
            messages = [...messages, messageOf(text)];
            config = await save(config, messages);
          };
        },
        async fork(session) {
          const id = crypto.randomUUID();
          await save(thread(id), (await saved(session)).messages);
          return id;
        },
        last: async (session, count) =>
          (await saved(session)).messages.slice(-count).map(({ content }) => content),
        async all(session, see) {
          for (const { content } of (await saved(session)).messages) see(content);
        },
        async list() {
          const threads = new Set<string | undefined>();
          for await (const { config } of saver.list({ configurable: {} }))
            threads.add(config.configurable.thread_id);
          return threads.size;
        },
        close: () => saver.db.close(),
      };
    };
  },
};
