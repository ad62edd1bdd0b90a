import type { ChildOutcome, DelegateTask, RunResult } from '@tapedeck/runtime';
import type { Json } from '@tapedeck/tape';
import { Output } from 'ai';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { served } from '../support/served.ts';
import { openStore } from '../support/store.ts';

const ports = Output.object({ schema: z.object({ ports: z.array(z.number()) }) });
const named = Output.object({ schema: z.object({ name: z.string().toUpperCase() }) });
const even = Output.object({
  schema: z.object({ count: z.number().refine((n) => n % 2 === 0, 'it is odd') }),
});

interface Ports {
  ports: number[];
}

/** Answers the task first, then with the result in its form. */
const giving = (results: Readonly<Record<string, unknown>>) =>
  served(({ messages, response_format }) => {
    if (response_format === undefined) return { text: 'Looked.' };
    const task = Object.keys(results).find((name) => JSON.stringify(messages).includes(name));
    return { text: JSON.stringify(results[task ?? '']) };
  });

test('the outcome of a task has the type and the value of its schema', async () => {
  await using s = await giving({ 'Find ports': { ports: [80] }, 'Find names': { name: 'ada' } });
  const [first, second, third] = await s.main.delegate(
    [{ task: 'Find ports', output: ports }, { task: 'Find names', output: named }, 'Look'],
    { concurrency: 1 },
  );
  expectTypeOf(first).toEqualTypeOf<ChildOutcome<Ports>>();
  expectTypeOf(first.output).toEqualTypeOf<Ports | undefined>();
  expectTypeOf(second.output).toEqualTypeOf<{ name: string } | undefined>();
  expectTypeOf(third.output).toEqualTypeOf<Json | undefined>();
  expect(first).toMatchObject({ status: 'completed', output: { ports: [80] } });
  // The tape has what the model said; the value is what the schema makes of it.
  expect(second).toMatchObject({ status: 'completed', output: { name: 'ADA' } });
  expect(s.store.lineage.collect(second.session).value).toEqual({ name: 'ada' });
  expect(third).not.toHaveProperty('output');
});

test('the schema of a delegation applies to tasks without their own', async () => {
  await using s = await giving({ 'Find ports': { ports: [80] }, 'Find names': { name: 'ada' } });
  const options = { output: ports, concurrency: 1 };
  const [alone] = await s.main.delegate('Find ports', options);
  expectTypeOf(alone.output).toEqualTypeOf<Ports | undefined>();
  expect(alone.output).toEqual({ ports: [80] });
  const both = await s.main.delegate(['Find ports', { task: 'Find names', output: named }], options);
  expectTypeOf(both[0].output).toEqualTypeOf<Ports | undefined>();
  expectTypeOf(both[1].output).toEqualTypeOf<{ name: string } | undefined>();
  expect(both.map(({ output }) => output)).toEqual([{ ports: [80] }, { name: 'ADA' }]);
  const tasks: DelegateTask[] = [{ task: 'Find ports' }];
  expectTypeOf(await s.main.delegate(tasks)).toEqualTypeOf<readonly ChildOutcome[]>();
});

test('the run of a child has the type and the value of its schema', async () => {
  await using s = await giving({ 'Find names': { name: 'ada' } });
  const child = await s.main.fork({ output: named });
  const result = await child.run('Find names');
  expectTypeOf(result).toEqualTypeOf<RunResult<{ name: string }>>();
  expect(result).toMatchObject({ finish: 'stop', output: { name: 'ADA' } });
  const { value } = await s.main.withFork({ output: ports }, async (kid) => {
    expectTypeOf((await kid.run('Find names')).output).toEqualTypeOf<Ports | undefined>();
    return 1;
  });
  expectTypeOf(value).toEqualTypeOf<number>();
  expectTypeOf((await s.main.run('Look')).output).toEqualTypeOf<unknown>();
});

test('a result that only the schema refuses fails the run', async () => {
  await using s = await giving({ Count: { count: 3 } });
  const [outcome] = await s.main.delegate({ task: 'Count', output: even });
  expect(outcome).toMatchObject({ status: 'failed', error: expect.stringContaining('it is odd') });
  expect(outcome).not.toHaveProperty('output');
});

test('the end of a child is reported with its text, and with the code of its error', async () => {
  await using s = await served(({ messages }) =>
    JSON.stringify(messages).includes('Fail') ? { status: 400, message: 'no' } : { text: 'Found it.' },
  );
  const ended = async (task: string) => {
    for await (const event of s.main.delegate(task)) if (event.type === 'child-ended') return event;
    throw new Error('no child ended');
  };
  expect(await ended('Look')).toEqual({
    type: 'child-ended',
    session: expect.any(String),
    status: 'completed',
    text: 'Found it.',
  });
  expect(await ended('Fail')).toMatchObject({
    status: 'failed',
    text: expect.stringContaining('Error: '),
    error: { code: 'SESSION_MODEL_FAILED', message: expect.stringContaining('the model failed: no') },
  });
});

test('an output without a JSON Schema is refused before anything is forked', async () => {
  using store = openStore();
  await using deck = await openDeck({
    store,
    model: 'openai-compatible/m',
    env: { OPENAI_BASE_URL: 'x', OPENAI_API_KEY: 'x' },
  });
  const main = await deck.session('main');
  await expect(main.delegate({ task: 'Say', output: Output.text() })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  expect(store.sessions.list({ all: true })).toHaveLength(1);
});
