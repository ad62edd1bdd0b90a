import {
  anchor,
  assistant,
  compaction,
  note,
  prune,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const shown = (store: SqliteTapeStore, name = 'main') =>
  JSON.stringify(view(store.views.entries(name)).messages);
const refused = (data: object, message = '') => ({
  code: 'SESSION_CANNOT_UNDO',
  message: expect.stringContaining(message),
  data: { session: 'main', ...data },
});

/** A session of two turns: messages at 2 to 5. */
async function talked() {
  const store = openStore();
  const home = await scriptedDeck([{ text: 'Fine.' }], { store });
  const main = await home.deck.session('main');
  store.entries.append('main', [user('One'), assistant('First.'), user('Two'), assistant('Second.')]);
  return Object.assign(home, { main });
}
const summary = compaction({ summary: 'Of the first.', range: [1, 3] }, { keepFrom: 4 });

test('the last summary is taken back, and that is taken back; nothing is removed', async () => {
  await using home = await talked();
  const { main, store } = home;
  const whole = shown(store);
  const { to: seq } = store.entries.append('main', [summary]);
  const compacted = shown(store);
  expect(compacted).not.toBe(whole);
  expect(await main.uncompact()).toEqual({
    session: 'main',
    seq: seq + 1,
    to: seq - 1,
    hidden: 1,
    shown: 0,
    forks: [],
    undone: seq,
  });
  expect(shown(store)).toBe(whole);
  expect([...store.entries.read('main')].at(-1)).toMatchObject({
    kind: 'rewind',
    payload: { mode: 'uncompact' },
  });
  await main.unrewind();
  expect(shown(store)).toBe(compacted);
  expect(await main.uncompact()).toMatchObject({ undone: seq });
  expect(shown(store)).toBe(whole);
});

test('so is the last pruning; of several the last, one after the other', async () => {
  await using home = await talked();
  const { main, store } = home;
  const call = { toolCallId: 'c1', toolName: 'read' };
  store.entries.append('main', [assistant([toolCall('c1', 'read', {})]), toolResult(call, 'a long text')]);
  const whole = shown(store);
  store.entries.append('main', [summary]);
  const compacted = shown(store);
  store.entries.append('main', [prune([{ seq: 7, toolCallId: 'c1', tokens: 3 }], { trigger: 'manual' })]);
  expect(shown(store)).toContain('<output pruned');
  expect(await main.uncompact()).toMatchObject({ undone: 9, to: 8 });
  expect(shown(store)).toBe(compacted);
  expect(await main.uncompact()).toMatchObject({ undone: 8, to: 7 });
  expect(shown(store)).toBe(whole);
});

test('events after it are no obstacle; whatever was said is, until somebody rewinds it', async () => {
  await using home = await talked();
  const { main, store } = home;
  const { to: seq } = store.entries.append('main', [summary]);
  store.entries.append('main', [note('run/aborted', { run: 'r', reason: 'enough' })]);
  store.entries.append('main', [user('More'), assistant('So.')]);
  const after = { seq: seq + 2, kind: 'message' };
  await expect(main.uncompact()).rejects.toMatchObject(
    refused({ seq, after, message: seq + 2 }, `message main@${seq + 2} follows it`),
  );
  await main.rewind(seq + 2);
  expect(await main.uncompact()).toMatchObject({ undone: seq });
});

test.each([
  { what: 'an anchor', draft: anchor('here'), kind: 'anchor' },
  { what: 'an answer', draft: assistant('Said.'), kind: 'message' },
  { what: 'the report of a merge', draft: user('Told.', { source: 'merge' }), kind: 'message' },
])('$what after it names no message to go back to', async ({ draft, kind }) => {
  await using home = await talked();
  const { main, store } = home;
  const { to: seq } = store.entries.append('main', [summary]);
  store.entries.append('main', [draft]);
  const before = [...store.entries.read('main')];
  await expect(main.uncompact()).rejects.toMatchObject({
    code: 'SESSION_CANNOT_UNDO',
    data: { session: 'main', seq, after: { seq: seq + 1, kind } },
  });
  expect([...store.entries.read('main')]).toEqual(before);
});

test('where there is none in view there is nothing to take back', async () => {
  await using home = await talked();
  const { main, store } = home;
  await expect(main.uncompact()).rejects.toMatchObject(refused({}, 'its view has no summary'));
  store.entries.append('main', [summary]);
  await main.handoff('next', { summary: 'On.' });
  await expect(main.uncompact()).rejects.toMatchObject(refused({}, 'its view has no summary'));
});

test('a fork takes back for itself what it inherited', async () => {
  await using home = await talked();
  const { main, store } = home;
  const whole = shown(store);
  const { to: seq } = store.entries.append('main', [summary]);
  const compacted = shown(store);
  const branch = await main.branch();
  expect(await branch.uncompact()).toMatchObject({ undone: seq, session: branch.name });
  expect(shown(store, branch.name)).toBe(whole);
  expect(shown(store)).toBe(compacted);
});

test('it is refused while somebody writes the session, and of one that is archived', async () => {
  await using home = await talked();
  const { main, store } = home;
  store.entries.append('main', [summary]);
  const lease = store.leases.acquire('main', { id: 'alice' });
  await expect(main.uncompact()).rejects.toMatchObject({
    code: 'SESSION_BUSY',
    message: expect.stringContaining("cannot compact 'main'"),
  });
  store.leases.release(lease);
  store.setLifecycle('main', 'archived');
  await expect(main.uncompact()).rejects.toMatchObject({ code: 'TAPE_ARCHIVED' });
});
