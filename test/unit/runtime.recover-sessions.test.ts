import { delegateTool } from '@tapedeck/runtime';
import {
  anchor,
  assistant,
  note,
  openTapeStore,
  type SqliteTapeStore,
  toolCall,
  user,
  view,
} from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { fixedClock } from '../support/clock.ts';
import { openDeck } from '../support/deck.ts';
import { recovered } from '../support/recovery.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const run = 'killed';
const none = { resumed: [], aborted: [], merged: [], waiting: [], busy: [], failed: [] };
const own = (store: SqliteTapeStore, name: string) =>
  entryLines(store.entries.read(name, { own: true })).slice(1);
const digestOf = (store: SqliteTapeStore, name: string) => view([...store.views.entries(name)]).digest;

/** `main`, whose process died in the middle of its answer to "Go", with another message waiting. */
function killedRoot(): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run })]);
  const chunks = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'I beg' },
  ].map((chunk, index) => ({ index, chunk }));
  store.live.save([{ session: 'main', run, chunks }]);
  store.inbox.post('main', {
    body: { type: 'input', drafts: [user('And then?')] },
    mode: 'queue',
    source: 'user',
    key: 'later',
  });
  return store;
}

test.each([
  ['its name', () => 'main'],
  ['its ULID', (store: SqliteTapeStore) => store.sessions.find('main')?.id ?? ''],
])('a killed root is recovered by %s: its run goes on, then its messages are answered', async (_, ref) => {
  const store = killedRoot();
  const before = digestOf(store, 'main');
  await using home = await scriptedDeck([{ text: 'in.' }, { text: 'Then I end.' }], { store });
  const { sessions, ...names } = await home.deck.recover(ref(store));
  expect(names).toEqual({ ...none, resumed: ['main'] });
  expect(own(store, 'main')).toEqual([
    'user: Go',
    'assistant: I beg',
    'event run/interrupted',
    'assistant: in.',
    'user: And then?',
    'assistant: Then I end.',
  ]);
  expect(sessions).toEqual([
    {
      session: 'main',
      id: store.sessions.find('main')?.id,
      act: 'continue',
      model: home.spec,
      view: { before, after: digestOf(store, 'main') },
      head: { before: 2, after: 7 },
      saved: true,
      calls: [],
      queued: 0,
    },
  ]);
  expect(await recovered(home.deck, 'main')).toEqual(none);
});

test.each<readonly [string, (store: SqliteTapeStore) => void, string]>([
  ['an append', (store) => void store.entries.append('main', [anchor('mark')]), 'anchor mark'],
  [
    'the drain of an inbox without an owner',
    (store) => {
      store.inbox.post('main', { body: { type: 'append', drafts: [anchor('mark')] }, source: 'x', key: 'k' });
      store.inbox.drain('main');
    },
    'anchor mark',
  ],
  [
    'a merge',
    (store) => {
      store.lineage.fork('main', { name: 'kid' });
      store.entries.append('kid', [assistant('Done.')]);
      store.lineage.merge('kid');
    },
    'anchor merge/kid',
  ],
])('%s after the death of a run comes after what was saved of its answer', async (_, write, written) => {
  const store = killedRoot();
  write(store);
  expect(own(store, 'main').slice(0, 4)).toEqual([
    'user: Go',
    'assistant: I beg',
    'event run/interrupted',
    written,
  ]);
  expect(store.live.read('main')).toEqual([]);
  expect([...store.verify()]).toEqual([]);
  await using home = await scriptedDeck([{ text: 'in.' }, { text: 'Then I end.' }], { store });
  expect(await recovered(home.deck, 'main')).toMatchObject({ resumed: ['main'], failed: [] });
});

test('a rewind without a lease comes after what was saved of an answer', () => {
  const store = killedRoot();
  // After the partial answer @3 and the note @4.
  expect(store.history.rewind('main', 2)).toMatchObject({ seq: 5, to: 2 });
  expect(store.live.read('main')).toEqual([]);
});

test('an append of the owner leaves the chunks of its run', () => {
  const store = killedRoot();
  const lease = store.leases.acquire('main', { id: 'owner' });
  store.entries.append('main', [anchor('mark')], { lease });
  expect(store.live.read('main')).toHaveLength(1);
});

