import { readFileSync } from 'node:fs';
import { type Exported, type ExportOptions, exportSession } from '@tapedeck/runtime';
import { readTranscript, reconcile } from '@tapedeck/runtime/import';
import { assistant, handoff, result, type SqliteTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { convertToModelMessages, safeValidateUIMessages, tool, type UIMessage } from 'ai';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { storeUnderTest } from '../support/deck.ts';
import { scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';
import { tokenShapes } from '../support/token-shapes.ts';

const secret = tokenShapes.find(([name]) => name === 'aws')?.[1] ?? '';
const image = new Uint8Array(400).fill(7);
const look = { toolCallId: 'c1', toolName: 'look' };

/** `main` with a call, a rewind, a file and a handoff that keeps the last answer; `kid` is forked from it and merged. */
function family(): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  const append = (...drafts: Parameters<typeof store.entries.append>[1]) =>
    store.entries.append('main', drafts);
  append(user('Look it up.'), assistant([toolCall('c1', 'look', { at: 1 })]));
  append(toolResult(look, 'x'.repeat(300_000)), assistant('It is there.'));
  const { from } = append(user('Wrong.'), assistant('Worse.'));
  store.history.rewind('main', from - 1);
  const file = { type: 'file', mediaType: 'image/png', filename: 'a.png', data: image };
  const kept = append(user([{ type: 'text', text: 'See.' }, file]), assistant('Nice.'));
  append(handoff('review', { summary: 'Reviewed.' }, { keepFrom: kept.from }));
  append(user('Go on.'), assistant('Yes.'));
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('kid', [user('Test it.'), assistant('Tested.'), result('It works.')]);
  store.lineage.merge('kid');
  append(assistant('Merged.'));
  return store;
}

async function exported(
  store: SqliteTapeStore,
  session: string,
  options: ExportOptions,
): Promise<{ readonly text: string } & Exported> {
  const pieces = exportSession(storeUnderTest(store), session, options);
  let text = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done === true) return { ...value, text };
    text += value;
  }
}

async function uiOf(store: SqliteTapeStore, session: string): Promise<readonly UIMessage[]> {
  const { text } = await exported(store, session, { format: 'ui-message' });
  return JSON.parse(text) as UIMessage[];
}

interface ChatLine {
  readonly tools?: readonly {
    readonly type: string;
    readonly function: { readonly name: string; readonly description?: string; readonly parameters: object };
  }[];
  readonly messages: readonly {
    readonly role: string;
    readonly content?: unknown;
    readonly weight?: number;
    readonly tool_call_id?: string;
    readonly tool_calls?: readonly {
      readonly id: string;
      readonly function: { readonly name: string; readonly arguments: string };
    }[];
  }[];
}

async function chatOf(store: SqliteTapeStore, session: string): Promise<readonly ChatLine[]> {
  const { text } = await exported(store, session, { format: 'openai-chat' });
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as ChatLine);
}

const isOfOpenai = new Ajv2020({ formats: { uri: true }, strictTypes: false }).compile(
  JSON.parse(readFileSync(new URL('../support/openai-chat.schema.json', import.meta.url), 'utf8')) as object,
);

/** What the files for fine-tuning must not have. */
function faultsOf(line: ChatLine): string[] {
  const { messages, tools } = line;
  const faults = isOfOpenai(line) ? [] : (isOfOpenai.errors ?? []).map((error) => JSON.stringify(error));
  const names = tools?.map(({ function: { name } }) => name);
  for (const name of names ?? []) if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) faults.push(`a tool is ${name}`);
  let awaited: string[] = [];
  for (const [i, { role, content, tool_calls = [], tool_call_id }] of messages.entries()) {
    if (!['system', 'user', 'assistant', 'tool'].includes(role)) faults.push(`message ${i} is of ${role}`);
    if (role === 'tool' && awaited.shift() !== tool_call_id) faults.push(`message ${i} answers no call`);
    if (role !== 'tool' && awaited.length > 0) faults.push(`message ${i} comes before a result`);
    if (content === undefined && tool_calls.length === 0) faults.push(`message ${i} is empty`);
    if (tool_calls.length > 0) awaited = tool_calls.map(({ id }) => id);
    for (const call of tool_calls) JSON.parse(call.function.arguments);
    for (const { function: of } of tool_calls)
      if (names?.includes(of.name) === false) faults.push(`message ${i} calls ${of.name}, which is no tool`);
  }
  if (messages.at(-1)?.role !== 'assistant') faults.push('the last message is no answer');
  return faults;
}

