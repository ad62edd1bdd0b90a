import { assistant, note, type SqliteTapeStore, toolCall, user } from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { fixedClock } from '../support/clock.ts';
import { openDeck } from '../support/deck.ts';
import { recovered } from '../support/recovery.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

/** Children as a process that was killed leaves them, in every state. */
function leftBehind(): SqliteTapeStore {
  // A clock that does not move: no lease expires.
  const store = openStore(':memory:', { now: fixedClock().now });
  store.sessions.open('main');
  const child = (parent: string, name: string) => store.lineage.fork(parent, { name, deliver: 'merge' });
  child('main', 'ended');
  store.entries.append('ended', [assistant('It is done.', { run: 'r' })]);
  store.sessions.update('ended', { task: 'completed' });
  // Its answer is there; that its task is over is not.
  child('main', 'answered');
  store.sessions.update('answered', { task: 'running' });
  store.entries.append('answered', [assistant('Answered.', { run: 'r', finish: 'stop' })]);
  child('main', 'calling');
  store.sessions.update('calling', { task: 'running' });
  store.entries.append('calling', [user('Pay'), assistant([toolCall('c1', 'pay', {})], { run: 'r' })]);
  child('main', 'waiting');
  child('waiting', 'below');
  store.sessions.open('other');
  child('other', 'elsewhere');
  return store;
}

const none = { resumed: [], aborted: [], merged: [], waiting: [], busy: [], failed: [] };
const merges = (store: SqliteTapeStore, name: string): string[] =>
  entryLines(store.entries.read(name, { kind: 'anchor' })).filter((line) => line.includes('merge/'));

test('recovery resumes orphaned children, the deepest first, and merges each once', async () => {
  await using home = await scriptedDeck([{ text: 'Here I am.' }], { store: leftBehind() });
  const { deck, store } = home;
  const report = await recovered(deck, { session: 'main' });
  expect(report.merged.toSorted()).toEqual(['answered', 'below', 'calling', 'ended', 'waiting']);
  expect(report.merged[0]).toBe('below');
  expect({ ...report, resumed: report.resumed.toSorted(), merged: [] }).toEqual({
    ...none,
    resumed: ['below', 'calling', 'waiting'],
  });
  expect(entryLines(store.entries.read('calling', { own: true })).slice(-2)).toEqual([
    'pay c1 → error-text Outcome unknown: aborted by host restart.',
    'assistant: Here I am.',
  ]);
  expect(merges(store, 'main')).toHaveLength(4);
  expect(merges(store, 'waiting')).toEqual(['anchor merge/below']);
  expect(await recovered(deck, { session: 'main' })).toEqual(none);
  expect(store.sessions.find('elsewhere')?.delivery).toBeUndefined();
  expect(await deck.recover()).toMatchObject({ resumed: ['elsewhere'], merged: ['elsewhere'] });
  expect([...store.verify()]).toEqual([]);
});

test('with abort it keeps an end that the tape records, and aborts the other children', async () => {
  await using home = await scriptedDeck([], { store: leftBehind() });
  const { deck, store } = home;
  const report = await deck.recover({ session: 'main', abort: true });
  expect(report.aborted.toSorted()).toEqual(['below', 'calling', 'waiting']);
  expect(report).toMatchObject({ resumed: [], busy: [], failed: [] });
  const tasks = ['ended', 'answered', 'calling', 'waiting', 'below'].map(
    (name) => store.sessions.find(name)?.task,
  );
  expect(tasks).toEqual(['completed', 'completed', 'aborted', 'aborted', 'aborted']);
  expect(merges(store, 'main')).toHaveLength(4);
});

test('with abort it ends a child that waits for an answer, without running its call, and merges it', async () => {
  const store = openStore();
  store.sessions.open('main');
  const tools = {
    publish: tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'out' }),
  };
  const script = [{ toolCalls: [{ name: 'publish', input: {}, id: 'c1' }] }];
  await using home = await scriptedDeck(script, { store, tools });
  const { deck } = home;
  await (await deck.session('main')).delegate({ task: 'Publish it', name: 'kid' });
  expect(await recovered(deck)).toEqual({ ...none, waiting: ['kid'] });
  expect(await recovered(deck, { abort: true })).toEqual({ ...none, aborted: ['kid'], merged: ['kid'] });
  expect(entryLines(store.entries.read('kid', { kind: 'tool-result' }))).toEqual([
    'publish c1 → error-text Not run: the run was aborted.',
  ]);
  expect(merges(store, 'main')).toEqual(['anchor merge/kid']);
  expect(await recovered(deck)).toEqual(none);
});

test('without a model it changes nothing, unless no child has to continue', async () => {
  const store = leftBehind();
  await using home = await scriptedDeck([], { store });
  const before = store.sessions.list({ all: true });
  await expect(home.deck.recover({ session: 'missing' })).rejects.toMatchObject({ code: 'TAPE_NO_SESSION' });
  await using deck = await openDeck({ store });
  await expect(deck.recover()).rejects.toMatchObject({ code: 'SESSION_NO_MODEL' });
  expect(store.sessions.list({ all: true })).toEqual(before);
});

