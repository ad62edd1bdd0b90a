import { join } from 'node:path';
import type { default as Sqlite } from 'better-sqlite3';
import type { Peer, Text } from './peer.ts';

const schema = `
  CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS message_session ON message (session, id);`;

/** What many write first: one table of messages, in which a fork copies rows. */
function naiveSqlite(name: string, synchronous: string): Peer {
  return {
    name,
    packages: {},
    async load(load) {
      const { default: Database } = await load<{ readonly default: typeof Sqlite }>('better-sqlite3');
      return (home) => {
        const db = new Database(join(home, 'messages.db'));
        db.pragma('journal_mode = WAL');
        db.exec(`${synchronous}${schema}`);
        const insert = db.prepare('INSERT INTO message (session, role, text) VALUES (?, ?, ?)');
        const append = (session: string, { role, text }: Text) => insert.run(session, role, text);
        const fill = db.transaction((session: string, texts: readonly Text[]) => {
          for (const text of texts) append(session, text);
        });
        return {
          async fill(texts) {
            const session = crypto.randomUUID();
            fill(session, texts);
            return session;
          },
          appender: async (session) => (text) => append(session, text),
          async fork(session) {
            const fork = crypto.randomUUID();
            db.prepare(
              `INSERT INTO message (session, role, text)
                 SELECT ?, role, text FROM message WHERE session = ? ORDER BY id`,
            ).run(fork, session);
            return fork;
          },
          last: async (session, count) =>
            db
              .prepare<[string, number], string>(
                'SELECT text FROM message WHERE session = ? ORDER BY id DESC LIMIT ?',
              )
              .pluck()
              .all(session, count)
              .reverse(),
          async all(session, see) {
            const select = db.prepare<[string], string>(
              'SELECT text FROM message WHERE session = ? ORDER BY id',
            );
            for (const text of select.pluck().iterate(session)) see(text);
          },
          list: async () =>
            db
              .prepare('SELECT session, count(*), max(id) FROM message GROUP BY session ORDER BY max(id)')
              .all().length,
          close: () => {
            db.close();
          },
        };
      };
    },
  };
}

export const naiveFull: Peer = naiveSqlite('naive SQLite, FULL', 'PRAGMA synchronous = FULL;');
export const naiveDefault: Peer = naiveSqlite('naive SQLite, default', '');