test('the report says that a part of an answer was saved only when there is one', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run })]);
  const head = { type: 'data-answer', data: { step: 1, model: 'm' } };
  store.live.save([{ session: 'main', run, chunks: [{ index: 0, chunk: head }] }]);
  await using home = await scriptedDeck([{ text: 'Here.' }], { store });
  const { sessions } = await home.deck.recover('main');
  expect(sessions.map(({ saved }) => saved)).toEqual([false]);
});

test('a run without input does the same for one session', async () => {
  const store = killedRoot();
  await using home = await scriptedDeck([{ text: 'in.' }, { text: 'Then I end.' }], { store });
  const main = await home.deck.session('main');
  await main.run();
  await main.idle();
  expect(own(store, 'main').at(-1)).toBe('assistant: Then I end.');
});

test('without a name it recovers roots whose process died, and leaves the messages of idle ones', async () => {
  const store = killedRoot();
  store.sessions.open('idle');
  store.inbox.post('idle', {
    body: { type: 'input', drafts: [user('Hello')] },
    mode: 'queue',
    source: 'user',
    key: 'hello',
  });
  await using home = await scriptedDeck([{ text: 'in.' }, { text: 'Then I end.' }], { store });
  expect(await recovered(home.deck)).toEqual({ ...none, resumed: ['main'] });
  expect(store.inbox.list('idle')).toHaveLength(1);
  expect(await recovered(home.deck, 'idle')).toEqual({ ...none, resumed: ['idle'] });
  expect(store.inbox.list('idle')).toEqual([]);
});

test('with abort a killed root keeps what was saved of its answer, and its messages wait', async () => {
  const store = killedRoot();
  await using deck = await openDeck({ store });
  expect(await recovered(deck, { session: 'main', abort: true })).toEqual({ ...none, aborted: ['main'] });
  expect(own(store, 'main')).toEqual([
    'user: Go',
    'assistant: I beg',
    'event run/interrupted',
    'event run/aborted',
  ]);
  expect(store.inbox.list('main')).toHaveLength(1);
  expect(await recovered(deck, { abort: true })).toEqual(none);
});

test('it reports which calls it repeated, closed and left open', async () => {
  const store = openStore();
  store.sessions.open('main');
  const calls = ['look', 'pay'].map((name) => toolCall(`c-${name}`, name, {}));
  store.entries.append('main', [user('Go', { run }), assistant(calls, { run })]);
  const inputSchema = z.object({});
  let looks = 0;
  const look = {
    ...tool({
      inputSchema,
      execute: async () => {
        looks += 1;
        return 'seen';
      },
    }),
    safeToRepeat: true,
  };
  const pay = tool({ inputSchema, execute: async () => 'paid' });
  const publish = tool({ inputSchema, needsApproval: true, execute: async () => 'out' });
  await using home = await scriptedDeck([{ toolCalls: [{ name: 'publish', input: {}, id: 'c-publish' }] }], {
    store,
    tools: { look, pay, publish },
  });
  const before = [
    { toolCallId: 'c-look', name: 'look', became: 'repeated' },
    { toolCallId: 'c-pay', name: 'pay', became: 'unknown' },
  ];
  expect(await home.deck.recover({ dryRun: true })).toMatchObject({ sessions: [{ calls: before }] });
  expect(looks).toBe(0);
  const { sessions, ...names } = await home.deck.recover();
  expect(names).toEqual({ ...none, waiting: ['main'] });
  const open = { toolCallId: 'c-publish', name: 'publish', became: 'open' };
  expect(sessions).toMatchObject([{ calls: [...before, open] }]);
  expect(looks).toBe(1);
  // A session that waits is reported where it is named, and is no work that a crash left.
  expect(await recovered(home.deck, 'main')).toEqual({ ...none, waiting: ['main'] });
  expect(await recovered(home.deck)).toEqual(none);
});

test('a child that had ended is merged, and then answers the messages in its inbox', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'kid', deliver: 'merge', intention: { nextSteps: 'Look.' } });
  store.entries.append('kid', [assistant('Seen.', { run, finish: 'stop' })]);
  store.sessions.update('kid', { task: 'completed' });
  store.inbox.post('kid', {
    body: { type: 'input', drafts: [user('And behind it?')] },
    mode: 'queue',
    source: 'user',
    key: 'later',
  });
  await using home = await scriptedDeck([{ text: 'Nothing.' }], { store });
  expect(await recovered(home.deck, 'main')).toEqual({ ...none, resumed: ['kid'], merged: ['kid'] });
  expect(own(store, 'kid').at(-1)).toBe('assistant: Nothing.');
  expect(store.inbox.list('kid')).toEqual([]);
  const merges = [...store.entries.read('main', { kind: 'anchor', namePrefix: 'merge/' })];
  expect(merges).toHaveLength(2);
});

