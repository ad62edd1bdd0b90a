import type { DeckTools } from '@tapedeck/runtime';
import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { jsonSchema, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type ChatRequest, isAfterTools } from '../support/provider.ts';
import { served } from '../support/served.ts';
import { sized } from '../support/size.ts';

const execute = async () => 'done';
const flag = { type: 'boolean', description: expect.any(String) };

/** The schemas of the tools of a request, by their names. */
function schemasIn(request: ChatRequest | undefined): Record<string, Json> {
  const tools = Array.isArray(request?.tools) ? request.tools : [];
  return Object.fromEntries(
    tools.flatMap((one) =>
      isObject(one) && isObject(one.function)
        ? [[String(one.function.name), one.function.parameters ?? null]]
        : [],
    ),
  );
}

test('a schema is sent with _parallel, unless it allows no further property', async () => {
  const tools: DeckTools = {
    strictObject: tool({ inputSchema: z.strictObject({ a: z.number() }), execute }),
    json: tool({
      inputSchema: jsonSchema({ type: 'object', properties: { a: { type: 'string' } } }),
      execute,
    }),
    empty: tool({ inputSchema: jsonSchema({ type: 'object' }), execute }),
    own: tool({ inputSchema: z.object({ _parallel: z.string() }), execute }),
    strict: tool({ inputSchema: z.object({ a: z.number() }), strict: true, execute }),
    union: tool({
      inputSchema: z.union([z.object({ a: z.number() }), z.object({ b: z.number() })]),
      execute,
    }),
  };
  await using s = await served(() => ({ text: 'Fine.' }), { tools });
  await s.main.run('Hi');
  const schemas = schemasIn(s.provider.requests[0]);
  expect(schemas.strictObject).toMatchObject({
    properties: { a: { type: 'number' }, _parallel: flag },
    required: ['a'],
    additionalProperties: false,
  });
  expect(schemas.json).toMatchObject({ properties: { a: { type: 'string' }, _parallel: flag } });
  expect(schemas.empty).toMatchObject({ properties: { _parallel: flag } });
  expect(schemas.own).toMatchObject({ properties: { _parallel: { type: 'string' } } });
  expect(schemas.strict).not.toMatchObject({ properties: { _parallel: expect.anything() } });
  expect(JSON.stringify(schemas.union)).not.toContain('_parallel');
});

test('a run without tools sends none', async () => {
  await using s = await served(() => ({ text: 'Fine.' }), {
    tools: { add: tool({ inputSchema: z.object({}), execute }) },
  });
  await s.main.run('Hi', { useTools: false });
  await s.main.run('Hi again');
  expect(s.provider.requests.map((request) => Object.keys(schemasIn(request)))).toEqual([[], ['add']]);
});

test.each([
  ['no JSON', '{"a": 1, "b":'],
  ['no JSON at all', 'add one and two'],
  ['empty', ''],
  ['of the wrong type', '{"a": "one"}'],
  ['nested too deep', `{"a": ${'['.repeat(200)}${']'.repeat(200)}}`],
  ['1 MB', JSON.stringify({ a: 1, b: 'x'.repeat(1024 * 1024) })],
  ['after a prototype', '{"a": 1, "__proto__": {"b": 1}}'],
  ['half of a character', '{"a": 1, "b": "\\ud83d"}'],
])('the request after arguments that are %s is valid for a server', async (_, text) => {
  const add = tool({
    inputSchema: z.object({ a: z.number(), b: z.string().optional() }),
    execute: async () => 3,
  });
  await using s = await served(
    (request) =>
      isAfterTools(request) ? { text: 'I see.' } : { calls: [{ id: 'c1', name: 'add', arguments: text }] },
    { tools: { add } },
  );
  expect(await s.main.run('Add')).toMatchObject({ finish: 'stop', text: 'I see.', steps: 2 });
  expect(await s.main.run('Well?')).toMatchObject({ finish: 'stop' });
  expect(s.provider.refusals).toEqual([]);
});

const large: [string, unknown][] = [['many MB', 'x'.repeat(sized(0, 17, 50) * 1024 * 1024)]];

test.each([
  ['text', { type: 'text', text: 'hi' }],
  ['content', { type: 'content', value: 'not a list' }],
  ['nothing', undefined],
  ['half of a character', 'half \ud83d'],
  // On a push the tests of large outputs alone have some.
  ...sized([], large, large),
])('the request after a tool that answers %s is valid for a server', async (_, output) => {
  const odd = tool({ inputSchema: z.object({}), execute: async () => output });
  await using s = await served(
    (request) =>
      isAfterTools(request) ? { text: 'I see.' } : { calls: [{ id: 'c1', name: 'odd', arguments: {} }] },
    { tools: { odd } },
  );
  expect(await s.main.run('Go')).toMatchObject({ finish: 'stop', text: 'I see.' });
  const size = JSON.stringify(s.provider.requests.at(-1)).length;
  expect([s.provider.refusals, size < 100_000]).toEqual([[], true]);
});
