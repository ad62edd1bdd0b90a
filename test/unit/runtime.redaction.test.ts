import { homedir } from 'node:os';
import type { DeckOptions } from '@tapedeck/runtime';
import { openTapeStore, type Redact } from '@tapedeck/tape';
import { RedactedText, redactorFor, withoutOpenEnd } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { eventsOf, type ScriptedDeck, scriptedDeck, written } from '../support/scripted.ts';
import { tokenShapes, toldSecrets } from '../support/token-shapes.ts';

const [, token = ''] = tokenShapes.find(([name]) => name === 'github') ?? [];
const [, pem = ''] = tokenShapes.find(([name]) => name === 'privatekey') ?? [];
const placeholder = '[secret github]';
const inputSchema = z.object({});

async function deckOf(
  answers: Parameters<typeof scriptedDeck>[0],
  { redact = true, ...options }: Omit<DeckOptions, 'home' | 'store'>,
): Promise<ScriptedDeck> {
  return await scriptedDeck(answers, {
    store: openTapeStore(':memory:', { redact, secrets: [] }),
    env: {},
    redact,
    ...options,
  });
}

function redactor(redact: Redact = 'all') {
  const made = redactorFor(redact);
  if (made === undefined) throw new Error('no redactor');
  return made;
}

test('what a tool returns, yields and throws has no secret: on the tape, in events, and for the next model call', async () => {
  const prompts: string[] = [];
  const tools = {
    read: tool({ inputSchema, execute: () => ({ text: `TOKEN=${token}`, [token]: [token] }) }),
    show: tool({
      inputSchema,
      execute: async function* () {
        for (let end = 1; end <= token.length; end += 5) yield `It is ${token.slice(0, end)}`;
        yield `It is ${token}.`;
      },
    }),
    fail: tool({
      inputSchema,
      execute: (): string => {
        throw new Error(`wrong token: ${token}`);
      },
    }),
  };
  const calls = Object.keys(tools).map((name) => ({ name, input: {} }));
  await using home = await deckOf([{ text: 'I look.', toolCalls: calls }, { text: `It is ${token}.` }], {
    tools,
  });
  const main = await home.deck.session('main');
  const run = main.run('Look.');
  const [chunks, events] = await Promise.all([Array.fromAsync(run.uiStream()), eventsOf(run)]);
  const results = [...home.store.entries.read('main', { kind: 'tool-result' })];
  expect(results.map(({ meta }) => meta.redacted)).toEqual([3, 1, 1]);
  const shown = [...events, ...chunks].filter((one) => /^tool-/.test(one.type));
  for (const text of [...results, ...shown].map((one) => JSON.stringify(one))) {
    prompts.push(text);
    expect(text).not.toContain(token.slice(0, 12));
  }
  expect(prompts.filter((text) => text.includes(placeholder)).length).toBeGreaterThan(5);
  // What a model says stays, unless the configuration says otherwise.
  expect((await run).text).toBe(`It is ${token}.`);
});

test('a call with an id or a name in the form of a secret gets its result, and a chat can read it', async () => {
  const [id, other, later] = ['1', '2', '3'].map((end) => `${token.slice(0, -1)}${end}`) as [
    string,
    string,
    string,
  ];
  const calls = [
    { name: 'read', id, input: {} },
    { name: token, id: other, input: {} },
  ];
  const pays = [{ name: 'pay', id: later, input: {} }];
  const tools = {
    read: tool({ inputSchema, execute: () => `It is ${token}.` }),
    pay: tool({ inputSchema, needsApproval: true, execute: () => `paid with ${token}` }),
  };
  await using home = await deckOf([{ toolCalls: calls }, { toolCalls: pays }, { text: 'Done.' }], { tools });
  const main = await home.deck.session('main');
  expect(await main.run('Go')).toMatchObject({ finish: 'waiting' });
  const { run } = await main.respond(later, { approved: true });
  expect(await run).toMatchObject({ finish: 'stop' });
  const results = [...home.store.entries.read('main', { kind: 'tool-result' })];
  expect(results.map(({ payload }) => payload)).toMatchObject([
    { toolCallId: id, toolName: 'read', output: { value: `It is ${placeholder}.` } },
    { toolCallId: other, toolName: token, output: { value: `Unknown tool '${placeholder}'.` } },
    { toolCallId: later, toolName: 'pay', output: { value: `paid with ${placeholder}` } },
  ]);
  expect(results.map(({ meta }) => meta.redacted)).toEqual([1, 1, 1]);
  const [, answer] = await main.uiMessages();
  expect(answer?.parts.flatMap((part) => ('toolCallId' in part ? [part.state] : []))).toEqual([
    'output-available',
    'output-error',
    'output-available',
  ]);
});