test('a recovery ends when the children have that a continued run started in the background', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run })]);
  const input = { tasks: [{ task: 'Look.' }], background: true };
  await using home = await scriptedDeck(
    [
      { toolCalls: [{ name: 'delegate', input }], when: { session: 'main' } },
      { text: 'It looks.', when: { session: 'main' } },
      { text: 'Seen.', delayMs: 100, when: { text: 'Look.' } },
    ],
    { store, tools: { delegate: delegateTool() } },
  );
  expect(await recovered(home.deck)).toEqual({ ...none, resumed: ['main'] });
  expect(store.sessions.list({ parent: 'main', all: true })).toMatchObject([
    { task: 'completed', delivery: 'merged' },
  ]);
});

test('a dry run shows what a recovery would do, and writes nothing', async () => {
  const store = killedRoot();
  store.lineage.fork('main', { name: 'kid', deliver: 'merge' });
  store.lineage.fork('main', { name: 'over', deliver: 'merge' });
  store.entries.append('over', [assistant('Done.', { run })]);
  store.sessions.update('over', { task: 'completed' });
  await using home = await scriptedDeck([], { store });
  const stored = () => [
    store.sessions.list({ all: true }),
    store.sessions.list({ all: true }).map(({ id }) => [...store.entries.read(id)]),
    store.live.read('main'),
    store.inbox.list('main'),
    [...store.lineage.read()],
  ];
  const before = stored();
  const shown = await home.deck.recover({ dryRun: true });
  expect(stored()).toEqual(before);
  expect(shown).toMatchObject({
    resumed: ['kid', 'main'],
    merged: ['kid', 'over'],
    dryRun: true,
    sessions: [
      { session: 'kid', act: 'continue', model: home.spec },
      { session: 'over', act: 'merge' },
      { session: 'main', act: 'continue', saved: true, queued: 1, head: { before: 2 } },
    ],
  });
  expect(shown.sessions.map((one) => one.view.after)).toEqual([undefined, undefined, undefined]);
  expect(await home.deck.recover({ dryRun: true, abort: true })).toMatchObject({
    aborted: ['kid', 'main'],
    merged: ['kid', 'over'],
  });
});

test('a merge that waits in an inbox without an owner is part of the recovery', async () => {
  using dir = tempDir();
  const file = dir.file('tape.db');
  {
    using store = openTapeStore(file);
    store.sessions.open('main');
    for (const name of ['one', 'two']) {
      store.lineage.fork('main', { name, deliver: 'merge' });
      store.entries.append(name, [assistant('Done.', { run })]);
      store.sessions.update(name, { task: 'completed' });
    }
    store.inbox.post('main', {
      body: { type: 'merge', draft: { child: 'one' } },
      source: 'agent',
      key: 'merge',
    });
  }
  using store = openTapeStore(file, { keepInboxes: true });
  expect(store.inbox.list('main')).toHaveLength(1);
  await using home = await scriptedDeck([], { store });
  const { merged } = await home.deck.recover({ dryRun: true });
  expect(merged.toSorted()).toEqual(['one', 'two']);
  expect(await recovered(home.deck)).toEqual({ ...none, merged });
  expect([...store.entries.read('main', { kind: 'anchor', namePrefix: 'merge/' })]).toHaveLength(2);
  store.catchUp();
  expect(store.inbox.list('main')).toEqual([]);
  expect([...store.entries.read('main', { kind: 'anchor', namePrefix: 'merge/' })]).toHaveLength(2);
});

