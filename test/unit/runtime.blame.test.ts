import { blame } from '@tapedeck/runtime';
import {
  assistant,
  handoff,
  parsePolicy,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  type ViewPolicy,
  view,
} from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { storeUnderTest } from '../support/deck.ts';
import { served } from '../support/served.ts';
import { openStore } from '../support/store.ts';

/** The parts as lines: `3 assistant of main ↑ by a/b in run r from child 2-4`. */
async function lines(store: SqliteTapeStore, session: string): Promise<string[]> {
  const { parts } = await blame(storeUnderTest(store), session);
  return parts.map(
    ({ seq, what, role, session: of, inherited, model, author, run, tool, summarizer, from }) =>
      [
        `${seq} ${what} ${role} of ${of}${inherited ? ' ↑' : ''}`,
        ...(model === undefined ? [] : [`by ${model}`]),
        ...(author === undefined ? [] : [`by ${author}`]),
        ...(tool === undefined ? [] : [`by ${tool}`]),
        ...(summarizer === undefined ? [] : [`by ${summarizer}`]),
        ...(run === undefined ? [] : [`in ${run}`]),
        ...from.map(({ session: child, range }) => `from ${child} ${range?.join('-')}`),
      ].join(' '),
  );
}

test('inherited parts are of the ancestor, and merged ones name the child and its positions', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [
    user('Go', { channel: 'chat', sender: 'ada', sender_name: 'Ada' }),
    assistant([toolCall('c1', 'look', {})], { model: 'a/b', run: 'r1' }),
    toolResult({ toolCallId: 'c1', toolName: 'look' }, 'seen', { run: 'r1' }),
  ]);
  store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Look closer.' } });
  store.entries.append('child', [assistant('Done.', { model: 'c/d', run: 'r2' })]);
  store.lineage.merge('child');
  const first = ['2 message user of main', '3 message assistant of main', '4 result tool of main'];
  expect(await lines(store, 'child')).toEqual([
    `${first[0]} ↑ by Ada`,
    `${first[1]} ↑ by a/b in r1`,
    `${first[2]} ↑ by look in r1`,
    '6 task user of child',
    '7 message assistant of child by c/d in r2',
  ]);
  expect(await lines(store, 'main')).toEqual([
    `${first[0]} by Ada`,
    `${first[1]} by a/b in r1`,
    `${first[2]} by look in r1`,
    '6 message user of main from child 5-7',
  ]);
});

test('a view that begins with a summary says who wrote it, and what is rewound is no part', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('one'), assistant('two'), handoff('next', { summary: 'All so far.' })]);
  store.entries.append('main', [user('three'), user('four')]);
  store.history.rewind('main', 5);
  expect(await lines(store, 'main')).toEqual(['4 summary user of main', '5 message user of main']);
  // A boundary without a state has no text in the view.
  store.entries.append('main', [handoff('empty'), user('five')]);
  expect((await lines(store, 'main')).map((line) => line.split(' ')[1])).toEqual(['message']);
  await expect(blame(storeUnderTest(store), 'nobody')).rejects.toMatchObject({ code: 'TAPE_NO_SESSION' });
});

test('a compaction names the session of its summarizer and its model, and runs are those of the answers', async () => {
  await using s = await served((request) => ({ text: `Answer ${request.messages.length}.` }), {
    compaction: { keep: { turns: 1 } },
  });
  for (const n of [1, 2, 3]) await s.main.run(`Question ${n} ${'of many words '.repeat(20)}`);
  const made = await s.main.compact();
  expect(made?.summarizer).toMatch(/^main-/);
  const { parts, digest } = await blame(s.deck, 'main');
  expect(parts[0]).toMatchObject({
    what: 'summary',
    summarizer: made?.summarizer,
    model: 'test-model',
    session: 'main',
  });
  const answers = parts.filter(({ role }) => role === 'assistant');
  expect(answers.length).toBeGreaterThan(0);
  for (const { run, model } of answers)
    expect({ run, model }).toEqual({ run: expect.any(String), model: 'test-model' });
  expect(digest).toBe((await s.main.view()).digest);
});

test('an imported answer has the model of its source, and no run', async () => {
  const store = openStore();
  const { id } = store.imports.stage('main');
  store.imports.append(id, [user('Hi'), assistant('Hello.', { model: 'claude-x', source: 'claude-code' })]);
  store.imports.publish([id]);
  const { parts } = await blame(storeUnderTest(store), 'main');
  expect(parts.map(({ seq, model, source, run }) => [seq, model, source, run])).toEqual([
    [2, undefined, undefined, undefined],
    [3, 'claude-x', 'claude-code', undefined],
  ]);
});

test('the view is that of the policy of the last model call, unless another is given', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('one'), handoff('next', { summary: 'All so far.' }), user('two')]);
  const positions = async (options?: { policy: ViewPolicy }) =>
    (await blame(storeUnderTest(store), 'main', options)).parts.map(({ seq }) => seq);
  expect(await positions()).toEqual([3, 4]);
  const { manifest } = view(store.views.entries('main', { policy: 'full' }), { policy: 'full' });
  store.entries.append('main', [assistant('three', { view: JSON.parse(JSON.stringify(manifest())) })]);
  expect(await positions()).toEqual([2, 4, 5]);
  expect(await positions({ policy: 'last-boundary' })).toEqual([3, 4, 5]);
  const { digest } = await blame(storeUnderTest(store), 'main');
  expect(digest).toBe(view(store.views.entries('main', { policy: 'full' }), { policy: 'full' }).digest);
});

test('a part is of the turn of the message that began it, also where the view begins later', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [
    user('one'),
    assistant([toolCall('c1', 'look', {})], { run: 'r1' }),
    toolResult({ toolCallId: 'c1', toolName: 'look' }, 'seen', { run: 'r1' }),
    assistant('two', { run: 'r1' }),
    user('three'),
    assistant('four'),
  ]);
  store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Look closer.' } });
  store.entries.append('child', [assistant('Done.')]);
  const turns = async (session: string, policy: ViewPolicy) =>
    (await blame(storeUnderTest(store), session, { policy })).parts.map(({ seq, turn }) => [seq, turn]);
  const all = [2, 3, 4, 5].map((seq) => [seq, 2]);
  expect(await turns('main', 'full')).toEqual([...all, [6, 6], [7, 6]]);
  expect((await turns('child', 'full')).slice(-2)).toEqual([
    [9, 9],
    [10, 9],
  ]);
  expect(await turns('main', parsePolicy('window:3'))).toEqual([
    [5, 2],
    [6, 6],
    [7, 6],
  ]);
});
