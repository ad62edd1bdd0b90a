import { delegateTool } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import {
  assistant,
  type Draft,
  type JsonObject,
  note,
  result as resultDraft,
  type SqliteTapeStore,
  toolCall,
  user,
  view,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { recovered } from '../support/recovery.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const run = 'r';
const said = (text: string): Draft => assistant(text, { run, finish: 'stop' });
const asking = (input: JsonObject): Draft => assistant([toolCall('c1', 'delegate', input)], { run });
const tasks = (...names: string[]) => ({ tasks: names.map((name) => ({ task: `task ${name}` })) });
const none = { resumed: [], aborted: [], merged: [], waiting: [], busy: [], failed: [] };

/** `main` as a process leaves it that was killed in a call for children. */
function killedIn(input: JsonObject): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run }), asking(input)]);
  return store;
}

/** A child that the call had started, and its answer: `completed` when it had ended. */
function started(
  store: SqliteTapeStore,
  name: string,
  { says, ...more }: { says?: string; deliver?: 'merge+turn' } = {},
) {
  const { deliver = 'tool-result' } = more;
  store.lineage.fork('main', { name, deliver, spawnCall: 'c1', intention: { nextSteps: `task ${name}` } });
  if (says === undefined) return;
  store.entries.append(name, [said(says)]);
  store.sessions.update(name, { task: 'completed' });
}

const resultsOf = (store: SqliteTapeStore, session = 'main') =>
  [...store.entries.read(session, { kind: 'tool-result' })].map(({ payload }) =>
    isObject(payload) && isObject(payload.output) ? payload.output.value : undefined,
  );
const answersOf = (store: SqliteTapeStore, session = 'main') =>
  entryLines(store.entries.read(session, { own: true })).filter((line) => /^assistant: \w/.test(line));
const shownTo = (store: SqliteTapeStore, session = 'main') =>
  JSON.stringify(view([...store.views.entries(session)]).messages);
const timesIn = (text: string, part: string) => text.split(part).length - 1;
const mergesOf = (store: SqliteTapeStore) =>
  entryLines(store.entries.read('main', { kind: 'anchor' })).filter((line) => line.includes('merge/'));

test('a call gets the outcomes of its children, and names its tasks that never started', async () => {
  const store = killedIn(tasks('a', 'b', 'c'));
  started(store, 'a', { says: 'A is done.' });
  started(store, 'b');
  await using home = await scriptedDeck(
    [
      { text: 'B is done.', when: { session: 'b' } },
      { text: 'I see both.', when: { session: 'main' } },
    ],
    { store },
  );
  // The children end first; then the run that waited for them goes on.
  expect(await recovered(home.deck)).toEqual({ ...none, resumed: ['b', 'main'], merged: ['a', 'b'] });
  expect(resultsOf(store)).toEqual([
    {
      results: [
        { session: 'a', status: 'completed', text: 'A is done.' },
        { session: 'b', status: 'completed', text: 'B is done.' },
        { task: 'task c', status: 'not_started' },
      ],
    },
  ]);
  // The model reads each report once.
  for (const text of ['A is done.', 'B is done.']) expect(timesIn(shownTo(store), text)).toBe(1);
  expect(mergesOf(store)).toEqual(['anchor merge/a', 'anchor merge/b']);
  expect(store.sessions.find('main')).toMatchObject({ head: store.sessions.find('main')?.settled });
});

test('a background call gets the names of its children, and each result starts one turn', async () => {
  const store = killedIn({ ...tasks('a', 'b'), background: true, trigger_on_complete: 'notify_parent' });
  started(store, 'a', { says: 'A is done.', deliver: 'merge+turn' });
  await using home = await scriptedDeck([{ text: 'They work.' }, { text: 'I see.' }, { text: 'too much' }], {
    store,
  });
  expect(await recovered(home.deck)).toEqual({ ...none, resumed: ['main'], merged: ['a'] });
  expect(resultsOf(store)).toEqual([{ started: ['a'], not_started: ['task b'] }]);
  // The run that was cut off comes first. All is over when the recovery is: nothing is stopped when the deck is
  // closed then.
  expect(answersOf(store)).toEqual(['assistant: They work.', 'assistant: I see.']);
  expect(timesIn(shownTo(store), 'A is done.')).toBe(1);
  expect(await recovered(home.deck)).toEqual(none);
  expect(answersOf(store)).toHaveLength(2);
});

