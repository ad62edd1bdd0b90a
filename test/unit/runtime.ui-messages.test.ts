import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { assistant, processOwner, toolCall, toolResult, user } from '@tapedeck/tape';
import { safeValidateUIMessages, type UIMessage } from 'ai';
import { afterEach, expect, test } from 'vitest';
import { type ScriptedDeck, scriptedDeck } from '../support/scripted.ts';

/** Messages as short texts: `user: Hello`, `assistant: step-start text=Hi.`. */
const lines = (messages: readonly UIMessage[]) =>
  messages.map(({ role, parts }) => {
    const said = parts.map((part) => {
      if (part.type === 'text') return `text=${part.text}`;
      if (part.type === 'steering-message')
        return `steered=${JSON.stringify(part.parts.map((one) => 'text' in one && one.text))}`;
      return 'state' in part ? `${part.type}=${part.state}` : part.type;
    });
    return `${role}: ${said.join(' ')}`;
  });

const decks: ScriptedDeck[] = [];
async function deckOf(
  answers: readonly ScriptAnswer[] = [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }],
) {
  const scripted = await scriptedDeck(answers);
  decks.push(scripted);
  return { ...scripted, main: await scripted.deck.session('main') };
}
afterEach(async () => {
  for (const deck of decks.splice(0)) await deck[Symbol.asyncDispose]();
});

test('a session without messages has none', async () => {
  const { main } = await deckOf();
  expect(await main.uiMessages()).toEqual([]);
});

test('rewound messages are left out, and the answer to an edited one is there', async () => {
  const { main } = await deckOf();
  const { from } = await main.run('First');
  await main.rewind(from);
  await main.run('Second');
  expect(lines(await main.uiMessages())).toEqual(['user: text=Second', 'assistant: step-start text=Two.']);
});

test('what a process that died had saved of an answer is shown before and after it is settled, and not while one writes', async () => {
  const { store, main } = await deckOf();
  const run = (await main.run('First')).run;
  store.entries.append('main', [user('Second', { run: 'dead' })]);
  const [before = ''] = lines(await main.uiMessages()).slice(-1);
  expect(before).toBe('user: text=Second');
  const chunks = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'I thi' },
  ].map((chunk, index) => ({ index, chunk }));
  store.live.save([{ session: 'main', run: 'dead', chunks }]);
  const shown = await main.uiMessages();
  expect(shown.map(({ id }) => id)).toEqual([expect.anything(), run, expect.anything(), 'dead']);
  expect(lines(shown.slice(-1))).toEqual(['assistant: step-start text=I thi']);
  expect(await safeValidateUIMessages({ messages: shown })).toMatchObject({ success: true });

  const lease = store.leases.acquire('main', processOwner('other'));
  expect((await main.uiMessages()).at(-1)).toMatchObject({ role: 'user' });
  store.leases.release(lease);
  const parts = (messages: readonly UIMessage[]) => messages.map(({ id, parts: all }) => [id, all]);
  await main.run('Third');
  expect(parts((await main.uiMessages()).slice(0, 4))).toEqual(parts(shown));
});

test('the messages of a session that was not written by runs have the ids of their places', async () => {
  const { store, main } = await deckOf();
  store.entries.append('main', [
    user('Look it up'),
    assistant([toolCall('c1', 'look', { at: 1 })]),
    toolResult({ toolCallId: 'c1', toolName: 'look' }, { type: 'text', value: 'seen' }),
    assistant('It is there.'),
    user('Thanks'),
  ]);
  const messages = await main.uiMessages();
  expect(lines(messages)).toEqual([
    'user: text=Look it up',
    'assistant: step-start tool-look=output-available step-start text=It is there.',
    'user: text=Thanks',
  ]);
  expect(new Set(messages.map(({ id }) => id)).size).toBe(3);
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
  // A run that continues answers the last message, under the id that the next reader finds.
  const run = main.run();
  await run;
  const [start] = (await Array.fromAsync(run.uiStream())).filter(({ type }) => type === 'start');
  expect((await main.uiMessages()).at(-1)?.id).toBe(
    start !== undefined && 'messageId' in start ? start.messageId : '',
  );
});

test('the result of a call that no answer has is left out, and the rest can be read', async () => {
  const { store, main } = await deckOf();
  await main.run('First');
  const stray = toolResult({ toolCallId: 'c9', toolName: 'look' }, { type: 'text', value: 'seen' });
  store.entries.append('main', [stray, user('Look'), stray, assistant('It is there.')]);
  const messages = await main.uiMessages();
  expect(lines(messages)).toEqual([
    'user: text=First',
    'assistant: step-start text=One.',
    'user: text=Look',
    'assistant: step-start text=It is there.',
  ]);
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
});

test('a denied call has its answer, also one that a new message has superseded', async () => {
  const { store, main } = await deckOf();
  store.entries.append('main', [
    user('Look it up'),
    assistant([toolCall('c1', 'look', {})]),
    toolResult({ toolCallId: 'c1', toolName: 'look' }, { type: 'execution-denied', reason: 'superseded' }),
  ]);
  const messages = await main.uiMessages();
  expect(messages[1]?.parts.at(-1)).toMatchObject({
    state: 'output-denied',
    approval: { id: 'c1', approved: false },
  });
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
});

test('a child shows its task as the message that it answers', async () => {
  const { main } = await deckOf();
  const child = await main.fork({ task: 'Check the docs.', inherit: 'nothing' });
  await child.run();
  expect(lines(await child.uiMessages())).toEqual([
    'user: text=Check the docs.',
    'assistant: step-start text=One.',
  ]);
});

test('the report of a child that is merged between two turns is a message of its own', async () => {
  const { main } = await deckOf();
  await main.run('Hello');
  const child = await main.fork({ task: 'Check the docs.', inherit: 'nothing' });
  await child.run();
  await child.finish();
  await main.run('And?');
  const messages = await main.uiMessages();
  expect(lines(messages)).toEqual([
    'user: text=Hello',
    'assistant: step-start text=One.',
    'user: data-merge',
    'user: text=And?',
    'assistant: step-start text=Two.',
  ]);
  expect(messages[2]).toMatchObject({
    metadata: { source: 'merge' },
    parts: [{ data: { session: child.name } }],
  });
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
});

test('a message that steers a run is a part of its answer', async () => {
  const { main } = await deckOf([
    { text: 'Wait.', toolCalls: [{ name: 'unknown', input: {}, id: 'c1' }], delayMs: 50 },
    { text: 'Done.' },
  ]);
  const run = main.run('Go');
  for await (const event of run) if (event.type === 'content-chunk') break;
  await main.send('Be quick', { mode: 'steer', meta: { ui: { id: 'm2' } } });
  await run;
  expect(lines(await main.uiMessages())).toEqual([
    'user: text=Go',
    'assistant: step-start text=Wait. tool-unknown=output-error steered=["Be quick"] step-start text=Done.',
  ]);
  const shown = (await Array.fromAsync(run.uiStream())).find(({ type }) => type === 'steering-message');
  expect(shown).toMatchObject({ id: 'm2', parts: [{ type: 'text', text: 'Be quick' }] });
});
