import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Peer, Text } from './peer.ts';

type Content = string | readonly { readonly type: string; readonly text?: string }[];

interface Session {
  getSessionFile(): string;
  getLeafId(): string;
  getBranch(): readonly { readonly type: string; readonly message?: { readonly content: Content } }[];
  appendMessage(message: unknown): string;
  createBranchedSession(leaf: string): string;
}

interface Pi {
  readonly SessionManager: {
    create(cwd: string, sessions: string): Session;
    open(file: string, sessions: string): Session;
    list(cwd: string, sessions: string): Promise<readonly unknown[]>;
  };
}

/** The sessions of the coding agent pi: a file of lines for each. Later versions do not install. */
export const pi: Peer = {
  name: 'pi',
  packages: { '@earendil-works/pi-coding-agent': '0.87.1' },
  async load(load) {
    const { SessionManager } = await load<Pi>('@earendil-works/pi-coding-agent');
    return (home) => {
      const [cwd, sessions] = [join(home, 'project'), join(home, 'sessions')];
      for (const dir of [cwd, sessions]) mkdirSync(dir, { recursive: true });
      const texts = (file: string) => SessionManager.open(file, sessions).getBranch();
      return {
        async fill(texts) {
          const session = SessionManager.create(cwd, sessions);
          for (const text of texts) session.appendMessage(messageOf(text));
          return session.getSessionFile();
        },
        async appender(file) {
          const session = SessionManager.open(file, sessions);
          return (text) => session.appendMessage(messageOf(text));
        },
        async fork(file) {
          const session = SessionManager.open(file, sessions);
          return session.createBranchedSession(session.getLeafId());
        },
        last: async (file, count) => texts(file).slice(-count).map(textOf),
        async all(file, see) {
          for (const entry of texts(file)) see(textOf(entry));
        },
        list: async () => (await SessionManager.list(cwd, sessions)).length,
        close: () => {},
      };
    };
  },
};

const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost };
const answered = { api: 'anthropic-messages', provider: 'anthropic', model: 'm', usage, stopReason: 'stop' };

function messageOf({ role, text }: Text): unknown {
  const message = { role, content: [{ type: 'text', text }], timestamp: Date.now() };
  return role === 'user' ? message : { ...message, ...answered };
}

function textOf({ message }: { readonly message?: { readonly content: Content } }): string {
  const content = message?.content ?? '';
  return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('');
}
