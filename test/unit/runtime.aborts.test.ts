import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { delegateTool, type Session } from '@tapedeck/runtime';
import { user } from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { entryLines, eventLine, eventsOf, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const inputSchema = z.object({});
const call = (id: string, name: string, input: object = {}) => ({ id, name, input });

/** A tool that ends when it is let go, whatever its signal says. */
function ignoringAborts() {
  const entered = Promise.withResolvers<AbortSignal | undefined>();
  const leave = Promise.withResolvers<string>();
  const wait = tool({
    inputSchema,
    execute: (_, { abortSignal }) => {
      entered.resolve(abortSignal);
      return leave.promise;
    },
  });
  return { wait, entered: entered.promise, open: () => leave.resolve('waited') };
}

/** A tool that ends with its signal. */
function endingOnAbort() {
  const entered = Promise.withResolvers<void>();
  const wait = tool({
    inputSchema,
    execute: (_, { abortSignal }) => {
      entered.resolve();
      return new Promise<string>((_resolve, reject) => {
        abortSignal?.addEventListener('abort', () => reject(abortSignal.reason));
      });
    },
  });
  return { wait, entered: entered.promise };
}

/** A model that streams the parts, and then nothing more; the test receives its signal. */
function stalling(parts: readonly LanguageModelV4StreamPart[]) {
  const asked = Promise.withResolvers<AbortSignal | undefined>();
  const model: LanguageModelV4 = {
    specificationVersion: 'v4',
    provider: 'test',
    modelId: 'test',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('it only streams')),
    doStream: async ({ abortSignal }) => {
      asked.resolve(abortSignal);
      return {
        stream: new ReadableStream({
          start: (controller) => {
            for (const part of parts) controller.enqueue(part);
          },
        }),
      };
    },
  };
  return { model, asked: asked.promise };
}

test('the model learns of an abort; its calls stay unchanged, here and after a reload', async () => {
  const { model, asked } = stalling([
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'I will ' },
    { type: 'tool-input-start', id: 'c1', toolName: 'wait' },
    { type: 'tool-input-delta', id: 'c1', delta: '{}' },
    { type: 'tool-input-end', id: 'c1' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'wait', input: '{}' },
    { type: 'text-delta', id: 't', delta: 'wait.' },
    { type: 'tool-input-start', id: 'c2', toolName: 'wait' },
    { type: 'tool-input-delta', id: 'c2', delta: '{"on' },
  ]);
  const { wait } = ignoringAborts();
  await using home = await scriptedDeck([{ text: 'Well.' }], { tools: { wait } });
  const main = await home.deck.session('main');
  const run = main.run('Wait', { model });
  const signal = await asked;
  for await (const chunk of run.uiStream())
    if (chunk.type === 'tool-input-delta' && chunk.toolCallId === 'c2') break;
  await main.abort('enough');
  expect(signal?.aborted).toBe(true);
  expect(await run).toMatchObject({ finish: 'aborted' });
  // The first call was complete; of the second, what had arrived is kept.
  const frozen = ['user: Wait', 'assistant: I will wait. [wait c1] [wait c2]', 'event run/aborted'];
  expect(entryLines(home.store.entries.read('main')).slice(1)).toEqual(frozen);
  expect([...home.store.entries.read('main')][2]?.meta).toMatchObject({
    partial: true,
    model: 'test',
    raw_input: { c2: '{"on' },
  });
  expect(home.store.live.read('main')).toEqual([]);
  expect(home.store.leases.list()).toEqual([]);
  await using other = await openDeck({ store: home.store, model: home.spec, tools: { wait } });
  expect(await (await other.session('main')).run('And now?')).toMatchObject({ text: 'Well.' });
  expect(entryLines(home.store.entries.read('main')).slice(4)).toEqual([
    'wait c1 → error-text Not run: the run was aborted.',
    'wait c2 → error-text Not run: the run was aborted.',
    'user: And now?',
    'assistant: Well.',
  ]);
});

