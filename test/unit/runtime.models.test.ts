import { writeFileSync } from 'node:fs';
import { resolveModel } from '@tapedeck/runtime';
import { parseScript } from '@tapedeck/runtime/testing';
import { MockLanguageModelV4 } from 'ai/test';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

test.each([
  { spec: 'openai-compatible/m', env: {}, code: 'SESSION_NO_KEY', says: 'OPENAI_BASE_URL is not set' },
  {
    spec: 'openai-compatible/m',
    env: { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' },
    code: 'SESSION_NO_KEY',
    says: 'OPENAI_API_KEY is not set',
  },
  {
    spec: 'openai-compatible/m',
    env: { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_API_KEY: '' },
    code: 'SESSION_NO_KEY',
    says: 'OPENAI_API_KEY is not set',
  },
  { spec: 'acme/m', env: {}, code: 'SESSION_NO_KEY', says: 'AI_GATEWAY_API_KEY is not set' },
  { spec: 'constructor/m', env: {}, code: 'SESSION_NO_KEY', says: "'constructor/m': AI_GATEWAY_API_KEY is" },
  { spec: 'gpt-oss', env: {}, code: 'SESSION_NO_MODEL', says: 'PROVIDER/MODEL or script:FILE' },
  { spec: 'openai-compatible/', env: {}, code: 'SESSION_NO_MODEL', says: 'PROVIDER/MODEL' },
  { spec: '/m', env: {}, code: 'SESSION_NO_MODEL', says: 'PROVIDER/MODEL' },
  { spec: '', env: {}, code: 'SESSION_NO_MODEL', says: 'PROVIDER/MODEL' },
  { spec: 'script:/no/such/file', env: {}, code: 'SESSION_NO_FILE', says: "'/no/such/file'" },
  { spec: 'script:/', env: {}, code: 'SESSION_NO_FILE', says: "'/'" },
])('model $spec cannot be used ($says), and nothing is written', async ({ spec, env, code, says }) => {
  using store = openStore();
  await using deck = await openDeck({ store, env });
  const main = await deck.session('main');
  await expect(main.run('Hi', { model: spec })).rejects.toMatchObject({
    code,
    message: expect.stringContaining(says),
  });
  await expect(main.delegate({ task: 'Do it' }, { model: spec })).rejects.toMatchObject({ code });
  expect(entryLines(store.entries.read('main'))).toEqual(['anchor session/start']);
  expect(store.sessions.list({ all: true })).toHaveLength(1);
  // The session has no owner either.
  expect(store.leases.acquire('main', { id: 'next' })).toMatchObject({ owner: 'next' });
});

test('a name without a provider is refused before anything is posted, forked or rewound', async () => {
  using store = openStore();
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  const refusal = {
    code: 'SESSION_NO_MODEL',
    message: expect.stringContaining("cannot use model 'gpt-5': it must be PROVIDER/MODEL or script:FILE"),
    data: { model: 'gpt-5' },
  };
  const model = 'gpt-5';
  await expect(main.send('Hi', { model })).rejects.toMatchObject({
    ...refusal,
    data: { ...refusal.data, modelFrom: 'message' },
  });
  await expect(main.fork({ model })).rejects.toMatchObject(refusal);
  await expect(main.branch(undefined, { model })).rejects.toMatchObject(refusal);
  await expect(main.rewind(1, { model })).rejects.toMatchObject(refusal);
  expect(entryLines(store.entries.read('main'))).toEqual(['anchor session/start']);
  expect(store.inbox.list('main')).toEqual([]);
  expect(store.sessions.list({ all: true })).toHaveLength(1);
});

test('an error of a model says where its name is configured', async () => {
  using store = openStore();
  const model = 'openai-compatible/m';
  await using deck = await openDeck({ store, model });
  const main = await deck.session('main');
  const refusal = (modelFrom: string, says: string) => ({
    code: 'SESSION_NO_KEY',
    message: `cannot use model '${model}': OPENAI_BASE_URL is not set (the model comes from ${says})`,
    data: { model, variable: 'OPENAI_BASE_URL', modelFrom },
  });
  await expect(main.run('Hi')).rejects.toMatchObject(refusal('deck', 'the deck'));
  await expect(main.run('Hi', { model })).rejects.toMatchObject(refusal('run', 'the options of the run'));
  await using placed = await openDeck({ store, model, modelFrom: '$TAPE_MODEL' });
  await expect((await placed.session('main')).run('Hi')).rejects.toMatchObject(
    refusal('$TAPE_MODEL', '$TAPE_MODEL'),
  );
  await main.send('Hi', { model });
  await using usable = await openDeck({ store, model: new MockLanguageModelV4() });
  await expect((await usable.session('main')).run()).resolves.toMatchObject({
    finish: 'error',
    error: refusal('message', 'the message'),
  });
  const child = await main.fork({ model, inherit: 'nothing' });
  await expect(child.run('Hi')).rejects.toMatchObject(refusal('session', 'the session'));
});

test('a run without any model is refused before anything is written', async () => {
  using store = openStore();
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  await expect(main.run('Hi')).rejects.toMatchObject({ code: 'SESSION_NO_MODEL', data: { session: 'main' } });
  await expect(main.delegate([{ task: 'Do it' }])).rejects.toMatchObject({ code: 'SESSION_NO_MODEL' });
  expect(store.sessions.find('main')).toMatchObject({ head: 1 });
});

test.each([
  ['not JSON', '[{'],
  ['no array', '{"text":"hi"}'],
  ['an unknown field', '[{"txt":"hi"}]'],
  ['a wrong text', '[{"text":5}]'],
  ['a call without a name', '[{"toolCalls":[{"input":{}}]}]'],
  ['an unknown condition', '[{"text":"hi","when":{"model":"x"}}]'],
  ['a negative delay', '[{"text":"hi","delayMs":-1}]'],
])('a script with %s is refused by name', async (_, text) => {
  using dir = tempDir();
  writeFileSync(dir.file('answers.json'), text);
  using store = openStore();
  await expect(resolveModel(`script:${dir.file('answers.json')}`, { store })).rejects.toMatchObject({
    code: 'SESSION_BAD_SCRIPT',
    message: expect.stringContaining('answers.json'),
  });
  expect(() => parseScript(text, 'inline')).toThrow(expect.objectContaining({ code: 'SESSION_BAD_SCRIPT' }));
});

test('answers are given in order, each once, and an exhausted script is a typed error', async () => {
  await using home = await scriptedDeck([{ text: 'one' }, { text: 'two' }]);
  const main = await home.deck.session('main');
  expect(await main.run('1')).toMatchObject({ text: 'one' });
  expect(await main.run('2')).toMatchObject({ text: 'two' });
  const ended = await main.run('3');
  expect(ended).toMatchObject({ finish: 'error', error: { code: 'SESSION_SCRIPT_ENDED' } });
  expect(ended.error?.data).toMatchObject({ session: 'main', answered: 2 });
  // The failure is on the tape, and asking again fails again.
  expect(await main.run()).toMatchObject({ error: { code: 'SESSION_SCRIPT_ENDED' } });
  expect(entryLines(home.store.entries.read('main')).slice(-2)).toEqual([
    'event run/error',
    'event run/error',
  ]);
});

test('a script keeps no state: another process continues where the tape ends', async () => {
  using home = tempHome();
  const { spec } = await (async () => {
    await using first = await scriptedDeck([]);
    return { spec: first.script([]) };
  })();
  expect(spec).toMatch(/^script:/);
  writeFileSync(
    home.file('answers.json'),
    JSON.stringify([{ text: 'one' }, { text: 'two' }, { text: 'three' }]),
  );
  const model = `script:${home.file('answers.json')}`;
  for (const text of ['one', 'two', 'three']) {
    await using deck = await openDeck({ home: home.path, model });
    expect(await (await deck.session('main')).run('next')).toMatchObject({ text });
  }
});

test('every session has its own place in a script', async () => {
  await using home = await scriptedDeck([{ text: 'one' }, { text: 'two' }]);
  const [a, b] = [await home.deck.session('a'), await home.deck.session('b')];
  expect(await a.run('x')).toMatchObject({ text: 'one' });
  expect(await b.run('x')).toMatchObject({ text: 'one' });
  expect(await a.run('x')).toMatchObject({ text: 'two' });
});

test('a fork answers from the beginning: calls that it inherited do not count', async () => {
  await using home = await scriptedDeck([{ text: 'one' }, { text: 'two' }]);
  const main = await home.deck.session('main');
  await main.run('x');
  const child = await main.fork({ name: 'child' });
  expect(await child.run('x')).toMatchObject({ text: 'one' });
});

test('an answer may apply to one session and to a text of the last user message', async () => {
  await using home = await scriptedDeck([
    { text: 'for workers', when: { session: 'worker-*' } },
    { text: 'about cats', when: { text: 'cat' } },
    { text: 'about cats in main', when: { session: 'main', text: 'cat' } },
    { text: 'anything' },
  ]);
  const main = await home.deck.session('main');
  const worker = await home.deck.session('worker-1');
  expect(await worker.run('a cat')).toMatchObject({ text: 'for workers' });
  expect(await main.run('a dog')).toMatchObject({ text: 'anything' });
  expect(await main.run('a cat')).toMatchObject({ text: 'about cats' });
  expect(await main.run('a cat')).toMatchObject({ text: 'about cats in main' });
  expect(await main.run('a cat')).toMatchObject({ error: { code: 'SESSION_SCRIPT_ENDED' } });
  expect(await worker.run('a dog')).toMatchObject({ text: 'anything' });
});

test('an answer that is an error is given once, as a failed model', async () => {
  await using home = await scriptedDeck([{ error: 'rate limited' }, { text: 'fine' }]);
  const main = await home.deck.session('main');
  expect(await main.run('x')).toMatchObject({ finish: 'error', error: { code: 'SESSION_MODEL_FAILED' } });
  expect(await main.run()).toMatchObject({ finish: 'stop', text: 'fine' });
});

test('calls without an id get one that is unique over all sessions', async () => {
  await using home = await scriptedDeck([
    {
      toolCalls: [
        { name: 'a', input: {} },
        { name: 'a', input: {} },
      ],
    },
    { toolCalls: [{ name: 'a', input: {} }] },
    { text: 'done' },
  ]);
  for (const name of ['one', 'two']) await (await home.deck.session(name)).run('x');
  const ids = ['one', 'two'].flatMap((name) =>
    [...home.store.entries.read(name, { kind: 'tool-result' })].map(({ payload }) =>
      JSON.stringify((payload as { toolCallId: string }).toolCallId),
    ),
  );
  expect(ids).toHaveLength(6);
  expect(new Set(ids).size).toBe(6);
});

test('the delay of an answer ends with the run', async () => {
  await using home = await scriptedDeck([{ text: 'late', delayMs: 60_000 }]);
  const main = await home.deck.session('main');
  const run = main.run('x');
  setTimeout(() => run.abort('no time'), 20);
  expect(await run).toMatchObject({ finish: 'aborted', text: '' });
});
