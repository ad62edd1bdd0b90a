import { assistant, type Draft, note, type SqliteTapeStore, toolCall, user, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { recovered } from '../support/recovery.ts';
import { entryLines } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const run = 'killed';
const delegating = toolCall('d', 'delegate', { tasks: [{ task: 'One.' }, { task: 'Two.' }] });
const paying = toolCall('p', 'pay', {});
const waiting = note('run/waiting', { run, calls: [{ toolCallId: 'p', toolName: 'pay', for: 'approval' }] });

/** A session that waits with a call, after a call that started children. */
const waitingParent: readonly Draft[] = [assistant([paying, delegating], { run }), waiting];

/** A child that had said something when its process died. */
function cutChild(store: SqliteTapeStore, parent: string, name: string, spawnCall = 'd'): void {
  store.lineage.fork(parent, { name, deliver: 'tool-result', spawnCall });
  store.sessions.update(name, { task: 'running' });
  const chunks = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: `${name} so far` },
  ].map((chunk, index) => ({ index, chunk }));
  store.live.save([{ session: name, run, chunks }]);
}

const resultsOf = (store: SqliteTapeStore, name: string) =>
  [...store.entries.read(name, { own: true, kind: 'tool-result' })].map(({ payload }) =>
    isObject(payload) && isObject(payload.output) ? payload.output.value : undefined,
  );

const outcome = (session: string) => ({
  session,
  status: 'aborted',
  text: `${session} so far`,
  error: 'aborted by parent',
});

test('with abort a call that started children gets their ends once, before its session ends and takes their merges', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run }), ...waitingParent]);
  cutChild(store, 'main', 'one');
  cutChild(store, 'main', 'two');
  await using deck = await openDeck({ store });
  const { aborted, merged, ...others } = await recovered(deck, { session: 'main', abort: true, waitMs: 0 });
  expect([aborted.toSorted(), merged, others]).toEqual([
    ['main', 'one', 'two'],
    ['one', 'two'],
    { resumed: [], waiting: [], busy: [], failed: [] },
  ]);
  expect(resultsOf(store, 'main')).toEqual([
    { results: [outcome('one'), outcome('two')] },
    'Not run: the run was aborted.',
  ]);
  const lines = entryLines(store.entries.read('main', { own: true }));
  expect(lines.filter((line) => /^(anchor|event) /.test(line))).toEqual([
    'anchor session/start',
    'event run/waiting',
    'event run/aborted',
    'anchor merge/one',
    'anchor merge/two',
  ]);
  // The model reads each report once.
  const shown = JSON.stringify(view([...store.views.entries('main')]).messages);
  expect(shown.split('one so far').length).toBe(2);
  expect(await recovered(deck, { session: 'main', abort: true })).toMatchObject({ aborted: [], merged: [] });
});

test('with abort a child that waits with a call takes the merges of its children, and is merged itself', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'middle', deliver: 'merge' });
  store.sessions.update('middle', { task: 'running' });
  store.entries.append('middle', waitingParent);
  cutChild(store, 'middle', 'one');
  cutChild(store, 'middle', 'two');
  await using deck = await openDeck({ store });
  const { aborted, merged, ...others } = await recovered(deck, { abort: true, waitMs: 0 });
  expect([aborted.toSorted(), merged, others]).toEqual([
    ['middle', 'one', 'two'],
    ['one', 'two', 'middle'],
    { resumed: [], waiting: [], busy: [], failed: [] },
  ]);
  expect(resultsOf(store, 'middle')[0]).toEqual({ results: [outcome('one'), outcome('two')] });
  const [why] = store.entries.read('middle', { kind: 'event', name: 'run/aborted' });
  expect(why?.payload).toMatchObject({ reason: 'aborted by recovery' });
  expect(store.sessions.find('middle')).toMatchObject({ task: 'aborted', delivery: 'merged' });
});
