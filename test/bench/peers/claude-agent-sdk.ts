import { appendFileSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Peer, Text } from './peer.ts';

interface Message {
  readonly message: { readonly content: string | readonly { readonly text?: string }[] };
}

interface Sdk {
  forkSession(session: string, options: { dir: string }): Promise<{ readonly sessionId: string }>;
  getSessionMessages(session: string, options: { dir: string }): Promise<readonly Message[]>;
  listSessions(options: { dir: string }): Promise<readonly unknown[]>;
}

/** The session functions of the Claude Agent SDK: a file of lines for each session, below `HOME`. */
export const claudeAgentSdk: Peer = {
  name: 'Claude Agent SDK',
  packages: { '@anthropic-ai/claude-agent-sdk': '0.3.330' },
  cannot: { append: 'only its program writes messages, when a model answers' },
  async load(load) {
    const { forkSession, getSessionMessages, listSessions } = await load<Sdk>(
      '@anthropic-ai/claude-agent-sdk',
    );
    return (home) => {
      mkdirSync(join(home, 'project'), { recursive: true });
      const dir = realpathSync(join(home, 'project'));
      const files = join(home, '.claude', 'projects', dir.replace(/[^a-zA-Z0-9]/g, '-'));
      mkdirSync(files, { recursive: true });
      return {
        async fill(texts) {
          const session = crypto.randomUUID();
          const file = join(files, `${session}.jsonl`);
          writeFileSync(file, '');
          let parent: string | null = null;
          for (let at = 0; at < texts.length; at += 1000) {
            let lines = '';
            for (const text of texts.slice(at, at + 1000)) {
              const uuid: string = crypto.randomUUID();
              lines += `${JSON.stringify(lineOf(text, { session, dir, parent, uuid }))}\n`;
              parent = uuid;
            }
            appendFileSync(file, lines);
          }
          return session;
        },
        appender: () => Promise.reject(new Error('the library does not append')),
        fork: async (session) => (await forkSession(session, { dir })).sessionId,
        last: async (session, count) =>
          (await getSessionMessages(session, { dir })).slice(-count).map(textOf),
        async all(session, see) {
          for (const message of await getSessionMessages(session, { dir })) see(textOf(message));
        },
        list: async () => (await listSessions({ dir })).length,
        close: () => {},
      };
    };
  },
};

interface Place {
  readonly session: string;
  readonly dir: string;
  readonly parent: string | null;
  readonly uuid: string;
}

/** A line as its program writes it. */
function lineOf({ role, text }: Text, { session, dir, parent, uuid }: Place): unknown {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const answered = { id: `msg_${uuid}`, type: 'message', model: 'm', stop_reason: 'end_turn', usage };
  return {
    parentUuid: parent,
    isSidechain: false,
    userType: 'external',
    cwd: dir,
    sessionId: session,
    version: '2.0.0',
    type: role,
    message:
      role === 'user' ? { role, content: text } : { role, content: [{ type: 'text', text }], ...answered },
    uuid,
    timestamp: new Date().toISOString(),
  };
}

function textOf({ message: { content } }: Message): string {
  return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('');
}