test('with all, neither users nor models write a secret', async () => {
  await using home = await deckOf([{ text: [...`It is ${token} and ${pem}\nDone.`].join('') }], {
    redact: 'all',
    instructions: `Never say ${token}.`,
  });
  const main = await home.deck.session('main', { title: token });
  const run = main.run(`Mine is ${token}.`);
  const [chunks, events] = await Promise.all([Array.fromAsync(run.uiStream()), eventsOf(run)]);
  expect((await run).text).toBe(`It is ${placeholder} and [secret privatekey]\nDone.`);
  expect(JSON.stringify([chunks, events]) + written(home)).not.toContain(token);
  expect(written(home)).not.toContain(pem.split('\n')[1]);
});

test('with false, everything stays', async () => {
  const read = tool({ inputSchema, execute: () => token });
  await using home = await deckOf([{ toolCalls: [{ name: 'read', input: {} }] }, { text: 'Done.' }], {
    tools: { read },
    redact: false,
  });
  await (await home.deck.session('main')).run('Look.');
  expect(written(home)).toContain(token);
});

test('a deck looks for secrets in what it writes to a store of the program that does not', async () => {
  const read = tool({ inputSchema, execute: () => token });
  await using home = await scriptedDeck([{ toolCalls: [{ name: 'read', input: {} }] }, { text: 'Done.' }], {
    store: openTapeStore(':memory:', { redact: false, secrets: [] }),
    tools: { read },
  });
  await (await home.deck.session('main')).run('Look.');
  expect(written(home)).not.toContain(token);
});

test.each(['stream', 'error'])('the %s of a model is redacted in pieces of any size', async (how) => {
  for (const size of [1, 7, 60]) {
    const pieces = `It is ${token} now.`.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    const model = new MockLanguageModelV4({
      doStream: async () => {
        if (how === 'error') throw new Error(`401: ${token}`);
        return {
          stream: simulateReadableStream({
            chunks: [
              { type: 'stream-start' as const, warnings: [] },
              { type: 'text-start' as const, id: 't' },
              ...pieces.map((delta) => ({ type: 'text-delta' as const, id: 't', delta })),
              { type: 'text-end' as const, id: 't' },
              {
                type: 'finish' as const,
                finishReason: { unified: 'stop' as const, raw: 'stop' },
                usage: {
                  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
                  outputTokens: { total: 1, text: 1, reasoning: 0 },
                },
              },
            ],
          }),
        };
      },
    });
    await using home = await deckOf([], {
      model,
      redact: how === 'error' ? true : 'all',
      limits: { retries: 0 },
    });
    const run = (await home.deck.session('main')).run('Hi');
    const events = await eventsOf(run);
    const result = await run;
    if (how === 'stream') expect(result.text).toBe(`It is ${placeholder} now.`);
    expect(JSON.stringify([events, result]) + written(home)).not.toContain(token);
  }
});

test('a text that arrives in pieces is redacted as the whole text is, wherever it is cut', () => {
  const texts = [
    ...tokenShapes.map(([, secret]) => `It is ${secret} and no other.\n`),
    ...toldSecrets.map(([, textOf, secret]) => `Set ${textOf(secret)}\nnow.`),
  ];
  for (const text of texts) {
    const whole = redactor().text(text);
    for (let at = 0; at <= text.length; at += 1) {
      const one = new RedactedText(redactor());
      expect(one.add(text.slice(0, at)) + one.add(text.slice(at)) + one.end()).toBe(whole);
    }
    const each = new RedactedText(redactor());
    const shown = [...text].map((piece) => each.add(piece));
    expect(shown.join('') + each.end()).toBe(whole);
  }
});

