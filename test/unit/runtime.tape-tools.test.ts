import { delegationTools, tapeTools } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { isObject } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
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
