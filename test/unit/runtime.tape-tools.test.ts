import { once } from 'node:events';
import { delegationTools, tapeTools } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { openTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { startProvider } from '../support/provider.ts';
import { type ScriptedDeck, scriptedDeck } from '../support/scripted.ts';

const call = (name: string, input: object = {}) => ({ toolCalls: [{ name, input }] });

const deckOf = async (answers: readonly ScriptAnswer[], more: object = {}) =>
  await scriptedDeck(answers, { tools: { ...tapeTools(), ...delegationTools() }, ...more });

const outputs = ({ store }: ScriptedDeck, session = 'main') =>
  [...store.entries.read(session, { kind: 'tool-result', own: true })].map(({ payload }) =>
    isObject(payload) && isObject(payload.output) ? (payload.output.reason ?? payload.output.value) : payload,
  );

const texts = async (home: ScriptedDeck) =>
  JSON.stringify((await (await home.deck.session('main')).view()).messages);

test('a model begins anew with its summary, and finds what was said before', async () => {
  await using home = await deckOf([
    { text: 'The secret word is heron.' },
    call('tape_handoff', { name: 'begun-anew', summary: 'We talked about birds.' }),
    call('tape_search', { text: 'heron' }),
    { text: 'Found it.' },
  ]);
  const main = await home.deck.session('main');
  await main.run('Which word?');
  expect((await main.run('Begin anew.')).text).toBe('Found it.');
  expect(outputs(home)).toEqual([
    { state: 'queued' },
    expect.objectContaining({
      hits: expect.arrayContaining([expect.objectContaining({ snippet: expect.stringContaining('heron') })]),
    }),
  ]);
  const seen = await texts(home);
  expect(seen).toContain('We talked about birds.');
  expect(seen).not.toContain('Which word?');
});

test('a model marks points, and lists them', async () => {
  await using home = await deckOf([
    call('tape_anchors', { name: 'before', state: { open: 2 } }),
    call('tape_anchors'),
    { text: 'Done.' },
  ]);
  const main = await home.deck.session('main');
  await main.run('Mark this.');
  const [anchor] = [...home.store.entries.read('main', { name: 'before' })];
  expect(anchor?.payload).toMatchObject({ state: { open: 2 } });
  expect(outputs(home)[1]).toMatchObject({
    anchors: expect.arrayContaining([{ seq: anchor?.seq, name: 'before' }]),
  });
});

test('a model has the conversation summarised before its next step', async () => {
  await using home = await deckOf([
    { text: `A long answer. ${'word '.repeat(2_000)}` },
    call('tape_compact', { focus: 'birds' }),
    ...Array.from({ length: 4 }, () => ({ text: 'Going on.' })),
  ]);
  const summarizer = home.script(
    Array.from({ length: 4 }, () => ({ text: '## Summary\nIt was about birds.' })),
  );
  await using other = await scriptedDeck([], {
    store: home.store,
    model: home.spec,
    summarizer,
    tools: tapeTools(),
  });
  const main = await other.deck.session('main');
  await main.run('Tell me.');
  const events: string[] = [];
  const run = main.run('Compact.');
  for await (const event of run) if (event.type === 'compacted') events.push(event.trigger);
  expect((await run).text).toBe('Going on.');
  expect(events).toEqual(['manual']);
  expect(JSON.stringify((await main.view()).messages)).toContain('It was about birds.');
});

test('a model looks after its children', async () => {
  await using home = await deckOf([
    {
      ...call('delegate', { tasks: [{ task: 'Wait.' }], background: true }),
      when: { session: 'main' },
    },
    { ...call('tape_children', { action: 'status' }), when: { session: 'main' } },
    { text: 'Started.', when: { session: 'main' } },
    { text: 'Waited.' },
  ]);
  const main = await home.deck.session('main');
  await main.run('Start one.');
  await home.deck.idle();
  const [, status] = outputs(home);
  const [child] = home.store.sessions.list({ parent: main.id, all: true });
  expect(status).toEqual({ children: [expect.objectContaining({ session: child?.session })] });
});

test('a model messages a child at work, which reads it in its next step, and cancels another one', async () => {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let waiting = 0;
  const wait = tool({
    inputSchema: z.object({}),
    execute: async (_, { abortSignal }) => {
      waiting += 1;
      if (waiting === 2) begun.resolve();
      await Promise.race([gate.promise, once(abortSignal ?? new EventTarget(), 'abort')]);
      return 'waited';
    },
  });
  const ready = tool({
    inputSchema: z.object({}),
    execute: async () => {
      await begun.promise;
      return 'both wait';
    },
  });
  const open = tool({
    inputSchema: z.object({}),
    execute: async () => {
      gate.resolve();
      return 'opened';
    },
  });
  const main = (answer: ScriptAnswer) => ({ ...answer, when: { session: 'main' } });
  const child = (name: string, answer: ScriptAnswer) => ({ ...answer, when: { session: name } });
  await using home = await deckOf(
    [
      main(call('ready')),
      main(call('tape_children', { action: 'message', child: 'one', message: 'Mind the gap.' })),
      main(call('tape_children', { action: 'cancel', child: 'two' })),
      main(call('open')),
      main({ text: 'Looked after.' }),
      main({ text: 'Read the report.' }),
      child('one', call('wait')),
      child('one', { text: 'I mind it.' }),
      child('two', call('wait')),
      child('two', { text: 'Too late.' }),
    ],
    // The clock of the others ends a lease after a few acts.
    { tools: { ...tapeTools(), ...delegationTools(), wait, ready, open }, store: openTapeStore(':memory:') },
  );
  const session = await home.deck.session('main');
  const delegated = ['one', 'two'].map((name) => session.delegate({ task: 'Wait.', name }));
  expect((await session.run('Look after them.')).text).toBe('Looked after.');
  const [first, second] = (await Promise.all(delegated)).flatMap((outcomes) => outcomes ?? []);
  await home.deck.idle();
  expect(outputs(home)).toEqual([
    'both wait',
    { to: 'one', state: 'queued' },
    { session: 'two', cancelled: true },
    'opened',
  ]);
  expect(first).toMatchObject({ status: 'completed', text: 'I mind it.' });
  expect(second).toMatchObject({ status: 'aborted' });
  const read = JSON.stringify((await (await home.deck.session('one')).view()).messages);
  expect(read).toContain('Mind the gap.');
});

test('a tool of the tape that a child does not use is not offered, and one outside of the ceiling is not handed on', async () => {
  await using provider = await startProvider(() => ({ text: 'Done.' }));
  await using home = await deckOf([], { model: 'openai-compatible/m', env: provider.env });
  const main = await home.deck.session('main', { tools: ['tape_search', 'tape_children', 'delegate'] });
  const child = await main.fork({ inherit: 'nothing', uses: ['tape_search'], task: 'Look.' });
  await child.run();
  const [asked] = provider.requests;
  expect(
    (asked as { tools: { function: { name: string } }[] } | undefined)?.tools.map((one) => one.function.name),
  ).toEqual(['tape_search']);
  for (const lists of [{ tools: ['tape_handoff'] }, { uses: ['tape_handoff'] }])
    await expect(main.fork(lists)).rejects.toMatchObject({
      code: 'SESSION_BAD_INPUT',
      data: { tool: 'tape_handoff', tools: ['tape_search', 'tape_children', 'delegate'] },
    });
});

test('a session that is no child is neither cancelled nor messaged, and rules decide on messages', async () => {
  await using home = await deckOf(
    [
      call('tape_children', { action: 'cancel', child: 'other' }),
      call('tape_children', { action: 'message', child: 'own', message: 'Hi' }),
      { text: 'Done.' },
    ],
    { permissions: ['allow *', 'deny send(children)'] },
  );
  await home.deck.session('other');
  const main = await home.deck.session('main');
  await main.fork({ name: 'own', onUnmerged: 'keep' });
  await main.run('Go.');
  expect(outputs(home)).toEqual([
    expect.stringContaining("'other': it is not a child of 'main'"),
    expect.stringContaining('deny send(children)'),
  ]);
});

test('a session keeps to the tools that it may use', async () => {
  await using home = await deckOf([call('tape_handoff', { name: 'a', summary: 'b' }), { text: 'Done.' }]);
  const main = await home.deck.session('main', { tools: ['tape_search'] });
  await main.run('Go.');
  expect(outputs(home)).toEqual(["Tool 'tape_handoff' may not be used in this session."]);
});