test('a call whose arguments were streaming when the process died is kept with what had arrived', async () => {
  await using home = await scriptedDeck([{ text: 'Well.' }]);
  const { deck, store } = home;
  const main = await deck.session('main');
  store.entries.append('main', [user('Wait', { run: 'killed' })]);
  const chunks = [
    { type: 'tool-input-start', toolCallId: 'c1', toolName: 'wait' },
    { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '{"for": ' },
    { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '"ev' },
  ].map((chunk, index) => ({ index, chunk }));
  store.live.save([{ session: 'main', run: 'killed', chunks }]);
  expect(await main.run()).toMatchObject({ text: 'Well.' });
  expect(entryLines(store.entries.read('main')).slice(1)).toEqual([
    'user: Wait',
    'assistant: [wait c1]',
    'event run/interrupted',
    'wait c1 → error-text Not run: the answer with this call was cut off.',
    'assistant: Well.',
  ]);
  expect([...store.entries.read('main')][2]?.meta.raw_input).toEqual({ c1: '{"for": "ev' });
});

test('a tool that ignores an abort is waited for briefly, and its call stays open', async () => {
  const { wait, entered, open } = ignoringAborts();
  await using home = await scriptedDeck(
    [{ toolCalls: [call('c1', 'wait'), call('c2', 'wait')] }, { text: 'On.' }],
    {
      tools: { wait },
      limits: { abortGraceMs: 20 },
    },
  );
  const main = await home.deck.session('main');
  const run = main.run('Wait');
  const signal = await entered;
  run.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(signal?.aborted).toBe(true);
  expect(home.store.leases.list()).toEqual([]);
  // It ends now: its result is ignored.
  open();
  expect(await main.run('Go on')).toMatchObject({ text: 'On.' });
  expect(entryLines(home.store.entries.read('main')).slice(2)).toEqual([
    'assistant: [wait c1] [wait c2]',
    'event run/aborted',
    'wait c1 → error-text Outcome unknown: the run was aborted.',
    'wait c2 → error-text Not run: the run was aborted.',
    'user: Go on',
    'assistant: On.',
  ]);
});

test('a tool result soon after an abort is recorded, and no later call runs', async () => {
  const { wait, entered, open } = ignoringAborts();
  await using home = await scriptedDeck([{ toolCalls: [call('c1', 'wait'), call('c2', 'wait')] }], {
    tools: { wait },
  });
  const run = (await home.deck.session('main')).run('Wait');
  await entered;
  run.abort('enough');
  open();
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(entryLines(home.store.entries.read('main')).slice(3)).toEqual([
    'wait c1 → text waited',
    'event run/aborted',
  ]);
  expect([...home.store.entries.read('main')].at(-1)?.payload).toMatchObject({ unbegun: ['c2'] });
});

test('parallel calls all receive the abort, and each stays unchanged', async () => {
  const { wait, entered } = endingOnAbort();
  const quick = tool({ inputSchema, execute: async () => 'quick' });
  const calls = [call('c1', 'quick', { _parallel: true }), call('c2', 'wait'), call('c3', 'wait')];
  await using home = await scriptedDeck([{ toolCalls: calls }], {
    tools: { wait, quick },
    limits: { concurrentTools: 2 },
  });
  const run = (await home.deck.session('main')).run('Wait');
  await entered;
  for await (const event of run) if (event.type === 'tool-completed') break;
  run.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(entryLines(home.store.entries.read('main')).slice(3)).toEqual([
    'quick c1 → text quick',
    'event run/aborted',
  ]);
  expect((await eventsOf(run)).map(eventLine).at(-1)).toBe('session-cancelled enough');
});

/** A tool of `main` that forks children in one way or another, and waits for their outcomes. */
async function withChildren(act: (main: Session) => PromiseLike<unknown>) {
  const { wait, entered } = endingOnAbort();
  let main: Session | undefined;
  const spawn = tool({
    inputSchema,
    execute: async () => {
      if (main !== undefined) await act(main);
      return 'spawned';
    },
  });
  const home = await scriptedDeck(
    [
      { toolCalls: [call('s1', 'spawn')], when: { session: 'main' } },
      { toolCalls: [call('w1', 'wait')], when: { session: 'kid*' } },
      { text: 'Back.', when: { session: 'main' } },
      { text: 'Kid.', when: { session: 'kid*' } },
    ],
    // Several leases exist at once: reading the clock must not expire them.
    { store: openStore(':memory:', { now: Date.now }), tools: { wait, spawn }, limits: { abortGraceMs: 20 } },
  );
  main = await home.deck.session('main');
  return { ...home, main, entered };
}

const aborts = (lines: readonly string[]) => lines.filter((line) => line === 'event run/aborted').length;