test('a word without an end is shown in pieces, and a secret at its end is replaced', () => {
  const text = new RedactedText(redactor());
  const long = 'abcdefghij'.repeat(10_000);
  let shown = '';
  for (let at = 0; at < long.length; at += 100) shown += text.add(long.slice(at, at + 100));
  expect(shown.length).toBeGreaterThan(long.length - 20_000);
  shown += text.add(` ${token}`) + text.end();
  expect(shown).toBe(`${long} ${placeholder}`);
});

test('the open end of a text is left out only if it looks like the beginning of a secret', () => {
  expect(withoutOpenEnd(`It is ${token.slice(0, 10)}`)).toBe('It is […]');
  expect(withoutOpenEnd(`A ${pem.slice(0, 60)}`)).toBe('A […]');
  for (const text of ['It is well', 'src/index.ts', '{"a":1}', '']) expect(withoutOpenEnd(text)).toBe(text);
});

test('reasoning that was changed loses its signature, and other reasoning keeps it', async () => {
  const parts = (text: string, id: string) => [
    { type: 'reasoning-start' as const, id },
    { type: 'reasoning-delta' as const, id, delta: text },
    {
      type: 'reasoning-delta' as const,
      id,
      delta: '',
      providerMetadata: { anthropic: { signature: `of ${id}` } },
    },
    { type: 'reasoning-end' as const, id },
  ];
  const model = new MockLanguageModelV4({
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: 'stream-start' as const, warnings: [] },
          ...parts(`The token is ${token}, I see.`, '1'),
          ...parts('Nothing to see.', '2'),
          { type: 'text-start' as const, id: 't' },
          { type: 'text-delta' as const, id: 't', delta: 'Done.' },
          { type: 'text-end' as const, id: 't' },
          {
            type: 'finish' as const,
            finishReason: { unified: 'stop' as const, raw: 'stop' },
            usage: {
              inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
              outputTokens: { total: 1, text: 1, reasoning: 0 },
            },
          },
        ],
      }),
    }),
  });
  await using home = await deckOf([], { model, redact: 'all' });
  await (await home.deck.session('main')).run('Hi');
  const answer = [...home.store.entries.read('main', { kind: 'message' })].at(-1);
  const { content } = (answer?.payload ?? {}) as { content: { type: string; text: string }[] };
  expect(content.filter(({ type }) => type === 'reasoning')).toEqual([
    { type: 'reasoning', text: `The token is ${placeholder}, I see.` },
    {
      type: 'reasoning',
      text: 'Nothing to see.',
      providerOptions: { anthropic: { signature: 'of 2' } },
    },
  ]);
});

test('a result that cannot be searched is an error result, and the run goes on', async () => {
  const odd = tool({
    inputSchema,
    execute: () => ({
      get text(): string {
        throw new Error(`cannot read ${token}`);
      },
    }),
  });
  await using home = await deckOf([{ toolCalls: [{ name: 'odd', input: {} }] }, { text: 'Done.' }], {
    tools: { odd },
  });
  expect(await (await home.deck.session('main')).run('Look.')).toMatchObject({
    finish: 'stop',
    text: 'Done.',
  });
  expect(written(home)).not.toContain(token);
});

test('an error that a model sees has ~ in the place of the home directory', async () => {
  const home = homedir();
  const fail = tool({
    inputSchema,
    execute: (): string => {
      throw new Error(`ENOENT: no such file, open '${home}/notes.md' (${home}), not ${home}2 or /mnt${home}`);
    },
  });
  await using deck = await deckOf([{ toolCalls: [{ name: 'fail', input: {} }] }, { text: 'Done.' }], {
    tools: { fail },
  });
  await (await deck.deck.session('main')).run('Look.');
  const [result] = [...deck.store.entries.read('main', { kind: 'tool-result' })];
  expect(result?.payload).toMatchObject({
    output: {
      type: 'error-text',
      value: `ENOENT: no such file, open '~/notes.md' (~), not ${home}2 or /mnt${home}`,
    },
  });
});