test('a result whose message alone is left still starts its turn', async () => {
  const store = killedIn({});
  started(store, 'a', { says: 'A is done.', deliver: 'merge+turn' });
  store.entries.append('main', [{ kind: 'tool-result', payload: result('c1') }]);
  store.lineage.merge('a', { notify: true });
  await using home = await scriptedDeck([{ text: 'I see.' }], { store });
  expect(await recovered(home.deck, { abort: true })).toEqual({ ...none, aborted: ['main'] });
  expect(store.inbox.list('main')).toHaveLength(1);
  expect(await recovered(home.deck, { session: 'main' })).toEqual({ ...none, resumed: ['main'] });
  expect(answersOf(store)).toEqual(['assistant: I see.']);
  expect(store.inbox.list('main')).toEqual([]);
});

test('an interrupted turn is not answered by the next: each result has its own', async () => {
  const store = killedIn({});
  store.entries.append('main', [{ kind: 'tool-result', payload: result('c1') }]);
  started(store, 'a', { says: 'A is done.', deliver: 'merge+turn' });
  started(store, 'b', { says: 'B is done.', deliver: 'merge+turn' });
  store.lineage.merge('a', { notify: true });
  const [notice] = store.inbox.list('main');
  const lease = store.leases.acquire('main', { id: 'killed' });
  const drafts = notice?.body.type === 'input' ? notice.body.drafts : [];
  store.inbox.drain(lease, {
    taken: [{ id: notice?.id ?? '', drafts: drafts.map((d) => ({ ...d, meta: { ...d.meta, run: 'cut' } })) }],
  });
  store.leases.release(lease);
  await using home = await scriptedDeck([{ text: 'I see A.' }, { text: 'I see B.' }, { text: 'too much' }], {
    store,
  });
  expect(await recovered(home.deck)).toEqual({ ...none, resumed: ['main'], merged: ['b'] });
  expect(answersOf(store)).toEqual(['assistant: I see A.', 'assistant: I see B.']);
});

test('a run without the tool reports the outcomes of children, and the rest arrives as merges', async () => {
  const store = killedIn(tasks('a', 'b'));
  started(store, 'a', { says: 'A is done.' });
  started(store, 'b');
  // The inbox item for the call's result is not shown.
  store.inbox.post('main', mergeOf(store, 'a', { context: false, at: 'step' }));
  await using home = await scriptedDeck(
    [
      { text: 'I see A.', when: { session: 'main' } },
      { text: 'B is done.', when: { session: 'b' } },
    ],
    { store },
  );
  expect(await (await home.deck.session('main')).run()).toMatchObject({ finish: 'stop', text: 'I see A.' });
  expect(resultsOf(store)).toEqual([
    {
      results: [
        { session: 'a', status: 'completed', text: 'A is done.' },
        { session: 'b', status: 'running' },
      ],
    },
  ]);
  expect(await recovered(home.deck)).toEqual({ ...none, resumed: ['b'], merged: ['b'] });
  for (const text of ['A is done.', 'B is done.']) expect(timesIn(shownTo(store), text)).toBe(1);
  expect(mergesOf(store)).toEqual(['anchor merge/a', 'anchor merge/b']);
});

test('a run with the tool repeats the call, which finds its children and starts the missing ones', async () => {
  const store = killedIn(tasks('a', 'b'));
  const [key, nextSteps] = ['2:c1:1', 'task a'];
  const a = store.lineage.fork('main', {
    key,
    deliver: 'tool-result',
    spawnCall: 'c1',
    intention: { nextSteps },
  });
  store.entries.append(a.id, [said('A is done.')]);
  store.sessions.update(a.id, { task: 'running' });
  await using home = await scriptedDeck(
    [
      { text: 'I see both.', when: { session: 'main' } },
      { text: 'B is done.', when: { text: 'task b' } },
    ],
    { store, tools: { delegate: delegateTool() } },
  );
  expect(await (await home.deck.session('main')).run()).toMatchObject({ text: 'I see both.' });
  const children = store.sessions.list({ parent: 'main', all: true });
  expect(children).toMatchObject([
    { id: a.id, task: 'completed', delivery: 'merged' },
    { task: 'completed', delivery: 'merged' },
  ]);
  expect(answersOf(store, a.session)).toEqual(['assistant: A is done.']);
  for (const text of ['A is done.', 'B is done.']) expect(timesIn(shownTo(store), text)).toBe(1);
});

