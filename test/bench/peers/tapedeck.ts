import { join } from 'node:path';
import type { Entry } from '@tapedeck/tape';
import type { Peer } from './peer.ts';

/** This project's store. */
export const tapedeck: Peer = {
  name: 'Tapedeck',
  packages: {},
  async load(load) {
    const { assistant, openTapeStore, user } = await load<typeof import('@tapedeck/tape')>('@tapedeck/tape');
    const draft = { user: (text: string) => user(text), assistant: (text: string) => assistant(text) };
    return (home) => {
      const store = openTapeStore(join(home, 'tape.db'));
      return {
        async fill(texts) {
          const name = `s-${crypto.randomUUID()}`;
          store.sessions.open(name);
          for (let at = 0; at < texts.length; at += 1000)
            store.entries.append(
              name,
              texts.slice(at, at + 1000).map(({ role, text }) => draft[role](text)),
            );
          return name;
        },
        appender: async (session) => (text) => store.entries.append(session, [draft[text.role](text.text)]),
        fork: async (session) => store.lineage.fork(session).session,
        last: async (session, count) =>
          Array.from(store.entries.read(session, { kind: 'message', last: count }), textOf),
        async all(session, see) {
          for (const entry of store.entries.read(session, { kind: 'message' })) see(textOf(entry));
        },
        list: async () => store.sessions.list().length,
        close: () => store.close(),
      };
    };
  },
};

function textOf({ payload }: Entry): string {
  const { content } = payload as { readonly content: string | readonly { readonly text: string }[] };
  return typeof content === 'string' ? content : content.map(({ text }) => text).join('');
}
