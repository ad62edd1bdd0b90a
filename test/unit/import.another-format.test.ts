import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import {
  type ConversationPlan,
  claudeCode,
  conversationsIn,
  discover,
  type EndPlan,
  type FileImport,
  type Identity,
  type ImportError,
  importConversation,
  isRead,
  parseJsonLines,
  planClaudeCode,
  reconcile,
  type SourcePlan,
  SourceTable,
  type TranscriptTool,
} from '@tapedeck/runtime/import';
import { assistant, type Draft, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { transcriptLines } from '../bench/transcripts.ts';
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

/** The files of a home directory with a chat that a format cannot read, between two others. */
function threeChats(dir: { file(path: string): string }): void {
  mkdirSync(dir.file('.parrot'));
  for (const name of ['anna', 'broken', 'carl']) {
    const text = lines({ parrot: name, at: '/work', who: 'me', text: `I am ${name}` });
    writeFileSync(dir.file(`.parrot/${name}.chat`), text);
  }
}

/** A format that is right but for what becomes of a chat with `broken` in its name. */
function failing(how: (good: TranscriptTool) => Partial<TranscriptTool>): TranscriptTool {
  const good: TranscriptTool = {
    ...parrot,
    plan: async (files) => {
      const plan = await (parrot.plan ?? never)(files);
      const session = files[0]?.session ?? '';
      const conversations = plan.conversations.map((one) => ({ ...one, name: session }));
      return { ...plan, session, conversations };
    },
  };
  return { ...good, ...how(good) };
}

const never = () => {
  throw new TypeError('a format has a plan');
};
const boom = () => {
  throw new TypeError('boom');
};
const isBroken = (path = '') => path.includes('broken');

/** Imports three chats with a format, and says what became of each, and of the sessions. */
async function outcomeOf(tool: TranscriptTool) {
  using dir = tempDir();
  using store = openStore();
  threeChats(dir);
  const table = SourceTable.open(dir.file('sources.jsonl'));
  const place = { env: {}, home: dir.path };
  const { files, problems } = await discover({ place, tools: [tool], known: (path) => table.at(path) });
  const errors = problems.map(({ path, error }) => ({ path, error }));
  for (const conversation of conversationsIn(files))
    for (const { file, error } of await importConversation(store, conversation, { table }))
      if (error !== undefined) errors.push({ path: file.path, error: error as ImportError });
  expect([...store.verify()]).toEqual([]);
  const sessions = store.sessions.list().map(({ session }) => session);
  return {
    sessions: sessions.sort(),
    errors: errors.map(({ path, error }) => ({
      ...{ file: relative(dir.path, path), code: error?.code, why: error?.data.why },
      cause: error?.cause instanceof Error ? error.cause.message : error?.cause,
    })),
  };
}

const calls: Readonly<Record<string, (good: TranscriptTool) => Partial<TranscriptTool>>> = {
  has: (good) => ({ has: (path) => (isBroken(path) ? boom() : good.has(path)) }),
  identify: (good) => ({
    identify: (records, path) =>
      isBroken(path) && records.length > 0 ? boom() : good.identify(records, path),
  }),
  directoryOf: () => ({ directoryOf: ({ parrot: name }) => (name === 'broken' ? boom() : undefined) }),
  hasRecord: () => ({ hasRecord: ({ parrot: name }) => (name === 'broken' ? boom() : true) }),
  faultIn: () => ({ faultIn: ({ parrot: name }) => (name === 'broken' ? boom() : undefined) }),
  'plan, at once': (good) => ({
    plan: (files) => (isBroken(files[0]?.path) ? boom() : (good.plan ?? never)(files)),
  }),
  'plan, later': (good) => ({
    plan: async (files) => {
      const plan = await (good.plan ?? never)(files);
      return isBroken(files[0]?.path) ? boom() : plan;
    },
  }),
};

test.each(Object.entries(calls))('what a format throws is an error of its file: %s', async (_, how) => {
  expect(await outcomeOf(failing(how))).toEqual({
    sessions: ['anna', 'carl'],
    errors: [
      {
        ...{ file: '.parrot/broken.chat', code: 'IMPORT_FORMAT_FAILED', cause: 'boom' },
        why: "the format 'parrot' failed: boom",
      },
    ],
  });
});

test('a format that fails at a file of another program keeps that from no import', async () => {
  using dir = tempDir();
  threeChats(dir);
  const bad = { ...parrot, name: 'bad', roots: boom, identify: boom, has: boom };
  const { files, problems } = await discover({ place: { env: {}, home: dir.path }, tools: [bad, parrot] });
  expect(files.map(({ tool, session }) => [tool.name, session])).toEqual([
    ['parrot', 'anna'],
    ['parrot', 'broken'],
    ['parrot', 'carl'],
  ]);
  expect(problems).toMatchObject([{ path: dir.path, error: { code: 'IMPORT_FORMAT_FAILED' } }]);
  // Who names a file of a conversation means all of it.
  const alone = { ...parrot, beside: boom };
  const paths = [dir.file('.parrot/anna.chat')];
  const named = await discover({ place: { env: {}, home: dir.path }, tools: [alone], paths });
  expect(named.files).toHaveLength(1);
  expect(named.problems).toMatchObject([{ path: paths[0], why: "the format 'parrot' failed: boom" }]);
});

const identities: Readonly<Record<string, object | (() => unknown)>> = {
  'session is no text': { role: 'main', main: 'broken' },
  'main is no text': { role: 'main', session: 'broken', main: '' },
  "role is not 'main', 'subagent' or 'part'": { role: 'aside', session: 'broken', main: 'broken' },
  'a promise': () => Promise.reject(new Error('later')),
};

test.each(Object.entries(identities))(
  'what is no identity is an error of its file: %s',
  async (why, given) => {
    const { sessions, errors } = await outcomeOf(
      failing((good) => ({
        identify: (...asked) =>
          isBroken(asked[1])
            ? ((typeof given === 'function' ? given() : given) as Identity)
            : good.identify(...asked),
      })),
    );
    expect(sessions).toEqual(['anna', 'carl']);
    expect(errors).toMatchObject([{ file: '.parrot/broken.chat', why: expect.stringContaining(why) }]);
  },
);

type Wrong = (plan: SourcePlan, conversation: ConversationPlan, draft: Draft) => unknown;
const withSpine = (plan: SourcePlan, one: ConversationPlan, ...spine: unknown[]) => ({
  ...plan,
  conversations: [{ ...one, spine, settled: spine.length }],
});

const plans: Readonly<Record<string, Wrong>> = {
  'is no object': () => undefined,
  'format is no text': ({ format: _, ...plan }) => plan,
  'conversations is no list': (plan) => ({ ...plan, conversations: new Set() }),
  'files is no Map': (plan) => ({ ...plan, files: {} }),
  'counts is no Map': (plan) => ({ ...plan, counts: undefined }),
  'derived is no list': ({ derived: _, ...plan }) => plan,
  'conversations[0] is no object': (plan) => ({ ...plan, conversations: [null] }),
  'conversations[0]: key is no text': (plan, { key: _, ...one }) => ({ ...plan, conversations: [one] }),
  "conversations[1]: key 'parrot:main' is that of another one": (plan, one) => ({
    ...plan,
    conversations: [one, one],
  }),
  'conversations[0]: kind is not one of': (plan, one) => ({
    ...plan,
    conversations: [{ ...one, kind: 'x' }],
  }),
  'conversations[0]: file is not one of its files': (plan, one) => ({
    ...plan,
    conversations: [{ ...one, file: 'x' }],
  }),
  'conversations[0]: its parent comes behind it': (plan, one) => ({
    ...plan,
    conversations: [
      { ...one, parent: { key: 'b' } },
      { ...one, key: 'b' },
    ],
  }),
  'conversations[0]: settled is no number from 0 to 1': (plan, one) => ({
    ...plan,
    conversations: [{ ...one, settled: 2 }],
  }),
  'conversations[0], spine[1] is no object': (plan, one, draft) => withSpine(plan, one, draft, 7),
  'conversations[0], spine[1] has no key': (plan, one, { key: _, ...draft }) =>
    withSpine(plan, one, ...one.spine, draft),
  "conversations[0], spine[1] has the key 'parrot:main:0' of another draft": (plan, one, draft) =>
    withSpine(plan, one, draft, { ...draft }),
  'conversations[0], spine[0]: meta.source is not': (plan, one, { meta: _, ...draft }) =>
    withSpine(plan, one, draft),
  'conversations[0], spine[0] is no entry: ': (plan, one, draft) =>
    withSpine(plan, one, { ...draft, payload: { role: 'user', content: 7n } }),
  "conversations[0], asides[0] has the key 'parrot:main:0' of another draft": (plan, one, draft) => ({
    ...plan,
    conversations: [{ ...one, asides: [{ draft: { ...draft, kind: 'x-parrot' }, after: 0 }] }],
  }),
  'conversations[0], asides[0]: after is no number from 0 to 1': (plan, one, draft) => ({
    ...plan,
    conversations: [{ ...one, asides: [{ draft: { ...draft, kind: 'x-parrot', key: 'a' }, after: 2 }] }],
  }),
};

test.each(Object.entries(plans))(
  'a plan that is wrong is an error of its file, and nothing of it is written: %s',
  async (why, wrong) => {
    const tool = failing((good) => ({
      plan: async (files) => {
        const plan = await (good.plan ?? never)(files);
        const [one] = plan.conversations;
        const [draft] = one?.spine ?? [];
        if (!isBroken(files[0]?.path) || one === undefined || draft === undefined) return plan;
        return wrong(plan, one, draft) as SourcePlan;
      },
    }));
    const { sessions, errors } = await outcomeOf(tool);
    expect(sessions).toEqual(['anna', 'carl']);
    expect(errors).toMatchObject([{ file: '.parrot/broken.chat', code: 'IMPORT_FORMAT_FAILED' }]);
    expect(errors[0]?.why).toContain(`the format 'parrot' failed: its plan`);
    expect(errors[0]?.why).toContain(why);
  },
);

/** Formats that plan a whole file, and fail at the end of one that has grown. */
const ends: Readonly<Record<string, (end: EndPlan) => unknown>> = {
  'it throws': boom,
  'it is no object': () => 7,
  'it has no conversation': ({ conversation: _, ...end }) => end,
  'a draft has no key': ({ conversation, ...end }) => ({
    ...end,
    conversation: {
      ...conversation,
      spine: [...conversation.spine].map(({ key: _, ...draft }) => draft),
    },
  }),
  'its counts are none': (end) => ({ ...end, counts: undefined }),
  'its keys are no Set': ({ end, ...plan }) => ({ ...plan, end: end && { ...end, keys: [] } }),
  'its ids throw': ({ end, ...plan }) => ({ ...plan, end: end && { ...end, ids: boom } }),
};

test.each(
  Object.entries(ends).flatMap(([name, wrong]) => [
    [name, 'from the beginning', wrong, 0] as const,
    [name, 'when the file has grown', wrong, 1] as const,
  ]),
)('where the plan of an end is wrong, the file is read whole: %s, %s', async (_, __, wrong, since) => {
  using dir = tempDir();
  using store = openStore();
  mkdirSync(dir.file('.claude/projects/p'), { recursive: true });
  const [id, path] = [randomUUID(), dir.file('.claude/projects/p/a.jsonl')];
  const texts = [...transcriptLines({ bytes: 400_000, output: 1_000 }, { id })];
  const table = SourceTable.open(dir.file('sources.jsonl'));
  let [round, wrongs] = [0, 0];
  const tool: TranscriptTool = {
    ...claudeCode,
    planEnd: (...given) => {
      const end = claudeCode.planEnd?.(...given);
      if (end === undefined || round < since) return end;
      wrongs += 1;
      return wrong(end) as EndPlan;
    },
  };
  const bring = async (lines: number) => {
    writeFileSync(path, `${texts.slice(0, lines).join('\n')}\n`);
    const place = { env: {}, home: dir.path };
    const { files } = await discover({ place, tools: [tool], known: (one) => table.at(one) });
    const done: FileImport[] = [];
    for (const one of conversationsIn(files)) done.push(...(await importConversation(store, one, { table })));
    round += 1;
    return done.map(({ seen, error, brought }) => [seen, error?.message, brought?.sessions.length]);
  };
  expect(await bring(texts.length - 20)).toEqual([['new', undefined, 1]]);
  expect(await bring(texts.length)).toEqual([['grown', undefined, 1]]);
  expect(wrongs).toBeGreaterThan(0);
  using once = openStore();
  const { records } = parseJsonLines([readFileSync(path)]);
  reconcile(once, planClaudeCode({ name: id, lines: records }));
  expect(view(store.views.entries(id)).messages).toEqual(view(once.views.entries(id)).messages);
  expect([...store.verify()]).toEqual([]);
});

test('a format can be an object of a class', async () => {
  class Parrot {
    readonly #good = failing(() => ({}));
    readonly name = 'parrot';
    readonly title = 'Parrot';
    readonly file = 'a Parrot chat';
    roots = this.#good.roots;
    has = this.#good.has;
    identify = this.#good.identify;
    plan(...asked: Parameters<NonNullable<TranscriptTool['plan']>>) {
      return (this.#good.plan ?? never)(...asked);
    }
  }
  const { sessions, errors } = await outcomeOf(new Parrot());
  expect([sessions, errors]).toEqual([['anna', 'broken', 'carl'], []]);
});
