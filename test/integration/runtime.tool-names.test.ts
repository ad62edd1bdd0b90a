import type { Part } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { objects } from '../support/provider/chat.ts';
import { type Mode, modeOf, modes } from '../support/provider/modes.ts';
import type { ChatRequest } from '../support/provider/protocol.ts';
import type { Answers } from '../support/provider/server.ts';
import { startProvider } from '../support/provider.ts';
import { eventsOf } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const illegal = [
  'echo<|channel|>commentary',
  'fs.read',
  'read the file',
  'n'.repeat(100),
  '1st',
  '-',
  'é',
  'read\u0000',
  'functions.read:0',
  'constructor',
  '__proto__',
  'toString',
];

const echo = tool({ inputSchema: z.object({ say: z.string() }), execute: async ({ say }) => `said ${say}` });

/** A session whose model is a strict server of a mode. */
async function served(mode: Mode, answer: Answers, names: readonly string[]) {
  const provider = await startProvider(answer, mode.protocol);
  const store = openStore();
  const tools = Object.fromEntries(names.map((name) => [name, echo]));
  const deck = await openDeck({ store, model: mode.model({ baseURL: provider.url }), tools });
  return {
    provider,
    main: await deck.session('main'),
    called: () =>
      [...store.entries.read('main')]
        .filter(({ meta }) => typeof meta.response === 'string')
        .flatMap(({ payload }) => (payload as { content: readonly Part[] }).content)
        .flatMap(({ toolName }) => toolName ?? []),
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      store.close();
      await provider[Symbol.asyncDispose]();
    },
  };
}

/** The names of the tools that a request offers. */
function offeredBy({ tools }: ChatRequest): string[] {
  return objects(tools)
    .flatMap((one) =>
      Array.isArray(one.functionDeclarations) ? objects(one.functionDeclarations) : [one.function ?? one],
    )
    .flatMap((one) => (isObject(one) ? String(one.name) : []));
}

describe.each(modes)('$name', (mode) => {
  test('answers after calls of tools whose names it refuses, and the tape keeps the names', async () => {
    const calls = illegal.map((name, i) => ({ id: `c${i}`, name, arguments: { say: 'hi' } }));
    await using s = await served(mode, (_, index) => (index === 0 ? { calls } : { text: 'Fine.' }), ['echo']);
    const { finish, text } = await s.main.run('Say hi.');
    expect({ finish, text }).toEqual({ finish: 'stop', text: 'Fine.' });
    expect((await s.main.run('Again.')).finish).toBe('stop');
    expect(s.provider.refusals).toEqual([]);
    expect(s.called()).toEqual(illegal);
  });

  test('is offered the tools of a deck under names that it accepts, and each can be called', async () => {
    const names = ['echo', 'fs.read', 'fs/read', 'fs_read', '1st', 'x'.repeat(80), 'constructor', 'toString'];
    const say = (name: string, i: number) => ({ id: `c${i}`, name, arguments: { say: `${i}` } });
    await using s = await served(
      mode,
      (request, index) => (index === 0 ? { calls: offeredBy(request).map(say) } : { text: 'Fine.' }),
      names,
    );
    const run = s.main.run('Call all.');
    const done = (await eventsOf(run)).filter((event) => event.type === 'tool-completed');
    expect(done.map(({ name, output }) => [name, output])).toEqual(
      names.map((name, i) => [name, `said ${i}`]),
    );
    expect((await s.main.run('Again.')).text).toBe('Fine.');
    expect(s.provider.refusals).toEqual([]);
    expect(s.called()).toEqual(names);
  });
});

test('a model that calls a tool by the name in the deck reaches it', async () => {
  const calls = [{ id: 'c', name: 'fs.read', arguments: { say: 'hi' } }];
  const answer: Answers = (_, index) => (index === 0 ? { calls } : { text: 'Fine.' });
  await using s = await served(modeOf('compatible'), answer, ['fs.read']);
  const done = (await eventsOf(s.main.run('Read.'))).filter((event) => event.type === 'tool-completed');
  expect(done).toMatchObject([{ name: 'fs.read', success: true }]);
});
