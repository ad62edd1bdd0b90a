import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { served } from '../support/served.ts';

const add = tool({ inputSchema: z.object({}), execute: async () => 3 });

test('a session keeps the model that a message names: over handoffs, in other processes and in forks', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  const asked = () => s.provider.requests.at(-1)?.model;
  await s.main.run('One');
  expect(asked()).toBe('test-model');
  await s.main.run('Two', { model: 'openai-compatible/large' });
  await s.main.run('Three');
  expect(asked()).toBe('large');
  await s.main.handoff('next', { summary: 'They talked.' });
  await s.main.run('Four');
  expect(asked()).toBe('large');
  const child = await s.main.fork({ name: 'kid' });
  await child.run('Five');
  expect(asked()).toBe('large');
  await child.run('Six', { model: 'openai-compatible/other' });
  await s.main.run('Seven');
  expect(asked()).toBe('large');
  const { run } = await s.main.send('Eight', { model: 'openai-compatible/third' });
  await run;
  expect(asked()).toBe('third');
  // Another deck on the same store, with a model of its own.
  await using other = await openDeck({
    store: s.store,
    model: 'openai-compatible/fourth',
    env: s.provider.env,
  });
  await (await other.session('main')).run('Nine');
  expect(asked()).toBe('third');
  await (await other.session('kid')).run('Ten');
  expect(asked()).toBe('other');
});

test('a run of many steps keeps the model that its message named', async () => {
  const steps = 60;
  await using s = await served(
    ({ messages }) =>
      messages.filter(({ role }) => role === 'tool').length < steps
        ? { calls: [{ name: 'add', arguments: {} }] }
        : { text: 'Enough.' },
    { tools: { add }, limits: { maxSteps: Number.POSITIVE_INFINITY } },
  );
  expect(await s.main.run('Add', { model: 'openai-compatible/large' })).toMatchObject({ steps: steps + 1 });
  await s.main.run('Again');
  expect(s.provider.requests.at(-1)?.model).toBe('large');
});

test('a model that was named long ago stays, and a message that arrives during a run does not replace it', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  await s.main.run('One', { model: 'openai-compatible/large' });
  for (let i = 0; i < 30; i += 1) await s.main.run(`And ${i}`);
  const run = s.main.run('Last');
  await s.main.send('And this', { mode: 'steer' });
  await run;
  await s.main.idle();
  await s.main.run('After all');
  expect(s.provider.requests.slice(1).map(({ model }) => model)).toEqual(
    s.provider.requests.slice(1).map(() => 'large'),
  );
});

test('a model that failed before its first answer is not kept', async () => {
  await using s = await served(({ model }) =>
    model === 'broken' ? { status: 400, message: 'no such model' } : { text: 'Fine.' },
  );
  const asked = () => s.provider.requests.at(-1)?.model;
  const broken = 'openai-compatible/broken';
  const result = await s.main.run('One', { model: broken, settings: { temperature: 0.3 } });
  expect(result).toMatchObject({
    finish: 'error',
    error: { code: 'SESSION_MODEL_FAILED', data: { session: 'main', model: 'broken', modelFrom: 'run' } },
  });
  expect(result.error?.message).toContain('no such model (the model comes from the options of the run)');
  // The same message, then another one: both by the model of the deck.
  expect(await s.main.run()).toMatchObject({ finish: 'stop' });
  expect(asked()).toBe('test-model');
  expect(s.provider.requests.at(-1)).not.toHaveProperty('temperature');
  await s.main.run('Two');
  expect(asked()).toBe('test-model');
  // A model with an earlier answer stays after one that failed.
  await s.main.run('Three', { model: 'openai-compatible/large' });
  await s.main.send('Four', { model: broken });
  await s.main.idle();
  expect(asked()).toBe('broken');
  await s.main.run('Five');
  expect(asked()).toBe('large');
  const failed = await s.main.run('Six', { model: broken });
  await s.main.rewind(failed.from, { mode: 'resend' });
  await s.main.idle();
  expect(asked()).toBe('broken');
  await (await s.main.fork()).run('Seven');
  expect(asked()).toBe('large');
});

test('a model with one answer is kept when it fails later, and its errors name the message', async () => {
  await using s = await served((_, index) =>
    index === 1 ? { status: 400, message: 'no' } : { text: 'Fine.' },
  );
  await s.main.run('One', { model: 'openai-compatible/large' });
  expect(await s.main.run('Two')).toMatchObject({
    error: { data: { model: 'large', modelFrom: 'session' } },
  });
  await s.main.run('Three');
  expect(s.provider.requests.at(-1)?.model).toBe('large');
});

test('a fork that inherits no message keeps the model and the settings that its parent had at the fork', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  const asked = () => s.provider.requests.at(-1);
  await s.main.run('One', { model: 'openai-compatible/large', settings: { temperature: 0.3 } });
  const none = await s.main.fork({ name: 'none', inherit: 'nothing' });
  const below = await none.fork({ name: 'below', inherit: 'nothing' });
  await s.main.run('Two', { model: 'openai-compatible/other', settings: { temperature: 0.9 } });
  await s.main.rewind(2);
  for (const child of [none, below]) {
    await child.run('Three');
    expect(asked()).toMatchObject({ model: 'large', temperature: 0.3 });
  }
  const part = await s.main.fork({ name: 'part', inherit: { last: 1 }, model: 'openai-compatible/own' });
  await part.run('Four');
  expect(asked()?.model).toBe('own');
});
