import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { type DeckOptions, recorded } from '@tapedeck/runtime';
import { generateText, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import {
  type ChatAnswer,
  type ChatRequest,
  lastUserText,
  startProvider,
  startWholeProvider,
} from '../support/provider.ts';
import { eventsOf } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

type Line = Readonly<Record<string, unknown>> & { readonly type: string; readonly call: string };

/** A deck on a home, whose models are a server that answers so. */
async function served(
  answer: (request: ChatRequest, index: number) => ChatAnswer,
  options: Partial<DeckOptions> = {},
) {
  const home = tempHome();
  const provider = await startProvider(answer);
  const env = { ...provider.env, ...options.env };
  const deck = await openDeck({
    home: home.path,
    model: 'openai-compatible/test-model',
    record: 'raw',
    ...options,
    env,
  });
  const fileOf = (id: string) => home.file(`logs/${id}/raw.jsonl`);
  return {
    home,
    provider,
    deck,
    fileOf,
    textOf: (id: string) => readFileSync(fileOf(id), 'utf8'),
    linesOf: (id: string): Line[] =>
      readFileSync(fileOf(id), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
      home[Symbol.dispose]();
    },
  };
}

/** The text that the pieces of an answer have. */
const said = (lines: readonly Line[]) =>
  lines
    .flatMap(({ chunk }) => (chunk as { choices?: { delta?: { content?: string } }[] })?.choices ?? [])
    .map(({ delta }) => delta?.content ?? '')
    .join('');

const warnings = async (run: AsyncIterable<{ readonly type: string; readonly message?: unknown }>) =>
  (await eventsOf(run)).flatMap((event) => (event.type === 'warning' ? [event.message] : []));

test('sessions that run at once have each what the server got from them, and what it answered', async () => {
  const names = Array.from({ length: sized(3, 5, 50) }, (_, i) => `s${i}`);
  await using s = await served((request) => ({
    text: ['You said ', lastUserText(request), '.'],
    pauseMs: 2,
  }));
  const sessions = await Promise.all(names.map((name) => s.deck.session(name)));
  await Promise.all(sessions.map((session) => session.run(`hello from ${session.name}`)));
  await Promise.all(sessions.map((session) => session.run(`again from ${session.name}`)));
  await s.deck.close();
  expect(readdirSync(s.home.file('logs')).sort()).toEqual(sessions.map(({ id }) => id).sort());
  for (const { id, name } of sessions) {
    const lines = s.linesOf(id);
    const requests = lines.filter(({ type }) => type === 'request');
    const sent = s.provider.requests.filter((request) => JSON.stringify(request).includes(`from ${name}"`));
    expect(requests.map(({ body }) => body)).toEqual(sent);
    expect(requests).toHaveLength(2);
    for (const [i, { call, provider, model }] of requests.entries()) {
      expect({ provider, model }).toEqual({ provider: 'openai-compatible.chat', model: 'test-model' });
      const own = lines.filter((line) => line.call === call);
      expect(said(own)).toBe(`You said ${i === 0 ? 'hello' : 'again'} from ${name}.`);
      expect(own.map(({ type }) => type).filter((type) => type !== 'piece')).toEqual([
        'request',
        'response',
        'end',
      ]);
      expect(own[1]?.headers).toMatchObject({ 'content-type': 'text/event-stream' });
      expect(own.map(({ at }) => String(at))).toEqual(
        own.map(({ at }) => new Date(String(at)).toISOString()).sort(),
      );
    }
    expect(statSync(s.fileOf(id)).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(s.fileOf(id))).mode & 0o777).toBe(0o700);
  }
  expect(statSync(s.home.file('logs')).mode & 0o777).toBe(0o700);
});

test('no secret is in the file: one that is known, one that comes in pieces, one of a tool, one in an error', async () => {
  const known = 'kx-93b1-77f2-sesame';
  const token = 'npm_Zm9yIHRoaXMgcGFnZSBvbmx5LCBub3QgcmVh';
  await using s = await served(
    (_, index) =>
      index === 0
        ? {
            text: ['It is kx-93', 'b1-77f2-', 'sesame, or npm_Zm9yIHRoaXMgcG', 'FnZSBvbmx5LCBub3QgcmVh .'],
            calls: [{ name: 'look', arguments: {} }],
          }
        : index === 1
          ? { status: 400, message: `the key ${known} is refused` }
          : { text: 'Done.' },
    {
      env: { SEARCH_TOKEN: known },
      tools: { look: tool({ inputSchema: z.object({}), execute: async () => `token: ${token}` }) },
    },
  );
  const main = await s.deck.session('main');
  expect(await main.run(`Is it ${known}?`)).toMatchObject({ finish: 'error' });
  await s.deck.close();
  const text = s.textOf(main.id);
  const lines = s.linesOf(main.id);
  const joined = said(lines);
  for (const shown of [text, joined]) {
    for (const secret of [known, token, s.provider.env.OPENAI_API_KEY]) expect(shown).not.toContain(secret);
    expect(shown).toMatch(/\[secret SEARCH_TOKEN\]/);
  }
  expect(joined).toBe('It is [secret SEARCH_TOKEN], or [secret npm] .');
  expect(lines.at(-1)).toMatchObject({
    type: 'error',
    status: 400,
    message: expect.stringContaining('is refused'),
  });
  const [, refused] = lines.filter(({ type }) => type === 'request');
  expect(refused?.body).toMatchObject({
    messages: expect.arrayContaining([expect.objectContaining({ role: 'tool' })]),
  });
});

