import { statusesOf, statusOf } from '@tapedeck/runtime';
import { isInterrupted } from '@tapedeck/runtime/internal';
import { assistant, type Draft, note, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';

const run = 'r';
const asked = user('Go', { run });
const calling = assistant([toolCall('c1', 'pay', {})], { run });
const repaired = toolResult(
  { toolCallId: 'c1', toolName: 'pay' },
  { type: 'text', value: '' },
  { source: 'repair' },
);

const tapes: readonly (readonly [name: string, interrupted: boolean, entries: readonly Draft[]])[] = [
  ['nothing', false, []],
  ['a message that no run took up', false, [user('Go')]],
  ['a message that a run took up', true, [asked]],
  ['an answer', false, [asked, assistant('Done.', { run })]],
  ['an answer that broke off', true, [asked, assistant('Do', { run, partial: true })]],
  [
    'an answer whose process died',
    true,
    [asked, assistant('Do', { run, partial: true }), note('run/interrupted', { run })],
  ],
  ['a call', true, [asked, calling]],
  ['a call that waits', false, [asked, calling, note('run/waiting', { run, calls: [] })]],
  ['a call without a result, closed since', true, [asked, calling, repaired]],
  ['an aborted call', false, [asked, calling, note('run/aborted', { run, reason: 'enough' })]],
  ['a failure', false, [asked, note('run/error', { run, message: 'overloaded' })]],
  ['a run at its limit', false, [asked, note('run/halted', { run, message: 'enough' })]],
  ['a transcript that ends with a call', false, [user('Go'), assistant([toolCall('c1', 'pay', {})])]],
  ['a run, and many entries of others', true, [asked, ...Array.from({ length: 60 }, () => user('Hm.'))]],
];

test.each(tapes)(
  'the end of a tape shows whether its last run was interrupted: %s',
  async (_, interrupted, entries) => {
    using store = openStore();
    store.sessions.open('main');
    if (entries.length > 0) store.entries.append('main', entries);
    const info = store.sessions.open('main');
    expect(await isInterrupted(store, info.id)).toBe(interrupted);
    expect((await statusOf({ store }, info)).state === 'interrupted').toBe(interrupted);
  },
);

test('a fork does not inherit the interruption of its parent', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [asked]);
  store.lineage.fork('main', { name: 'kid' });
  const states = async () => (await statusesOf({ store }, store.sessions.list())).map(({ state }) => state);
  expect(await states()).toEqual(['idle', 'interrupted']);
  // It began its task, and no process runs it.
  store.sessions.update('kid', { task: 'running' });
  expect(await states()).toEqual(['interrupted', 'interrupted']);
});

test('a session is not interrupted while a process runs it, nor when it is archived', async () => {
  using store = openStore();
  const { id } = store.sessions.open('main');
  store.entries.append('main', [asked]);
  const lease = store.leases.acquire('main', { id: 'other-owner' });
  expect((await statusOf({ store }, { id })).state).toBe('busy');
  store.leases.release(lease);
  expect((await statusOf({ store }, { id })).state).toBe('interrupted');
  store.sessions.update('main', { lifecycle: 'archived' });
  expect((await statusOf({ store }, { id })).state).toBe('idle');
});