test.each([false, true])(
  'calls of a run that was aborted get results, and no run begins (abort: %s)',
  async (abort) => {
    const store = openStore();
    store.sessions.open('main');
    const calls = ['ran', 'cut'].map((id) => toolCall(id, 'pay', {}));
    store.entries.append('main', [
      user('Go', { run }),
      assistant(calls, { run, partial: true }),
      note('run/begun', { run, calls: [{ toolCallId: 'ran', toolName: 'pay' }] }),
      note('run/aborted', { run, reason: 'enough', unbegun: ['cut'] }),
    ]);
    await using deck = await openDeck({ store });
    const closed = [
      { toolCallId: 'ran', became: 'unknown' },
      { toolCallId: 'cut', became: 'not-run' },
    ];
    expect(await deck.recover({ session: 'main', abort, dryRun: true })).toMatchObject({
      sessions: [{ act: 'answer', calls: closed }],
    });
    const { sessions, ...names } = await deck.recover({ session: 'main', abort });
    expect(names).toEqual(none);
    expect(sessions).toMatchObject([{ session: 'main', act: 'answer', calls: closed }]);
    expect(own(store, 'main').slice(-2)).toEqual([
      'pay ran → error-text Outcome unknown: the run was aborted.',
      'pay cut → error-text Not run: the run was aborted.',
    ]);
    expect(await deck.recover({ session: 'main', abort })).toEqual({ ...none, sessions: [] });
  },
);

test('a named session that another process runs is reported as busy', async () => {
  const store = openStore(':memory:', { now: fixedClock().now });
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run })]);
  const lease = store.leases.acquire('main', { id: 'other' });
  await using home = await scriptedDeck([], { store });
  for (const dryRun of [true, false]) {
    const { busy, resumed, sessions } = await home.deck.recover({ session: 'main', dryRun });
    expect([busy, resumed, sessions.map(({ act }) => act)]).toEqual([['main'], [], ['leave']]);
  }
  expect(await recovered(home.deck)).toEqual(none);
  expect(store.leases.holds(lease)).toBe(true);
});

test('with abort a root that waits for an answer ends, and takes the merge of its child', async () => {
  const store = openStore();
  store.sessions.open('main');
  const wait = (id: string) => [
    user('Go', { run }),
    assistant([toolCall(id, 'pay', {})], { run }),
    note('run/waiting', { run, calls: [{ toolCallId: id, toolName: 'pay', for: 'approval' }] }),
  ];
  store.lineage.fork('main', { name: 'kid', deliver: 'merge' });
  store.sessions.update('kid', { task: 'running' });
  store.entries.append('kid', wait('k'));
  store.entries.append('main', wait('m'));
  await using deck = await openDeck({ store });
  const named = { session: 'main', abort: true, waitMs: 0 };
  expect(await deck.recover({ ...named, dryRun: true })).toMatchObject({
    aborted: ['kid', 'main'],
    merged: ['kid'],
    waiting: [],
  });
  const { aborted, ...names } = await recovered(deck, named);
  expect([aborted.toSorted(), names]).toEqual([
    ['kid', 'main'],
    { resumed: [], merged: ['kid'], waiting: [], busy: [], failed: [] },
  ]);
  expect(own(store, 'main').slice(3, 5)).toEqual([
    'event run/aborted',
    'pay m → error-text Not run: the run was aborted.',
  ]);
  expect(store.sessions.find('kid')).toMatchObject({ task: 'aborted', delivery: 'merged' });
  expect(await recovered(deck, named)).toEqual(none);
  expect(await recovered(deck)).toEqual(none);
});

test('options may follow the session, and nothing else may', async () => {
  const store = killedRoot();
  const before = [...store.entries.read('main')];
  await using home = await scriptedDeck([], { store });
  const { deck } = home;
  expect(await deck.recover('main', { dryRun: true })).toMatchObject({ resumed: ['main'], dryRun: true });
  const refused: [unknown, unknown][] = [
    [{ session: 'main' }, { dryRun: true }],
    ['main', { session: 'main' }],
    ['main', { dry: true }],
    ['main', true],
    [undefined, { dryRun: true }],
  ];
  for (const [given, more] of refused)
    await expect(Reflect.apply(deck.recover, deck, [given, more])).rejects.toMatchObject({
      code: 'SESSION_BAD_INPUT',
    });
  expect([...store.entries.read('main')]).toEqual(before);
});

test('each session continues with the model that its tape records', async () => {
  const store = openStore();
  store.sessions.open('main');
  await using home = await scriptedDeck([{ text: 'The deck’s.' }], { store });
  const [theirs, given] = [home.script([{ text: 'Its own.' }]), home.script([{ text: 'The given one.' }])];
  const fork = (name: string, model?: string) =>
    store.lineage.fork('main', {
      name,
      deliver: 'merge',
      intention: { nextSteps: 'Speak.' },
      ...(model !== undefined && { settings: { model } }),
    });
  fork('own', theirs);
  fork('gone', 'script:/nowhere/answers.json');
  fork('none');
  const { sessions, ...names } = await home.deck.recover({ model: given });
  expect(names).toMatchObject({ resumed: ['own', 'gone', 'none'], failed: [] });
  expect(sessions.map(({ session, model }) => [session, model])).toEqual([
    ['own', theirs],
    ['gone', given],
    ['none', given],
  ]);
  expect(['own', 'gone', 'none'].map((name) => own(store, name).at(-1))).toEqual([
    'assistant: Its own.',
    'assistant: The given one.',
    'assistant: The given one.',
  ]);
});

