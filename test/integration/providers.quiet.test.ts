import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Json, JsonObject } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import type { DelegatingOrder } from '../support/delegating-worker.ts';
import { modeOf } from '../support/provider/modes.ts';
import { apiKey, type ChatAnswer, type ChatRequest } from '../support/provider/protocol.ts';
import { type Provider, startProvider } from '../support/provider.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const form = { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] };
const tasks: Json = [{ task: 'Count the boxes' }, { task: 'Count the shelves', output_schema: form }];

const call = (name: string, args: JsonObject): ChatAnswer => ({
  calls: [{ id: `call_${name}`, name, arguments: args }],
});

/** The parent looks, delegates and ends. Each child looks and ends, one with a result in a form. */
function answerOf(request: ChatRequest): ChatAnswer {
  const said = JSON.stringify(request.messages ?? request.input);
  if (said.includes('Return the result of your task now')) return { text: '{"count":7}' };
  const [, child] = said.split('Your task: ');
  if (child !== undefined)
    return child.includes('saw the box') ? { text: 'Seven.' } : call('look', { at: 'the box' });
  if (said.includes('call_delegate')) return { text: 'All is counted.' };
  return said.includes('saw the shop') ? call('delegate', { tasks }) : call('look', { at: 'the shop' });
}

async function run(order: DelegatingOrder, { url }: Provider) {
  const worker = join(import.meta.dirname, '../support/delegating-worker.ts');
  const args = ['--conditions=@tapedeck/source', worker, JSON.stringify(order)];
  const names = {
    ANTHROPIC_BASE_URL: url,
    OPENAI_BASE_URL: url,
    ANTHROPIC_API_KEY: apiKey,
    OPENAI_API_KEY: apiKey,
  };
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...names },
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { stdout, stderr };
}

/** Each package of a provider; on a push one of them. */
const quiet: readonly (readonly [model: string, mode: string])[] = [
  ['anthropic/claude-sonnet-4-5', 'anthropic'],
  ['openai/gpt-5', 'openai responses'],
  ['openai-compatible/open', 'compatible'],
];

test.each([...sized(quiet.slice(1, 2), quiet, quiet)])(
  'a run of %s that delegates prints nothing to stderr',
  async (model, mode) => {
    using dir = tempDir();
    await using provider = await startProvider(answerOf, modeOf(mode).protocol);
    const { stdout, stderr } = await run({ db: dir.file('tape.db'), model }, provider);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({ finish: 'stop', text: 'All is counted.' });
    // Three of the parent, two of each child, and one for the result in a form, which is sent its schema.
    expect(provider.requests).toHaveLength(8);
    expect(
      provider.requests.filter((request) => JSON.stringify(request).includes('"type":"json_schema"')),
    ).toHaveLength(1);
    expect(provider.refusals).toEqual([]);
  },
);