test('ui-message: the SDK takes the conversation that a reader sees, a fork with what it inherits', async () => {
  const store = family();
  for (const session of ['main', 'kid']) {
    const messages = await uiOf(store, session);
    expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
    expect((await convertToModelMessages([...messages])).length).toBeGreaterThan(6);
    const text = JSON.stringify(messages);
    expect(text).toContain('Look it up.');
    expect(text).toContain(`data:image/png;base64,${Buffer.from(image).toString('base64')}`);
    expect(text).not.toContain('Wrong.');
    // A large output is whole.
    expect(text.length).toBeGreaterThan(300_000);
  }
  expect(JSON.stringify(await uiOf(store, 'main'))).toContain('It works.');
  store.sessions.open('empty');
  expect(await uiOf(store, 'empty')).toEqual([]);
});

test('openai-chat: a line for each context, each result after its call, and a kept answer with weight 0', async () => {
  const store = family();
  const lines = await chatOf(store, 'main');
  expect(lines.map(faultsOf)).toEqual([[], []]);
  const [first, second] = lines;
  expect(first?.messages.map(({ role }) => role)).toEqual([
    ...['user', 'assistant', 'tool', 'assistant', 'user', 'assistant'],
  ]);
  expect(first?.messages[5]).toEqual({ role: 'assistant', content: 'Nice.' });
  expect(JSON.stringify(second?.messages[0])).toContain('Reviewed.');
  expect(JSON.stringify(second?.messages[0])).toContain('"image_url":{"url":"data:image/png;base64,');
  expect(second?.messages.filter(({ role }) => role === 'assistant')).toEqual([
    { role: 'assistant', content: 'Nice.', weight: 0 },
    { role: 'assistant', content: 'Yes.' },
    { role: 'assistant', content: 'Merged.' },
  ]);
  expect(JSON.stringify(second)).toContain('It works.');
  expect(JSON.stringify(lines)).not.toContain('Wrong.');
  const kid = await chatOf(store, 'kid');
  expect(kid.map(faultsOf)).toEqual([[], []]);
  expect(kid[1]?.messages.at(-1)).toEqual({ role: 'assistant', content: 'Tested.' });
});

test('openai-chat: the tools that the model was sent, of each context, where the tape has them', async () => {
  const look = tool({
    description: 'Look it up',
    inputSchema: z.object({ at: z.int() }),
    execute: () => 'There.',
  });
  const odd = tool({ inputSchema: z.object({}), execute: () => 'Odd.' });
  const called = { toolCalls: [{ name: 'look', input: { at: 1 } }] };
  await using home = await scriptedDeck(
    [
      called,
      { text: 'It is there.' },
      { toolCalls: [{ name: 'an odd.name', input: {} }] },
      { text: 'On.' },
      called,
    ],
    { tools: { look } },
  );
  const { deck, store } = home;
  const main = await deck.session('main');
  const stored = () => [...store.entries.read('main')].filter(({ meta }) => meta.tools !== undefined).length;
  await main.run('Go.');
  // They are stored once for a view.
  expect(stored()).toBe(1);
  const [line] = await chatOf(store, 'main');
  expect(line?.tools).toEqual([
    {
      type: 'function',
      function: {
        name: 'look',
        description: 'Look it up',
        parameters: expect.objectContaining({ type: 'object', required: ['at'] }),
      },
    },
  ]);
  // Of tools that change within a context, all are there, under names that OpenAI takes.
  await main.run('And on.', { tools: { 'an odd.name': odd } });
  expect(stored()).toBe(2);
  const [both] = await chatOf(store, 'main');
  expect(both?.tools?.map(({ function: { name } }) => name)).toEqual([
    'look',
    expect.stringMatching(/^an_odd_name_[0-9a-f]{16}$/),
  ]);
  // The next context has its own.
  await main.handoff('next', { summary: 'All is there.' });
  await main.run('Once more.', { maxSteps: 1 });
  const lines = await chatOf(store, 'main');
  expect(lines.flatMap(faultsOf)).toEqual([]);
  expect(lines.map(({ tools = [] }) => tools.length)).toEqual([2, 1]);
  expect(stored()).toBe(3);
  // A fork has those of its parent; without the entry that has them, they are unknown.
  await main.fork({ name: 'kid' });
  expect((await chatOf(store, 'kid')).map(({ tools = [] }) => tools.length)).toEqual([2, 1]);
  const first = [...store.entries.read('main')].find(({ meta }) => meta.tools !== undefined);
  store.entries.redact('main', first?.seq ?? 0, 'a test');
  expect((await chatOf(store, 'main'))[0]).not.toHaveProperty('tools');
});

test('markdown: whole outputs, a line for what a rewind hides, files by name', async () => {
  const { text, items } = await exported(family(), 'main', { format: 'markdown' });
  expect(items).toBeGreaterThan(8);
  expect(text).toContain('x'.repeat(300_000));
  expect(text).toContain('a.png');
  expect(text).toContain('> Reviewed.');
  expect(text).toContain('> It works.');
  expect(text).toContain('are left out: the rewind');
  expect(text).not.toContain('> Wrong.');
});

