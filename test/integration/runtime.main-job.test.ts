import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ChildOutcome } from '@tapedeck/runtime';
import type { Entry, JsonObject, SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { json } from '../support/cli.ts';
import { openDeck } from '../support/deck.ts';
import { type ChatAnswer, isAfterTools, lastUserText, startProvider } from '../support/provider.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

// Real transcripts, read in place: they are not part of the project.
const samples = fileURLToPath(new URL('../../../shared/samples/claude-code/', import.meta.url));
const shipped = fileURLToPath(new URL('../../packages/cli/demo/transcript.jsonl', import.meta.url));

const tasks = [
  { task: 'Check the docs: which pages are out of date?' },
  { task: 'Check the tests: which of them fail?' },
] as const;

/** Two tools over an invented project. */
const tools = {
  list_pages: tool({
    description: 'List the pages of the docs',
    inputSchema: z.object({ folder: z.string() }),
    execute: async ({ folder }) => [`${folder}/intro.md`, `${folder}/api.md`],
  }),
  run_tests: tool({
    description: 'Run the tests that match',
    inputSchema: z.object({ match: z.string() }),
    execute: async ({ match }) => ({ match, passed: 211, failed: ['invoice rounding'] }),
  }),
};

/** Each child calls both tools at once, in one answer, and then reports. */
function answerTo(request: Parameters<Parameters<typeof startProvider>[0]>[0]): ChatAnswer {
  const asked = lastUserText(request);
  // The parent's own question is in one message with the reports before it.
  if (asked.includes('Sum it up')) return { text: 'Both reports are in.' };
  const about = /Check the (?:docs|tests)/.exec(asked)?.[0] ?? 'nothing';
  if (isAfterTools(request)) return { text: [`${about}: `, 'one thing ', 'found.'], usage: [300, 12] };
  return {
    text: 'Let me look.',
    calls: [
      { name: 'list_pages', arguments: { folder: 'docs' } },
      { name: 'run_tests', arguments: { match: about } },
    ],
    usage: [200, 30],
    delayMs: 150,
  };
}

const jobs = [
  { file: 'the demo’s transcript', path: shipped },
  {
    file: 'entire-small-fork.jsonl (skipped unless ../shared/samples is there)',
    path: `${samples}entire-small-fork.jsonl`,
  },
  {
    file: 'entire-orphan-tooluse.jsonl (skipped unless ../shared/samples is there)',
    path: `${samples}entire-orphan-tooluse.jsonl`,
  },
];

describe.each(sized(jobs.slice(0, 1), jobs, jobs))('the main job on $file', ({ path }) => {
  test.skipIf(!existsSync(path))('delegates in parallel, merges once each, and proves it', async () => {
    using home = tempHome();
    await using provider = await startProvider(answerTo);
    const here = (...args: string[]) => home.here(args);

    const imported = json(await here('import', path, '--as', 'main', '--json'));
    expect(imported).toMatchObject({ names: expect.arrayContaining(['main']) });
    expect(await here('import', path, '--as', 'main', '--json').then(json)).toMatchObject({ entries: 0 });
    const anchored = json(await here('anchor', 'main', 'task-start', '--state', '{"goal":"2.4"}', '--json'));
    const before = Number(anchored.seq);

    const outcomes = await delegateBoth(home, provider.env);
    expect(outcomes.map(({ status, text }) => [status, text])).toEqual([
      ['completed', 'Check the docs: one thing found.'],
      ['completed', 'Check the tests: one thing found.'],
    ]);
    expect(provider.most()).toBe(2);
    expect(provider.requests).toHaveLength(4);

    using store = home.open();
    checkParent(store, outcomes, before);
    for (const [i, { session }] of outcomes.entries())
      checkChild(store, { session, task: tasks[i]?.task ?? '', base: before });
    checkGraph(home, outcomes, before);
    store.close();

    expect(await here('verify', '--json')).toMatchObject({ code: 0 });
    await checkRepeat(home, outcomes);
    await checkParentGoesOn(home, provider.env);
    expect(provider.refusals).toEqual([]);
    const [question = ''] = provider.requests.slice(-1).map(lastUserText);
    for (const { text } of outcomes) expect(question).toContain(text);
    for (const session of ['main', ...outcomes.map((o) => o.session)]) await checkDamage(home, session);
  });
});

async function delegateBoth(home: TempHome, env: Record<string, string>): Promise<readonly ChildOutcome[]> {
  await using deck = await openDeck({
    home: home.path,
    tools,
    model: 'openai-compatible/test-model',
    env,
    instructions: 'Be short.',
  });
  const main = await deck.session('main');
  return await main.delegate(tasks, { inherit: { since: 'task-start' } });
}

/** At the parent's tail: for each child one merge anchor and one message, and nothing else. */
function checkParent(store: SqliteTapeStore, outcomes: readonly ChildOutcome[], before: number): void {
  const tail = [...store.entries.read('main', { from: before + 1 })];
  expect(tail).toHaveLength(2 * outcomes.length);
  for (const { session, merged, text } of outcomes) {
    const at = tail.findIndex((e) => e.name === `merge/${session}`);
    const mark = tail[at];
    const message = tail[at + 1];
    expect(tail.filter((e) => e.name === `merge/${session}`)).toHaveLength(1);
    expect(mark).toMatchObject({ kind: 'anchor', mark: 'anchor', seq: merged?.seq });
    expect(mark?.payload).toMatchObject({
      state: {
        session,
        status: 'completed',
        range: merged?.range,
        usage: { input: 500, output: 42 },
      },
    });
    expect(message).toMatchObject({ kind: 'message', meta: { source: 'merge', session } });
    expect(JSON.stringify(message?.payload)).toContain(text);
  }
}

/** The child's own tape has all that it did, in order. */
function checkChild(
  store: SqliteTapeStore,
  { session, task, base }: { session: string; task: string; base: number },
): void {
  const own = [...store.entries.read(session, { own: true })];
  expect(own.map(labelOf)).toEqual([
    'fork/start',
    'intention',
    'assistant text,tool-call,tool-call',
    'result list_pages json',
    'result run_tests json',
    'assistant text',
  ]);
  expect(own.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6].map((n) => base + n));
  const [, intention, asked, pages, tests, said] = own;
  expect(intention?.payload).toMatchObject({ state: { next_steps: task } });
  const calls = partsOf(asked).filter(({ type }) => type === 'tool-call');
  expect(calls.map(({ toolCallId }) => toolCallId)).toEqual(
    [pages, tests].map((e) => isObject(e?.payload) && e.payload.toolCallId),
  );
  expect(tests?.payload).toMatchObject({ output: { type: 'json', value: { passed: 211 } } });
  const usage = { input: 200, output: 30, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  expect(asked?.meta).toMatchObject({ step: 1, model: 'test-model', finish: 'tool-calls', usage });
  expect(said?.meta).toMatchObject({ step: 2, finish: 'stop', usage: { ...usage, input: 300, output: 12 } });
  expect(new Set(own.slice(2).map(({ meta }) => meta.run)).size).toBe(1);
  expect(store.sessions.find(session)).toMatchObject({
    task: 'completed',
    delivery: 'merged',
    parent: 'main',
  });
}

function labelOf(entry: Entry): string {
  const { kind, payload } = entry;
  if (!isObject(payload)) return kind;
  if (kind === 'message')
    return `${payload.role} ${partsOf(entry)
      .map((p) => p.type)
      .join()}`;
  if (kind === 'tool-result' && isObject(payload.output))
    return `result ${payload.toolName} ${payload.output.type}`;
  return entry.name ?? kind;
}

function partsOf(entry: Entry | undefined): readonly JsonObject[] {
  const payload = entry?.payload;
  return isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
}

/** The graph file has, for each child, one line of its fork and one of its merge. */
function checkGraph(home: TempHome, outcomes: readonly ChildOutcome[], before: number): void {
  const lines = home.lines();
  for (const { session, merged } of outcomes) {
    const own = lines.filter((line) => line.session_id === session);
    const [fork, ...forks] = own.filter(({ type }) => type === 'fork');
    const [merge, ...merges] = own.filter(({ type }) => type === 'merge');
    expect([...forks, ...merges]).toEqual([]);
    expect(fork).toMatchObject({ parent_session_id: 'main', from_anchor: 'task-start', base: before });
    expect(fork).toMatchObject({ status: 'active', range: null });
    expect(merge).toMatchObject({ into_session_id: 'main', seq: merged?.seq, status: 'merged' });
    expect(merge).toMatchObject({ range: merged?.range, task: 'completed' });
  }
  expect(lines.map(({ g }) => g)).toEqual(lines.map((_, i) => i + 1));
}

/** Merging what is merged answers with the same receipt, and no byte of the home changes. */
async function checkRepeat(home: TempHome, outcomes: readonly ChildOutcome[]): Promise<void> {
  const bytes = fileDigests(home);
  for (const { session, merged } of outcomes) {
    const again = await home.here(['merge', session, '--json']);
    expect(json(again)).toMatchObject({ state: 'merged', seq: merged?.seq, repeated: true });
  }
  expect(fileDigests(home)).toEqual(bytes);
}

/** SQLite's index of its log is no content, and neither is a log that is empty. */
function fileDigests(home: TempHome): Record<string, string> {
  return Object.fromEntries(
    readdirSync(home.path, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name)
      .sort()
      .map((name) => [name, readFileSync(home.file(name))] as const)
      .filter(([name, bytes]) => !name.endsWith('-shm') && bytes.length > 0)
      .map(([name, bytes]) => [name, createHash('sha256').update(bytes).digest('hex')]),
  );
}

/** The request for the parent's next answer has the whole history, both reports in it; the server is strict. */
async function checkParentGoesOn(home: TempHome, env: Record<string, string>): Promise<void> {
  await using deck = await openDeck({
    home: home.path,
    tools,
    model: 'openai-compatible/test-model',
    env,
  });
  const main = await deck.session('main');
  const { text, finish } = await main.run('Thank you. Sum it up.');
  expect([finish, text]).toEqual(['stop', 'Both reports are in.']);
}

/** One changed byte of one entry is found, and named. */
async function checkDamage(home: TempHome, session: string): Promise<void> {
  const db = new Database(home.db);
  const damaged = db
    .prepare<[string], { id: number; seq: number; payload: string }>(
      `SELECT e.id, seq, payload FROM entry e JOIN tape t ON t.id = e.tape_id
         WHERE t.name = ? AND e.kind = 'message' ORDER BY seq DESC LIMIT 1`,
    )
    .get(session);
  const triggers = db
    .prepare<[], { name: string; sql: string }>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'entry'",
    )
    .all();
  const rewrite = (payload: string | undefined) => {
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
    db.prepare('UPDATE entry SET payload = ? WHERE id = ?').run(payload, damaged?.id);
    for (const { sql } of triggers) db.exec(sql);
  };
  const text = damaged?.payload ?? '';
  const at = text.lastIndexOf('e');
  rewrite(`${text.slice(0, at)}E${text.slice(at + 1)}`);
  const found = await home.here(['verify', '--json']);
  expect(found.code).toBe(5);
  const { ok, problems } = json<{ ok: boolean; problems: readonly { code: string }[] }>(found);
  expect(problems.filter(({ code }) => code !== 'merge-contradicted')).toHaveLength(1);
  expect({ ok, problems }).toMatchObject({
    ok: false,
    // A merge of the changed answer contradicts it, too.
    problems: expect.arrayContaining([
      expect.objectContaining({ code: 'entry-changed', session, seq: damaged?.seq }),
    ]),
  });
  rewrite(text);
  db.close();
  expect(await home.here(['verify', '--json'])).toMatchObject({ code: 0 });
}