test('an end that only the tape shows suffices: its model is not called again', async () => {
  const store = openStore();
  await using home = await scriptedDeck([{ text: 'A is done.' }], { store });
  const main = await home.deck.session('main');
  const child = await main.fork({ key: 'a', deliver: 'merge', task: 'task a' });
  await child.run();
  store.sessions.update(child.name, { task: 'running' });
  const [outcome] = await main.delegate({ task: 'task a', key: 'a' });
  expect(outcome).toMatchObject({ session: child.name, status: 'completed', text: 'A is done.' });
  expect(answersOf(store, child.name)).toHaveLength(1);
});

test('a result that a call reported is merged once, whatever form it has', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run }), asking(tasks('a'))]);
  const output = { type: 'object', properties: { port: { type: 'number' } } };
  store.lineage.fork('main', {
    name: 'a',
    deliver: 'tool-result',
    spawnCall: 'c1',
    terms: { output, strategy: 'structured' },
  });
  store.entries.append('a', [resultDraft({ port: 80 })]);
  store.sessions.update('a', { task: 'completed' });
  store.inbox.post('main', mergeOf(store, 'a', { context: false, at: 'step' }));
  await using home = await scriptedDeck([{ text: 'I see it.' }], { store });
  expect(await recovered(home.deck)).toEqual({ ...none, resumed: ['main'], merged: ['a'] });
  expect(resultsOf(store)).toEqual([
    { results: [{ session: 'a', status: 'completed', output: { port: 80 } }] },
  ]);
  expect(mergesOf(store)).toHaveLength(1);
  expect(timesIn(shownTo(store), '80')).toBe(1);
});

test('a queued merge with other options is waited for', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'a', deliver: 'merge' });
  store.entries.append('a', [said('A is done.')]);
  store.sessions.update('a', { task: 'completed' });
  const lease = store.leases.acquire('main', { id: 'other-owner' });
  store.inbox.post('main', mergeOf(store, 'a', { charsMax: 100 }));
  await using home = await scriptedDeck([], { store });
  expect(await recovered(home.deck, { waitMs: 0 })).toEqual({ ...none, busy: ['a'] });
  while (!store.leases.release(lease)) store.inbox.drain(lease);
  expect(mergesOf(store)).toHaveLength(1);
});

test('a call whose id was used before does not report the children of the older one', async () => {
  const store = killedIn(tasks('old'));
  started(store, 'old', { says: 'Long ago.' });
  await using home = await scriptedDeck([], { store });
  await home.deck.recover();
  store.entries.append('main', [said('I see.'), user('Again', { run }), asking(tasks('new'))]);
  started(store, 'new', { says: 'Just now.' });
  await home.deck.recover();
  expect(resultsOf(store)).toEqual([
    { results: [{ session: 'old', status: 'completed', text: 'Long ago.' }] },
    { results: [{ session: 'new', status: 'completed', text: 'Just now.' }] },
  ]);
  expect(timesIn(shownTo(store), 'Just now.')).toBe(1);
});

test('a child that waits for approval does not block the outcomes of its siblings', async () => {
  const store = killedIn(tasks('a', 'b'));
  started(store, 'a', { says: 'A is done.' });
  started(store, 'b');
  const pay = tool({ inputSchema: z.object({}), needsApproval: true, execute: async () => 'paid' });
  const answers: ScriptAnswer[] = [
    { text: 'I see A.', when: { session: 'main' } },
    { toolCalls: [{ name: 'pay', input: {}, id: 'p1' }], when: { session: 'b' } },
    { text: 'B has paid.', when: { session: 'b' } },
  ];
  await using home = await scriptedDeck(answers, { store, tools: { pay } });
  expect(await recovered(home.deck)).toEqual({
    ...none,
    resumed: ['main'],
    waiting: ['b'],
    merged: ['a'],
  });
  expect(resultsOf(store)).toMatchObject([
    { results: [{ text: 'A is done.' }, { session: 'b', status: 'running' }] },
  ]);
  const { run: goesOn } = await (await home.deck.session('b')).respond('p1', { approved: true });
  await goesOn;
  await expect.poll(() => mergesOf(store)).toEqual(['anchor merge/a', 'anchor merge/b']);
  for (const text of ['A is done.', 'B has paid.']) expect(timesIn(shownTo(store), text)).toBe(1);
});