interface SessionRecord {
  readonly recordType: string;
  readonly seq: number;
  readonly role?: string;
  readonly content?: readonly { readonly type: string; readonly id?: string }[];
  readonly toolCallId?: string;
  readonly firstKeptSeq?: number;
  readonly summary?: string;
}

test('session-jsonl: a record for each message, and a compaction whose context is the one of the session', async () => {
  const store = family();
  const { text, metadata, items } = await exported(store, 'main', { format: 'session-jsonl' });
  const records = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as SessionRecord);
  expect(records[0]).toEqual({
    ...{ recordType: 'message', schemaVersion: 1, seq: 2, role: 'user' },
    ...{ content: [{ type: 'text', text: 'Look it up.' }], timestamp: '2026-11-21T10:00:03.000Z' },
  });
  for (const { recordType, content } of records)
    if (recordType === 'message') expect(content).not.toEqual([]);
  const seqs = records.map(({ seq }) => seq);
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
  const call = records.findIndex(({ content }) => content?.some(({ id }) => id === 'c1'));
  expect(records[call + 1]).toMatchObject({ role: 'toolResult', toolCallId: 'c1', isError: false });
  // The context that a reader of the file builds: the summary, what is kept, and what came after.
  const at = records.findIndex(({ recordType }) => recordType === 'compaction');
  const { firstKeptSeq = 0, summary } = records[at] ?? {};
  expect(summary).toBe('Reviewed.');
  const kept = records.filter(({ recordType, seq }) => recordType === 'message' && seq >= firstKeptSeq);
  expect(kept.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'user',
    'assistant',
    'user',
    'assistant',
  ]);
  expect(text).not.toContain('Wrong.');
  expect(metadata).toEqual({
    ...{ id: store.sessions.find('main')?.id, name: 'main', model: '', source: 'interactive' },
    ...{ messageCount: items, createdAt: '2026-11-21T10:00:00.000Z', lastMessageAt: expect.any(String) },
  });
  // What was written stays as the session grows.
  store.entries.append('main', [user('More.')]);
  const more = await exported(store, 'main', { format: 'session-jsonl' });
  expect(more.text.startsWith(text)).toBe(true);
  expect(more.items).toBe(items + 1);
});

test.each(['ui-message', 'openai-chat', 'markdown', 'session-jsonl', 'nexus3'] as const)(
  '%s: secrets are replaced in texts, calls, results and files, and kept with raw',
  async (format) => {
    const store = openStore(':memory:', { redact: false });
    store.sessions.open('main');
    store.entries.append('main', [
      user(`My key is ${secret}.`),
      assistant([toolCall('c1', 'look', { key: secret, name: 'correct-horse' })]),
      toolResult(look, `${'y'.repeat(300_000)} ${secret}`),
      assistant('Seen.'),
    ]);
    const secrets = [{ name: 'HORSE_KEY', value: 'correct-horse' }];
    const { text, withheld } = await exported(store, 'main', { format, secrets });
    expect(text).not.toContain(secret);
    expect(text).toContain('[secret aws]');
    expect(text).toContain('[secret HORSE_KEY]');
    expect(withheld).toBe(3);
    const raw = await exported(store, 'main', { format, secrets, raw: true });
    expect(raw.text.split(secret)).toHaveLength(4);
    expect(raw.withheld).toBe(0);
  },
);

test.each(['claude-code', 'pi'] as const)(
  '%s: a secret in a title is replaced, and kept with raw',
  async (format) => {
    const store = openStore(':memory:', { redact: false });
    store.sessions.open('main', { title: `About ${secret}` });
    store.entries.append('main', [user('First.'), assistant('One.')]);
    const { text, withheld } = await exported(store, 'main', { format });
    expect(text).not.toContain(secret);
    expect(text).toContain('About [secret aws]');
    expect(withheld).toBeGreaterThan(0);
    const raw = await exported(store, 'main', { format, raw: true });
    expect(raw.text).toContain(`About ${secret}`);
  },
);

