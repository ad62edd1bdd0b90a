import { delegationTools } from '@tapedeck/runtime';
import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { modeOf } from '../support/provider/modes.ts';
import type { ChatRequest } from '../support/provider/protocol.ts';
import { startProvider } from '../support/provider.ts';
import { openStore } from '../support/store.ts';

const look = tool({ inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => `saw ${at}` });
const instructions = 'You keep the shop.';

/** A parent that looks, delegates in the same run, and ends; its children look too. Requests in the order they came. */
async function requestsOf(mode: string, asked: JsonObject, options: { tools?: readonly string[] } = {}) {
  const answers: Readonly<Record<string, readonly object[]>> = {
    parent: [
      { calls: [{ id: 'call_look', name: 'look', arguments: { at: 'the shelf' } }] },
      {
        calls: [
          { id: 'call_delegate', name: 'delegate', arguments: { tasks: [{ task: 'Count them' }], ...asked } },
        ],
      },
      { text: 'Done.' },
    ],
    child: [{ calls: [{ id: 'call_kid', name: 'look', arguments: { at: 'the box' } }] }, { text: 'Seven.' }],
  };
  const asks: Record<string, number> = { parent: 0, child: 0 };
  const isChild = (request: ChatRequest) => JSON.stringify(request).includes('Your task: Count them');
  await using provider = await startProvider((request) => {
    const who = isChild(request) ? 'child' : 'parent';
    const answer = answers[who]?.[asks[who] ?? 0];
    asks[who] = (asks[who] ?? 0) + 1;
    return answer ?? { text: 'No more.' };
  }, modeOf(mode).protocol);
  using store = openStore();
  await using deck = await openDeck({
    store,
    model: modeOf(mode).model({ baseURL: provider.url }),
    tools: { look, ...delegationTools(options.tools === undefined ? {} : { tools: options.tools }) },
    instructions,
  });
  const main = await deck.session('main');
  await main.run('What is in the shop?');
  const results = [...store.sessions.list({ parent: 'main', all: true })].flatMap(({ id }) => [
    ...store.entries.read(id, { kind: 'tool-result', own: true }),
  ]);
  const requests: readonly ChatRequest[] = provider.requests;
  return {
    parent: requests.filter((request) => !isChild(request)),
    child: requests.filter(isChild),
    results: results.map(({ payload }) => JSON.stringify(payload)),
  };
}

/** A request without the marks of what is to be kept, which are no part of what is compared with what was kept. */
function unmarked(value: Json | undefined): Json {
  if (Array.isArray(value)) return value.map(unmarked);
  if (!isObject(value)) return value ?? null;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'cache_control')
      .map(([name, field]) => [name, unmarked(field)]),
  );
}

/** All content blocks of a request's messages, in order, each with its role. */
const blocksOf = ({ messages }: ChatRequest): Json[] =>
  messages.flatMap(({ role, content }) =>
    Array.isArray(content) ? content.map((block) => [role, block] as Json) : [[role, content ?? null]],
  );

test("a child that inherits everything begins with the bytes of its parent's request, and its task comes last", async () => {
  const { parent, child } = await requestsOf('anthropic', {});
  // The request at the fork: its second step, whose answer called for the child.
  const [, before] = parent;
  const [first, second] = child;
  if (before === undefined || first === undefined || second === undefined) throw new Error('no such request');
  expect(JSON.stringify(first.tools)).toBe(JSON.stringify(before.tools));
  expect(JSON.stringify(first.system)).toBe(JSON.stringify(before.system));
  const [shared, all] = [blocksOf(before), blocksOf(first)];
  expect(unmarked(all.slice(0, shared.length))).toEqual(unmarked(shared));
  expect(JSON.stringify(all.slice(shared.length))).toContain('Your task: Count them');
  expect(all).toHaveLength(shared.length + 1);
  // Its own steps continue from there.
  expect(unmarked(blocksOf(second).slice(0, all.length))).toEqual(unmarked(all));
});

test('cache marks follow the instructions, the cut and the end, within the limit of the provider', async () => {
  const { parent, child } = await requestsOf('anthropic', {});
  const marked = (request: ChatRequest | undefined) =>
    request === undefined
      ? []
      : blocksOf(request).flatMap((block, i) => (JSON.stringify(block).includes('cache_control') ? [i] : []));
  for (const request of [...parent, ...child]) {
    expect(request.system).toEqual([
      { type: 'text', text: instructions, cache_control: { type: 'ephemeral' } },
    ]);
    expect(JSON.stringify(request).split('cache_control').length - 1).toBeLessThanOrEqual(4);
  }
  const shared = parent[1] === undefined ? 0 : blocksOf(parent[1]).length;
  const ends = (request: ChatRequest | undefined) =>
    request === undefined ? -1 : blocksOf(request).length - 1;
  expect(marked(parent[1])).toEqual([ends(parent[1])]);
  expect(marked(child[0])).toEqual([shared - 1, ends(child[0])]);
  expect(marked(child[1])).toEqual([shared - 1, ends(child[1])]);
});

test('a child receives the definitions of tools that it may not call, and its calls of them are refused', async () => {
  const { parent, child, results } = await requestsOf('anthropic', {}, { tools: ['delegate'] });
  expect(JSON.stringify(child[0]?.tools)).toBe(JSON.stringify(parent[1]?.tools));
  expect(results).toEqual([expect.stringContaining("Tool 'look' may not be used in this session.")]);
});

test('a child that inherits nothing receives the worker instructions, and only the tools that it may call', async () => {
  const { child } = await requestsOf('anthropic', { inherit: 'nothing' }, { tools: ['look'] });
  expect(JSON.stringify(child[0]?.system)).toContain('You are a worker');
  expect(JSON.stringify(child[0]?.system)).not.toContain(instructions);
  expect(((child[0]?.tools ?? []) as readonly JsonObject[]).map(({ name }) => name)).toEqual(['look']);
});

test.each(['openai chat', 'openai responses', 'compatible'])(
  'with %s the prefix has the same bytes, and no marks',
  async (mode) => {
    const { parent, child } = await requestsOf(mode, {});
    const shown = (request: ChatRequest | undefined): readonly Json[] => {
      const { messages, input } = (request ?? {}) as { messages?: Json[]; input?: Json[] };
      return messages ?? input ?? [];
    };
    const [before, first] = [parent[1], child[0]];
    expect(JSON.stringify(first?.tools)).toBe(JSON.stringify(before?.tools));
    const [shared, all] = [shown(before), shown(first)];
    expect(JSON.stringify(all.slice(0, shared.length))).toBe(JSON.stringify(shared));
    expect(JSON.stringify(all.slice(shared.length))).toContain('Your task: Count them');
    expect(JSON.stringify([parent, child])).not.toContain('cache_control');
  },
);