test('an abort loses no result of children that had ended', async () => {
  const delegate = delegateTool();
  await using home = await scriptedDeck(
    [
      { toolCalls: [{ name: 'delegate', input: tasks('a', 'b'), id: 'c1' }], when: { session: 'main' } },
      { text: 'I go on.', when: { session: 'main' } },
      { text: 'A is done.', when: { text: 'task a' } },
      { text: 'too late', delayMs: 60_000, when: { text: 'task b' } },
    ],
    // Nothing is waited for: the call gets its result in the next run.
    { tools: { delegate }, limits: { abortGraceMs: 0 } },
  );
  const { store } = home;
  const main = await home.deck.session('main');
  const first = main.run('Go');
  await expect.poll(() => store.inbox.list('main').length).toBe(1);
  first.abort('enough');
  expect(await first).toMatchObject({ finish: 'aborted' });
  expect(await main.run('And?', { useTools: false })).toMatchObject({ finish: 'stop' });
  expect(timesIn(shownTo(store), 'A is done.')).toBe(1);
  expect(mergesOf(store)).toHaveLength(2);
});

test('a merge into a parent that died in a call gives that call its result', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run }), assistant([toolCall('p1', 'pay', {})], { run })]);
  await using home = await scriptedDeck([{ text: 'A is done.' }], { store });
  const main = await home.deck.session('main');
  expect(await main.delegate({ task: 'task a' })).toMatchObject([{ merged: { state: 'merged' } }]);
  expect(resultsOf(store)).toEqual(['Outcome unknown: aborted by host restart.']);
});

function result(toolCallId: string): JsonObject {
  return { type: 'tool-result', toolCallId, toolName: 'delegate', output: { type: 'text', value: 'ok' } };
}

/** A merge as it is left in an inbox. */
function mergeOf(store: SqliteTapeStore, child: string, more: object) {
  const { id = '', headHash = '' } = store.sessions.find(child) ?? {};
  const key = `merge:${id}:${headHash}`;
  return { body: { type: 'merge' as const, draft: { ...more, child: id } }, source: 'agent', key };
}

test('a call that the provider ran waits for nothing, though a client call has the same id', async () => {
  const store = openStore();
  store.sessions.open('main');
  const search = { ...toolCall('c1', 'web_search', { q: 1 }), providerExecuted: true };
  store.entries.append('main', [
    user('Go', { run }),
    assistant([search, toolCall('c1', 'look', { at: 1 })], { run }),
  ]);
  store.entries.append('main', [
    note('run/waiting', { run, calls: [{ toolCallId: 'c1', toolName: 'look', for: 'result' }] }),
  ]);
  await using home = await scriptedDeck([{ text: 'I see.' }], { store });
  const main = await home.deck.session('main');
  expect((await main.status()).waiting).toEqual([
    { toolCallId: 'c1', name: 'look', input: { at: 1 }, for: 'result' },
  ]);
  const replayed = await Array.fromAsync(main.replay());
  const events = replayed.flatMap((chunk) => (chunk.type === 'data-event' ? [chunk.data] : []));
  const calls = events.filter((event) => isObject(event) && String(event.type).startsWith('tool-'));
  expect(calls).toMatchObject([
    { type: 'tool-detected', name: 'look' },
    { type: 'tool-waiting', calls: [{ name: 'look', input: { at: 1 } }] },
  ]);
  await main.run('Go on');
  expect(
    [...store.entries.read('main', { kind: 'tool-result' })].map(({ payload }) => payload),
  ).toMatchObject([{ toolCallId: 'c1', toolName: 'look' }]);
});