test.each(['a file', 'a link', 'a pipe', 'a second name', 'a link for its directory'] as const)(
  '%s in the place of the file is left as it is, and the run has a warning',
  async (what) => {
    await using s = await served(() => ({ text: 'Fine.' }));
    const main = await s.deck.session('main');
    const aside = s.home.file('aside');
    const dir = dirname(s.fileOf(main.id));
    if (what === 'a file') writeFileSync(s.home.file('logs'), 'mine');
    else if (what === 'a link for its directory') {
      mkdirSync(aside);
      mkdirSync(s.home.file('logs'));
      symlinkSync(aside, dir);
    } else {
      mkdirSync(dir, { recursive: true });
      if (what === 'a pipe') execFileSync('mkfifo', [s.fileOf(main.id)]);
      else {
        writeFileSync(aside, 'mine');
        (what === 'a link' ? symlinkSync : linkSync)(aside, s.fileOf(main.id));
      }
    }
    const run = main.run('Go');
    expect(await run).toMatchObject({ text: 'Fine.', finish: 'stop' });
    expect(await warnings(run)).toEqual([expect.stringMatching(/^cannot keep the raw traffic of 'main': /)]);
    // Once is enough.
    const again = main.run('Go');
    expect(await again).toMatchObject({ finish: 'stop' });
    expect(await warnings(again)).toEqual([]);
    if (what === 'a file') expect(readFileSync(s.home.file('logs'), 'utf8')).toBe('mine');
    else if (what === 'a link for its directory') expect(readdirSync(aside)).toEqual([]);
    else if (what !== 'a pipe') expect(readFileSync(aside, 'utf8')).toBe('mine');
  },
);

test('a file that is full becomes the earlier one, and a part of a line is ended first', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  const main = await s.deck.session('main');
  const file = s.fileOf(main.id);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '{"type":"requ');
  await main.run('One');
  const [torn, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(torn).toBe('{"type":"requ');
  expect(lines.map((line) => JSON.parse(line).type)).toContain('request');
  truncateSync(file, 64 * 1024 * 1024);
  await main.run('Two');
  expect(statSync(file.replace('raw.jsonl', 'raw.1.jsonl')).size).toBe(64 * 1024 * 1024);
  expect(s.linesOf(main.id)[0]).toMatchObject({ type: 'request' });
  expect(readdirSync(dirname(file)).sort()).toEqual(['raw.1.jsonl', 'raw.jsonl']);
});

test('a session that was made so keeps it with all below it, unless the deck keeps none', async () => {
  await using s = await served(() => ({ text: 'Fine.' }), { record: undefined as never });
  const kept = await s.deck.session('kept', { record: 'raw' });
  const other = await s.deck.session('other');
  await other.run('Go');
  const [outcome] = await kept.delegate({ task: 'Look', name: 'kid' });
  expect(outcome?.text).toBe('Fine.');
  const kid = await s.deck.find('kid');
  expect(readdirSync(s.home.file('logs'))).toEqual([kid?.id]);
  await using none = await openDeck({
    home: s.home.path,
    model: 'openai-compatible/test-model',
    env: s.provider.env,
    record: 'none',
  });
  await (await none.session('kept')).run('Go');
  expect(existsSync(s.fileOf(kept.id))).toBe(false);
});

test('an application with a loop of its own and no stream keeps it, too; an answer that is not read to its end is cut', async () => {
  await using s = await served(() => ({ text: 'Fine.', hang: true }));
  const main = await s.deck.session('main');
  await using whole = await startWholeProvider(() => ({ text: 'Whole.' }));
  await using deck = await openDeck({ home: s.home.path, env: whole.env, record: 'raw' });
  const model = await recorded(await deck.session('main'), 'openai-compatible/test-model');
  expect((await generateText({ model, prompt: 'Go' })).text).toBe('Whole.');
  await deck.close();
  const [request, response, ...rest] = s.linesOf(main.id);
  expect(request?.body).toEqual(whole.requests[0]);
  expect(response?.body).toMatchObject({ choices: [{ message: { content: 'Whole.' } }] });
  expect(rest.map(({ type }) => type)).toEqual(['end']);
  const stop = new AbortController();
  const run = main.run('Go', { signal: stop.signal });
  for await (const event of run) if (event.type === 'content-chunk') stop.abort();
  expect(await run).toMatchObject({ finish: 'aborted' });
  await s.deck.close();
  expect(s.linesOf(main.id).at(-1)?.type).toMatch(/^(?:cut|error)$/);
  expect(said(s.linesOf(main.id))).toBe('Fine.');
});

test('a deck without a home keeps nothing, and says so', async () => {
  using home = tempHome();
  using store = home.open();
  await using provider = await startProvider(() => ({ text: 'Fine.' }));
  await using deck = await openDeck({
    store,
    model: 'openai-compatible/m',
    env: provider.env,
    record: 'raw',
  });
  const run = (await deck.session('main')).run('Go');
  expect(await run).toMatchObject({ text: 'Fine.' });
  expect(await warnings(run)).toEqual([
    "cannot keep the raw traffic of 'main': the deck has a store and no home",
  ]);
});