test('an aborted run aborts the children that it delegated, queued ones too', async () => {
  await using s = await withChildren(async (main) => {
    const tasks = [
      { task: 'One', name: 'kid-1' },
      { task: 'Two', name: 'kid-2' },
    ];
    await main.delegate(tasks, { concurrency: 1 }).forked;
    // The tool is still running when the run is aborted.
    await new Promise(() => {});
  });
  const run = s.main.run('Spawn');
  await s.entered;
  run.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
  for (const name of ['kid-1', 'kid-2']) {
    const kid = await s.deck.session(name);
    await kid.idle();
    await expect.poll(() => s.store.sessions.find(name)?.task).toBe('aborted');
    const last = [...s.store.entries.read(name)].find((entry) => entry.name === 'run/aborted');
    expect(last?.payload).toMatchObject({ reason: 'aborted by parent' });
  }
  // The parent takes their results when it continues.
  expect(await s.main.run('Go on')).toMatchObject({ text: 'Back.' });
  await expect.poll(() => s.store.sessions.find('kid-2')?.delivery).toBe('merged');
  await expect.poll(() => s.store.sessions.find('kid-1')?.delivery).toBe('merged');
  expect(entryLines(s.store.entries.read('kid-1', { own: true }))).toContain(
    'wait w1 → error-text Outcome unknown: aborted by parent.',
  );
  expect([...s.store.verify()]).toEqual([]);
});

test('an aborted run aborts a child that was forked and run during it, and the child of that child', async () => {
  await using s = await withChildren(async (main) => {
    const kid = await main.fork({ name: 'kid' });
    const under = await kid.fork({ name: 'kid-of-kid' });
    // It is run for the child's run, and that for the parent's.
    const run = kid.run('Wait');
    for await (const event of run) if (event.type === 'tool-started') break;
    await Promise.all([run, under.run('Wait, too')]);
  });
  const run = s.main.run('Spawn');
  await s.entered;
  await expect.poll(() => s.store.leases.list().length).toBe(3);
  run.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
  await expect.poll(() => s.store.leases.list().length).toBe(0);
  for (const name of ['kid', 'kid-of-kid']) {
    expect(aborts(entryLines(s.store.entries.read(name, { own: true })))).toBe(1);
    const note = [...s.store.entries.read(name)].at(-1);
    expect(note?.payload).toMatchObject({ reason: 'aborted by parent' });
  }
});

test('a child that runs while its parent does not is independent of the parent’s runs', async () => {
  await using s = await withChildren(async () => {});
  const kid = await s.main.fork({ name: 'kid' });
  const run = kid.run('Wait');
  await s.entered;
  const parents = s.main.run('Spawn');
  expect(await parents).toMatchObject({ finish: 'stop' });
  await s.main.abort('enough');
  expect(kid.attach()).toBe(run);
  await kid.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
});

test.each([
  ['its tool returns', 5_000],
  ['the next run', 0],
])(
  'a parent aborted while it waits for a child reads once that it was, and what the child said: from %s',
  async (_, abortGraceMs) => {
    const { model, asked } = stalling([
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'Half of it' },
    ]);
    const input = { tasks: [{ task: 'Look.' }] };
    await using home = await scriptedDeck(
      [{ toolCalls: [call('c1', 'delegate', input)] }, { text: 'Well.' }],
      {
        store: openStore(':memory:', { now: Date.now }),
        tools: { delegate: delegateTool({ model }) },
        limits: { abortGraceMs },
      },
    );
    const { store } = home;
    const main = await home.deck.session('main');
    const run = main.run('Go');
    await asked;
    const kid = store.sessions.list({ parent: 'main', all: true })[0]?.session ?? '';
    await expect.poll(() => JSON.stringify(store.live.read(kid))).toContain('Half of it');
    run.abort('enough');
    expect(await run).toMatchObject({ finish: 'aborted' });
    await home.deck.idle();
    expect(await main.run('And now?')).toMatchObject({ text: 'Well.' });
    const results = [...store.entries.read('main', { kind: 'tool-result' })].map(({ payload }) => payload);
    const outcome = { session: kid, status: 'aborted', text: 'Half of it', error: 'aborted by parent' };
    expect(results).toMatchObject([{ output: { value: { results: [outcome] } } }]);
    const shown = JSON.stringify((await main.view()).messages);
    for (const text of ['aborted by parent', 'Half of it']) expect(shown.split(text)).toHaveLength(2);
    expect(store.sessions.find(kid)).toMatchObject({ task: 'aborted', delivery: 'merged' });
  },
);