test('a session whose recorded model is gone fails alone when no session is named', async () => {
  const store = openStore();
  store.sessions.open('main');
  await using home = await scriptedDeck([], { store });
  const theirs = home.script([{ text: 'Its own.' }]);
  for (const [name, model] of [
    ['gone', 'script:/nowhere/answers.json'],
    ['own', theirs],
  ] as const)
    store.lineage.fork('main', {
      name,
      deliver: 'merge',
      intention: { nextSteps: 'Speak.' },
      settings: { model },
    });
  await using deck = await openDeck({ store });
  const failed = [
    {
      session: 'gone',
      code: 'SESSION_NO_FILE',
      message: expect.stringMatching(
        /^cannot recover 'gone': cannot read script '.nowhere.answers.json': there is no such file/,
      ),
    },
  ];
  expect(await deck.recover({ dryRun: true })).toMatchObject({ resumed: ['own'], merged: ['own'], failed });
  expect(await deck.recover({ session: 'main', dryRun: true })).toMatchObject({ resumed: ['own'], failed });
  await expect(deck.recover('main')).rejects.toMatchObject({
    code: 'SESSION_NO_FILE',
    data: { session: 'gone', abortable: true },
  });
  expect(own(store, 'own')).toEqual(['anchor intention']);
  expect(await recovered(deck)).toEqual({ ...none, resumed: ['own'], merged: ['own'], failed });
});

test('a recovery that has no usable model for a session names it, and changes nothing', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'kid', deliver: 'merge' });
  await using deck = await openDeck({ store, env: {} });
  await expect(deck.recover()).rejects.toMatchObject({
    code: 'SESSION_NO_MODEL',
    message: "cannot recover 'kid': no model was given, and its tape names none",
    data: { session: 'kid', abortable: true },
  });
  store.lineage.fork('main', {
    name: 'keyless',
    deliver: 'merge',
    settings: { model: 'openai-compatible/some' },
  });
  await expect(deck.recover('keyless')).rejects.toMatchObject({
    code: 'SESSION_NO_KEY',
    message: expect.stringMatching(/^cannot recover 'keyless': .*openai-compatible\/some/),
    data: { session: 'keyless', variable: 'OPENAI_BASE_URL' },
  });
  for (const name of ['kid', 'keyless']) {
    expect(store.sessions.find(name)?.task).toBeUndefined();
    expect(own(store, name)).toEqual([]);
  }
});

test('a repeated merge writes nothing, also where a run of the parent has died since', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  await kid.run('Look');
  const first = await kid.finish();
  const chunks = [{ index: 0, chunk: { type: 'text-delta', id: '1', delta: 'Half' } }];
  home.store.live.save([{ session: main.id, run: 'dead', chunks }]);
  const before = home.store.sessions.find('main')?.head;
  expect(home.store.lineage.merge('kid')).toMatchObject({ repeated: true, seq: first.seq });
  expect(home.store.sessions.find('main')?.head).toBe(before);
});

test.each([false, true])('a call whose input was cut off is in the report (abort: %s)', async (abort) => {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run })]);
  const chunks = [
    { type: 'tool-input-start', toolCallId: 'c', toolName: 'look' },
    { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"path":"a.t' },
  ].map((chunk, index) => ({ index, chunk }));
  store.live.save([{ session: 'main', run, chunks }]);
  await using home = await scriptedDeck([{ text: 'Well.' }], { store });
  const calls = [{ toolCallId: 'c', name: 'look', became: 'not-run' }];
  const report = [{ session: 'main', saved: true, calls }];
  expect((await home.deck.recover({ abort, dryRun: true })).sessions).toMatchObject(report);
  expect((await home.deck.recover({ abort })).sessions).toMatchObject(report);
  expect(own(store, 'main').slice(1, 4)).toEqual([
    'assistant: [look c]',
    'event run/interrupted',
    'look c → error-text Not run: the answer with this call was cut off.',
  ]);
});