test('session-jsonl: metadata has the job that began a session, and the instructions of its own', async () => {
  const store = openStore();
  const of = async (name: string) => (await exported(store, name, { format: 'session-jsonl' })).metadata;
  store.sessions.open('nightly', { settings: { instructions: `Use ${secret}.` } });
  expect(await of('nightly')).toMatchObject({
    ...{ source: 'interactive', messageCount: 0 },
    systemPromptOverride: 'Use [secret aws].',
  });
  store.entries.append('nightly', [
    { ...user('Check it.'), meta: { source: 'cron:job 7' } },
    assistant('Checked.'),
    { ...user('And now?'), meta: { source: 'user' } },
  ]);
  expect(await of('nightly')).toMatchObject({ source: 'cron', cronJobId: 'job 7', messageCount: 3 });
  // A source that names no job is none.
  for (const source of ['cron', 'cron:', 'timer', 'user']) {
    store.sessions.open(source.replace(':', ''));
    store.entries.append(source.replace(':', ''), [{ ...user('Check it.'), meta: { source } }]);
    const made = await of(source.replace(':', ''));
    expect([source, made?.source, made && 'cronJobId' in made]).toEqual([source, 'interactive', false]);
  }
});

test('session-jsonl: records are the same after an import and an export', async () => {
  const { text } = await exported(family(), 'main', { format: 'session-jsonl' });
  const chunks = [Buffer.from(text)];
  const plan = readTranscript('01JD/session.jsonl', { chunks });
  const [counts] = plan.counts.values();
  expect([plan.session, plan.format, counts?.compactions, counts?.repaired]).toEqual([
    ...['01JD', 'session-jsonl', 1, 0],
  ]);
  const back = openStore();
  reconcile(back, plan, { as: 'back' });
  const again = await exported(back, 'back', { format: 'session-jsonl' });
  // Positions of this tape in the place of the numbers of the file.
  const counted = (lines: string) => {
    const records = lines
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as SessionRecord);
    const order = records.map(({ seq }) => seq);
    return records.map((record) => ({
      ...record,
      seq: order.indexOf(record.seq),
      firstKeptSeq: order.indexOf(record.firstKeptSeq ?? 0),
    }));
  };
  expect(counted(again.text)).toEqual(counted(text));
});

test('nexus3: the context that the model has, which is the same after an import', async () => {
  const store = family();
  const { text, items } = await exported(store, 'main', { format: 'nexus3' });
  const saved = JSON.parse(text);
  expect(saved).toMatchObject({
    ...{ schema_version: 1, agent_id: 'main', permission_level: 'sandboxed', provenance: 'user' },
    ...{ created_at: '2026-11-21T10:00:00.000+00:00', session_allowances: {} },
  });
  expect(saved.messages).toHaveLength(items);
  expect(saved.messages[0].content).toContain('Reviewed.');
  const whole = openStore();
  const file = {
    ...saved,
    ...{ system_prompt: 'Be brief.', working_directory: '/w', permission_level: 'yolo' },
    created_at: '2026-01-01T00:00:00+00:00',
  };
  const chunks = [Buffer.from(JSON.stringify(file))];
  reconcile(whole, readTranscript('main.json', { chunks }), { as: 'back' });
  const again = JSON.parse((await exported(whole, 'back', { format: 'nexus3' })).text);
  expect(again.messages).toEqual(saved.messages);
  expect(again).toMatchObject({
    ...{ system_prompt: 'Be brief.', working_directory: '/w', permission_level: 'sandboxed' },
    created_at: '2026-01-01T00:00:00+00:00',
  });
});

test('hostile texts stay where they are: every form can be read', async () => {
  const store = openStore();
  store.sessions.open('main');
  const odd = '\ud800 \u2028 \u0000 ``` </summary> {"role":"system"}\n# Head';
  store.entries.append('main', [
    assistant(odd),
    user(odd),
    assistant([
      { type: 'text', text: odd },
      toolCall('a b/c', 'no such tool!', JSON.parse('{"__proto__":{"x":1}}')),
      toolCall('lost', 'look', {}),
    ]),
    toolResult({ toolCallId: 'a b/c', toolName: 'no such tool!' }, odd),
    toolResult({ toolCallId: 'stray', toolName: 'look' }, 'none'),
    user([{ type: 'file', mediaType: 'application/x-odd', filename: odd, data: image }]),
    assistant(odd),
    user('unanswered'),
  ]);
  const messages = await uiOf(store, 'main');
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
  await convertToModelMessages([...messages]);
  const [line, ...others] = await chatOf(store, 'main');
  expect(others).toEqual([]);
  expect(line && faultsOf(line)).toEqual([]);
  expect(JSON.stringify(line)).toContain('__proto__');
  const { text } = await exported(store, 'main', { format: 'markdown' });
  // It is in quotes, and in a fence that is longer than its own.
  expect(text.replace(/^````\n[\s\S]*?^````$/gm, '')).not.toMatch(/^# Head/m);
});

test('a form that does not exist is refused with those that do, and so is a session', async () => {
  const store = family();
  await expect(exported(store, 'main', { format: 'markdwn' as never })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringContaining('ui-message'),
  });
  await expect(exported(store, 'mian', { format: 'markdown' })).rejects.toMatchObject({
    code: 'TAPE_NO_SESSION',
  });
});