test('it leaves alone a child that another process runs, or whose parent another process writes', async () => {
  const store = leftBehind();
  await using home = await scriptedDeck([{ text: 'Here I am.' }], { store });
  const running = store.leases.acquire('calling', { id: 'other-owner' });
  const writing = store.leases.acquire('other', { id: 'other-owner' });
  const report = await home.deck.recover({ waitMs: 0 });
  expect(report.busy.toSorted()).toEqual(['calling', 'elsewhere']);
  expect(report.failed).toEqual([]);
  expect(merges(store, 'other')).toEqual([]);
  // The merge is in the inbox of who writes the parent, and is done once it is done with that.
  expect(store.inbox.list('other')).toHaveLength(1);
  store.inbox.drain(writing);
  expect([store.leases.release(writing), store.leases.release(running)]).toEqual([true, true]);
  expect(await home.deck.recover()).toMatchObject({ resumed: ['calling'], merged: ['calling'] });
  expect(merges(store, 'other')).toEqual(['anchor merge/elsewhere']);
});

test('it first gives a result to a parent that died inside a tool call', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'kid', deliver: 'merge' });
  store.entries.append('kid', [assistant('Done.')]);
  store.sessions.update('kid', { task: 'completed' });
  store.entries.append('main', [assistant([toolCall('c1', 'delegate', {})])]);
  await using home = await scriptedDeck([], { store });
  expect(await recovered(home.deck)).toEqual({ ...none, merged: ['kid'] });
  expect(entryLines(store.entries.read('main', { from: 3 }))).toEqual([
    expect.stringContaining('Outcome unknown'),
    'anchor merge/kid',
    expect.stringContaining('Done.'),
  ]);
});

/** A child whose process died in the middle of its answer: its text so far is saved, and not on its tape yet. */
function cutInAnswer(text: string): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'kid', deliver: 'merge' });
  store.sessions.update('kid', { task: 'running' });
  const chunks = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: text },
  ].map((chunk, index) => ({ index, chunk }));
  store.live.save([{ session: 'kid', run: 'killed', chunks }]);
  return store;
}

const lastOf = (store: SqliteTapeStore, name: string) => entryLines(store.entries.read(name, { last: 1 }))[0];

test('the parent receives both halves of an answer that was cut off and continued', async () => {
  await using home = await scriptedDeck([{ text: 'Second half.' }], { store: cutInAnswer('First half. ') });
  expect(await home.deck.recover()).toMatchObject({ resumed: ['kid'], merged: ['kid'] });
  expect(lastOf(home.store, 'main')).toContain('>\nFirst half. Second half.\n<');
});

test('a structured result that was cut off in the middle is put together', async () => {
  const store = openStore();
  store.sessions.open('main');
  const schema = { type: 'object', properties: { port: { type: 'number' } }, required: ['port'] };
  store.lineage.fork('main', { name: 'kid', deliver: 'merge', terms: { output: schema } });
  store.sessions.update('kid', { task: 'running' });
  store.entries.append('kid', [
    assistant('Found it.', { run: 'killed', finish: 'stop' }),
    user('Return the result.', { run: 'killed', source: 'output' }),
    assistant('{"port":', { run: 'killed', partial: true }),
    note('run/interrupted', { run: 'killed' }),
  ]);
  await using home = await scriptedDeck([{ text: ' 80}' }], { store });
  expect(await home.deck.recover()).toMatchObject({ resumed: ['kid'], merged: ['kid'] });
  expect(store.lineage.collect('kid')).toMatchObject({ value: { port: 80 } });
  expect(store.sessions.find('kid')?.task).toBe('completed');
});

test('with abort it keeps what was saved of an answer: the parent receives it', async () => {
  await using home = await scriptedDeck([], { store: cutInAnswer('First half. ') });
  expect(await recovered(home.deck, { abort: true })).toEqual({ ...none, aborted: ['kid'], merged: ['kid'] });
  expect(home.store.live.read('kid')).toEqual([]);
  expect(entryLines(home.store.entries.read('kid', { own: true })).slice(1)).toEqual([
    'assistant: First half.',
    'event run/interrupted',
    'event run/aborted',
  ]);
  expect(lastOf(home.store, 'main')).toContain('status="aborted" partial="true">\nFirst half. \n<');
});

test('a merge by hand of a child that died in its answer has what was saved of it', async () => {
  await using home = await scriptedDeck([], { store: cutInAnswer('First half. ') });
  await (await home.deck.session('main')).merge('kid');
  expect(home.store.live.read('kid')).toEqual([]);
  expect(lastOf(home.store, 'main')).toContain('status="orphaned"');
  expect(lastOf(home.store, 'main')).toContain('>\nFirst half. \n<');
});

test('what a killed parent had said comes before the merge of its child', async () => {
  const store = cutInAnswer('');
  store.entries.append('main', [user('Go', { run: 'killed' })]);
  store.live.save([
    {
      session: 'main',
      run: 'killed',
      chunks: ['text-start', 'text-delta'].map((type, index) => ({
        index,
        chunk: { type, id: 't', ...(index === 1 && { delta: 'I wait' }) },
      })),
    },
  ]);
  await using home = await scriptedDeck([], { store });
  await home.deck.recover({ abort: true });
  expect(entryLines(store.entries.read('main')).slice(1, 5)).toEqual([
    'user: Go',
    'assistant: I wait',
    'event run/interrupted',
    'anchor merge/kid',
  ]);
});
