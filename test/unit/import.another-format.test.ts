import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ConversationPlan,
  conversationsIn,
  discover,
  type FileImport,
  importConversation,
  isRead,
  SourceTable,
  type TranscriptTool,
} from '@tapedeck/runtime/import';
import { assistant, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

/** A program that no one knows: each line of a file says who spoke, and a file beside it has what it asked another one. */
const parrot: TranscriptTool = {
  name: 'parrot',
  title: 'Parrot',
  file: 'a Parrot chat',
  roots: ({ home }) => [join(home, '.parrot')],
  has: (path) => path.endsWith('.chat'),
  identify: ([first], path) => {
    if (typeof first?.parrot !== 'string') return undefined;
    const main = first.parrot;
    const isAside = path.endsWith('.aside.chat');
    return { session: isAside ? `${main}/aside` : main, role: isAside ? 'subagent' : 'main', main };
  },
  directoryOf: ({ at }) => (typeof at === 'string' ? at : undefined),
  beside: (files) =>
    files.flatMap(({ path }) => [
      path.replace(/(?:\.aside)?\.chat$/, '.chat'),
      path.replace(/\.chat$/, '.aside.chat'),
    ]),
  plan: async (files) => {
    const conversations: ConversationPlan[] = [];
    for (const file of files) {
      const { role, path } = file;
      const { records } = await file.lines();
      const spine = [...records].flatMap(({ value: { who, text } }, i) => {
        if (who !== 'me' && who !== 'parrot') return [];
        const draft = who === 'me' ? user(String(text)) : assistant([{ type: 'text', text: String(text) }]);
        return [{ ...draft, key: `parrot:${role}:${i}`, meta: { source: 'import' } }];
      });
      const key = `parrot:${role}`;
      conversations.push({
        ...{ key, file: path, kind: role === 'main' ? 'main' : 'subagent', name: `polly-${role}` },
        ...(role !== 'main' && { parent: { key: 'parrot:main' } }),
        ...{ spine, settled: spine.length, keeps: new Map(), asides: [] },
      });
    }
    return {
      ...{ format: 'parrot', session: 'polly', conversations, derived: [], counts: new Map() },
      files: new Map(files.map(({ path }) => [path, path])),
    };
  },
};

/** What has the form of a secret. */
const secret = `ghp_${'aB3dE6gH9j'.repeat(3)}aB3dE6`;

const lines = (...values: readonly object[]): string =>
  values.map((one) => `${JSON.stringify(one)}\n`).join('');
const said = (who: string, text: string) => ({ parrot: 'polly', at: '/work', who, text });

/** Finds what a home directory has, and imports what is new. */
async function importAll(
  store: SqliteTapeStore,
  home: string,
  table: SourceTable,
): Promise<readonly FileImport[]> {
  const found = await discover({
    place: { env: {}, home },
    tools: [parrot],
    known: (path) => table.at(path),
  });
  expect(found).toMatchObject({ strangers: [], problems: [] });
  const done: FileImport[] = [];
  for (const conversation of conversationsIn(found.files))
    done.push(...(await importConversation(store, conversation, { table, excludes: found.excludesProject })));
  return done;
}

test('a format of a program that no one knows is one object: its files are found, imported and followed', async () => {
  using dir = tempDir();
  using store = openStore();
  mkdirSync(dir.file('.parrot'));
  const [chat, aside] = [dir.file('.parrot/1.chat'), dir.file('.parrot/1.aside.chat')];
  writeFileSync(chat, lines(said('me', 'Hello')));
  const table = SourceTable.open(dir.file('sources.jsonl'));
  const first = await importAll(store, dir.path, table);
  expect(first.map(({ seen, brought }) => [seen, brought?.sessions.map(({ added }) => added)])).toEqual([
    ['new', [2]],
  ]);

  writeFileSync(chat, lines(said('me', 'Hello'), said('parrot', `Hello! ${secret}`), said('me', 'Bye')));
  writeFileSync(aside, lines(said('me', 'Repeat'), said('parrot', 'Repeat')));
  const grown = await importAll(store, dir.path, table);
  expect(grown.map(({ file, brought }) => [file.role, brought?.sessions[0]?.session])).toEqual([
    ['main', 'polly-main'],
    ['subagent', 'polly-subagent'],
  ]);
  expect(
    view(store.views.entries('polly-main')).messages.map(({ content }) => JSON.stringify(content)),
  ).toEqual([
    expect.stringContaining('Hello'),
    expect.stringMatching(/Hello! \[secret /),
    expect.stringContaining('Bye'),
  ]);
  expect(store.sessions.find('polly-subagent')).toMatchObject({ parent: 'polly-main', kind: 'subagent' });
  // What is there in place of what was read is another incarnation, forked where it differs.
  writeFileSync(chat, lines(said('me', 'Hello'), said('parrot', 'Hi!')));
  const [other] = await importAll(store, dir.path, table);
  expect([other?.seen, other?.brought?.sessions]).toMatchObject(['rewritten', [{ session: 'polly-main-2' }]]);
  expect(store.sessions.find('polly-main-2')).toMatchObject({ parent: 'polly-main', kind: 'session' });
  const again = await importAll(store, dir.path, table);
  expect(again.map(({ file, seen }) => [seen, isRead(file, table)])).toEqual([
    ['unchanged', true],
    ['unchanged', true],
  ]);
  expect([...store.verify()]).toEqual([]);
});
