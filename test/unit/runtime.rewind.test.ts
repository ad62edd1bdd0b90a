import type { DeckConfig, Hooks } from '@tapedeck/runtime';
import {
  assistant,
  compaction,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { entryLines, eventsOf, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const answers = ['One.', 'Two.', 'Three.', 'Four.', 'Five.', 'Six.'].map((text) => ({ text }));

/** The view of a session, as short texts. */
const shown = (store: SqliteTapeStore, name = 'main') =>
  view(store.views.entries(name)).messages.map(
    ({ role, content }) => `${role}: ${content.map((part) => part.text ?? `<${part.type}>`).join(' ')}`,
  );

/** A deck with a session of this many turns: `ask 1` at 2, its answer at 3, and so on. */
async function withTurns(count: number, config: Omit<DeckConfig, 'model'> = {}) {
  const home = await scriptedDeck(answers, config);
  const main = await home.deck.session('main');
  for (let turn = 1; turn <= count; turn += 1) await main.run(`ask ${turn}`);
  return {
    ...home,
    main,
    [Symbol.asyncDispose]: home[Symbol.asyncDispose],
  };
}

test('a rewind hides turns, new messages take their place, and undo restores both', async () => {
  await using home = await withTurns(4);
  const { main, store } = home;
  const { digest } = await main.view();
  expect(await main.rewind(6)).toEqual({
    session: 'main',
    seq: 10,
    to: 5,
    hidden: 4,
    shown: 0,
    forks: [],
    message: 6,
    text: 'ask 3',
    content: [{ type: 'text', text: 'ask 3' }],
    warnings: [],
  });
  expect(await main.undo()).toMatchObject({ to: 9, hidden: 0, shown: 4 });
  expect((await main.view()).digest).toBe(digest);
  await main.rewind('@6');
  await main.run('ask 3 anew');
  const turns12 = ['user: ask 1', 'assistant: One.', 'user: ask 2', 'assistant: Two.'];
  expect(shown(store)).toEqual([...turns12, 'user: ask 3 anew', 'assistant: Five.']);
  expect(await main.undo()).toMatchObject({ hidden: 2, shown: 4 });
  expect((await main.view()).digest).toBe(digest);
  expect([...store.entries.read('main')].map(({ seq }) => seq)).toEqual(
    Array.from({ length: 15 }, (_, i) => i + 1),
  );
  // An undone rewind is a rewind like any other.
  await main.undo();
  expect(shown(store)).toEqual([...turns12, 'user: ask 3 anew', 'assistant: Five.']);
});

test('a rewind target is a visible user message, and the refusal names the nearest', async () => {
  await using home = await withTurns(2);
  const { main, store } = home;
  await main.anchor('mark');
  const child = await main.fork({ name: 'kid' });
  await child.run('Go');
  await child.finish();
  store.entries.append('main', [
    assistant([toolCall('c1', 'read', {})]),
    toolResult({ toolCallId: 'c1', toolName: 'read' }, 'x'),
    user('last'),
    user('erased'),
  ]);
  store.entries.redact('main', 12, 'a test');
  const { head } = await main.info();
  const refused = [
    [1, "it is the anchor 'session/start', not a user message", 2],
    [3, 'it is an answer, not a user message', 2],
    ['mark', "it is the anchor 'mark', not a user message", 4],
    [8, 'it is a merge message, not a user message', 4],
    [10, 'it is a tool result, not a user message', 4],
    [12, 'its content was redacted', 11],
    ['head', 'it is an entry of kind redaction, not a user message', 11],
  ] as const;
  for (const [to, why, message] of refused)
    await expect(main.rewind(to)).rejects.toMatchObject({
      code: 'TAPE_BAD_POINT',
      message: expect.stringMatching(new RegExp(`^cannot rewind 'main' to @\\d+: ${why}$`)),
      data: { session: 'main', message },
    });
  for (const to of [99, 0]) await expect(main.rewind(to)).rejects.toMatchObject({ code: 'TAPE_NO_SEQ' });
  await expect(main.rewind('marc')).rejects.toMatchObject({
    code: 'TAPE_NO_ANCHOR',
    data: { near: ['mark'] },
  });
  await expect(main.rewind(2, { mode: JSON.parse('"undo"') })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: "cannot rewind 'main': unknown mode 'undo', expected edit or resend",
  });
  expect((await main.info()).head).toBe(head);
  await main.rewind(2);
  await expect(main.rewind(4)).rejects.toMatchObject({
    code: 'TAPE_BAD_POINT',
    message: "cannot rewind 'main' to @4: the rewind main@14 hides it",
    data: { hidden: 14 },
  });
  await expect((await home.deck.session('empty')).rewind('head')).rejects.toMatchObject({
    code: 'TAPE_BAD_POINT',
    data: { session: 'empty', seq: 1 },
  });
});

test('a message is sent again with its bytes, and answered', async () => {
  await using home = await scriptedDeck(answers);
  const main = await home.deck.session('main');
  const data = Buffer.alloc(300, 7);
  const content = [
    { type: 'text', text: 'Look' },
    { type: 'file', mediaType: 'image/png', data },
  ];
  await main.run(content, { meta: { topic: 'pictures' } });
  const { run, ...receipt } = await main.rewind(2, { mode: 'resend' });
  expect(receipt).toMatchObject({ to: 1, text: 'Look', content, resent: 5 });
  expect(await run).toMatchObject({ finish: 'stop', text: 'Two.' });
  const [again, answer, ...rest] = home.store.entries.read('main', { from: 5 });
  expect(again).toMatchObject({ meta: { source: 'user', topic: 'pictures', resends: 2 } });
  expect(again?.meta.run).toBe(undefined);
  expect(isObject(again?.payload) && again.payload.content).toEqual([
    { type: 'text', text: 'Look' },
    {
      type: 'file',
      mediaType: 'image/png',
      data: { type: 'blob', hash: sha256(data), size: 300, as: 'bytes' },
    },
  ]);
  expect([answer?.meta.run, rest]).toEqual([(await run)?.run, []]);
});

test('a message appended again is answered by the next run, before the inbox', async () => {
  await using home = await withTurns(2);
  const { main, store } = home;
  await main.send('and this', { start: false });
  expect(await main.rewind(4, { mode: 'resend', start: false })).not.toHaveProperty('run');
  expect(shown(store).slice(2)).toEqual(['user: ask 2']);
  const run = main.run();
  await run;
  await run.following;
  expect(shown(store).slice(2)).toEqual([
    'user: ask 2',
    'assistant: Three.',
    'user: and this',
    'assistant: Four.',
  ]);
});

test('a session that runs, here or elsewhere, or is archived is not rewound', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }, { text: 'Two.', delayMs: 60_000 }]);
  const { deck, store } = home;
  const main = await deck.session('main');
  await main.run('ask 1');
  const run = main.run('ask 2');
  const busy = { code: 'SESSION_BUSY', data: { session: 'main' } };
  await expect(main.rewind(2)).rejects.toMatchObject(busy);
  await expect(main.undo()).rejects.toMatchObject(busy);
  run.abort();
  await run;
  const lease = store.leases.acquire('main', { id: 'another' });
  const { head } = await main.info();
  await expect(main.rewind(2)).rejects.toMatchObject({ ...busy, message: /^cannot rewind 'main': / });
  await expect(main.undo()).rejects.toMatchObject(busy);
  expect((await main.info()).head).toBe(head);
  store.leases.release(lease);
  store.sessions.update('main', { lifecycle: 'archived' });
  for (const act of [() => main.rewind(2), () => main.undo()])
    await expect(act()).rejects.toMatchObject({ code: 'TAPE_ARCHIVED', data: { session: 'main' } });
  store.sessions.update('main', { lifecycle: 'active' });
  await expect(main.undo()).rejects.toMatchObject({ code: 'SESSION_CANNOT_UNDO' });
  await main.rewind(2);
});

test('without a model nothing is resent, and nothing is written', async () => {
  await using home = await scriptedDeck(answers, { model: undefined } as never);
  home.store.sessions.open('main');
  home.store.entries.append('main', [user('hello')]);
  const main = await home.deck.session('main');
  await expect(main.rewind(2, { mode: 'resend' })).rejects.toMatchObject({ code: 'SESSION_NO_MODEL' });
  expect((await main.info()).head).toBe(2);
  const { run } = await main.rewind(2, { mode: 'resend', model: home.spec });
  expect(await run).toMatchObject({ text: 'One.' });
  // The session keeps the model that was named.
  expect(await main.run('more')).toMatchObject({ text: 'Two.' });
});

test('a rewind past a compaction shows what was summarised, without the summary', async () => {
  await using home = await withTurns(3);
  const { main, store } = home;
  store.entries.append('main', [compaction({ summary: 'They counted.', range: [2, 5] }, { keepFrom: 6 })]);
  expect(shown(store)[0]).toContain('They counted.');
  await main.rewind(6);
  expect(shown(store)).toEqual(['user: ask 1', 'assistant: One.', 'user: ask 2', 'assistant: Two.']);
});

test('a fork is rewound into its inherited entries, on its own tape alone', async () => {
  await using home = await withTurns(2);
  const { main, store } = home;
  const before = await main.info();
  store.lineage.fork('main', { name: 'kid' });
  store.lineage.fork('main', { name: 'part', inherit: { since: 3 } });
  const kid = await home.deck.session('kid');
  expect(await kid.rewind(4)).toMatchObject({ session: 'kid', seq: 7, to: 3, text: 'ask 2' });
  expect(shown(store, 'kid')).toEqual(['user: ask 1', 'assistant: One.']);
  const part = await home.deck.session('part');
  expect(await part.rewind(4)).toMatchObject({ to: 3, hidden: 3 });
  expect(shown(store, 'part')).toEqual([]);
  await expect(part.rewind(2)).rejects.toMatchObject({ code: 'TAPE_NO_SEQ' });
  expect(await main.info()).toEqual(before);
  expect(await main.rewind(4)).toMatchObject({ forks: ['kid', 'part'] });
});

test('a session does not keep a model that only a hidden message named', async () => {
  await using home = await withTurns(1);
  const { main, script } = home;
  const other = script([{ text: 'Said before' }, { text: 'Other one.' }, { text: 'Other two.' }]);
  await main.run('ask 2', { model: other });
  expect(await main.run('ask 3')).toMatchObject({ text: 'Other two.' });
  await main.rewind(4);
  expect(await main.run('ask 4')).toMatchObject({ text: 'Four.' });
  await main.undo();
  // Its script is at its end.
  expect((await main.run('ask 5')).error?.code).toBe('SESSION_SCRIPT_ENDED');
});

test('a partial answer, and pending calls, stay behind a rewind', async () => {
  const publish = tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'out' });
  const asks = { toolCalls: [{ name: 'publish', input: {}, id: 'c1' }] };
  await using home = await scriptedDeck([asks, { text: 'Well.' }], { tools: { publish } });
  const { store } = home;
  const main = await home.deck.session('main');
  await main.run('Publish it');
  const lease = store.leases.acquire('main', { id: 'killed' });
  const head = { type: 'data-answer', data: { step: 1, model: 'm' }, transient: true };
  const chunks = [head, { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Half' }];
  store.live.save([
    { session: 'main', run: 'r', chunks: chunks.map((chunk, index) => ({ index, chunk })) },
  ] as never);
  store.leases.release(lease);
  expect(await main.rewind(2)).toMatchObject({ to: 1 });
  expect(await main.status()).toMatchObject({ state: 'idle', waiting: [] });
  await main.run('Good?');
  expect(shown(store)).toEqual(['user: Good?', 'assistant: Well.']);
  expect(entryLines(store.entries.read('main', { kind: 'message' }))).toContain('assistant: Half');
});

test('inbox items from before a rewind are hidden by it; a run interrupted there is not resumed', async () => {
  await using home = await scriptedDeck(answers);
  const { store } = home;
  const main = await home.deck.session('main');
  store.entries.append('main', [
    user('Go', { run: 'r' }),
    assistant([toolCall('c1', 'read', {})]),
    toolResult({ toolCallId: 'c1', toolName: 'read' }, 'x'),
  ]);
  store.inbox.post('main', { body: { type: 'append', drafts: [user('meanwhile')] } });
  expect(await main.rewind(2)).toMatchObject({ seq: 6, hidden: 4 });
  const { id } = await main.send('later', { start: false });
  const run = main.run();
  await run;
  expect([run.took, shown(store)]).toEqual([[id], ['user: later', 'assistant: One.']]);
});

test('a rewind into a batch of calls goes back to before it, and reports that', async () => {
  await using home = await scriptedDeck(answers);
  const { store } = home;
  const main = await home.deck.session('main');
  store.entries.append('main', [user('Go'), assistant([toolCall('c1', 'read', {})])]);
  store.entries.append('main', [user('meanwhile'), toolResult({ toolCallId: 'c1', toolName: 'read' }, 'x')]);
  expect(await main.rewind(4)).toMatchObject({ to: 2, snappedFrom: 3, text: 'meanwhile' });
});

/** Hooks that note their arguments and the tape's head at that time, and name snapshots `s1`, `s2` … */
function noting(store: SqliteTapeStore) {
  const told: string[] = [];
  const hooks: Hooks = {
    onMessage: ({ session, text, source }) => {
      told.push(`${session}@${store.sessions.find(session)?.head} ${source}: ${text}`);
      return { snapshotId: `s${told.length}` };
    },
    onRewind: async ({ session, to, message, snapshotId }) => {
      told.push(`${session} back to ${to} for ${message} ${snapshotId}`);
    },
  };
  return { told, hooks };
}

const snapshots = (store: SqliteTapeStore) =>
  [...store.entries.read('main', { kind: 'message' })].flatMap(({ seq, meta }) =>
    meta.snapshot_id === undefined ? [] : [`${seq} ${String(meta.snapshot_id)}`],
  );

test('a snapshot precedes each message, however it arrives, and a rewind reports the snapshot', async () => {
  const store = openStore();
  const { told, hooks } = noting(store);
  await using home = await scriptedDeck(answers, { hooks, store });
  const main = await home.deck.session('main');
  const slow = tool({
    inputSchema: z.object({}),
    execute: async () => {
      await main.send('steered', { mode: 'steer', source: 'agent' });
      return 'done';
    },
  });
  await main.run('first');
  await (await main.send('second', { source: 'timer' })).run;
  const calling = home.script([{}, {}, { toolCalls: [{ name: 'slow', input: {} }] }, { text: 'Done.' }]);
  await main.run('third', { model: calling, tools: { slow } });
  expect(told).toEqual([
    'main@1 user: first',
    'main@3 timer: second',
    'main@5 user: third',
    'main@8 agent: steered',
  ]);
  expect(snapshots(store)).toEqual(['2 s1', '4 s2', '6 s3', '9 s4']);
  expect(await main.rewind(4)).toMatchObject({ snapshotId: 's2' });
  await (await main.rewind(2, { mode: 'resend', model: home.spec })).run;
  expect(told.slice(4)).toEqual([
    'main back to 3 for 4 s2',
    'main back to 1 for 2 s1',
    'main@12 user: first',
  ]);
  expect(snapshots(store).at(-1)).toBe('13 s7');
});

test('a hook that fails is recorded and reported as a warning, and stops nothing', async () => {
  const hooks: Hooks = {
    onMessage: ({ text }) => {
      if (text === 'ask 1') throw new Error('no git');
      return { snapshotId: 3 } as never;
    },
    onRewind: () => Promise.reject(new Error('a conflict')),
  };
  await using home = await scriptedDeck(answers, { hooks });
  const main = await home.deck.session('main');
  const types = (await eventsOf(main.run('ask 1'))).slice(0, 2);
  expect(types).toMatchObject([
    { type: 'run-started' },
    { type: 'warning', message: 'the hook onMessage failed: no git' },
  ]);
  await main.run('ask 2');
  const bad = 'it must return { snapshotId } with a string, or undefined';
  expect(await main.rewind(3)).toMatchObject({
    to: 2,
    warnings: ['the hook onRewind failed: a conflict'],
  });
  expect([...home.store.entries.read('main', { name: 'hook/failed' })].map(({ payload }) => payload)).toEqual(
    [
      { hook: 'onMessage', message: 'no git' },
      { hook: 'onMessage', message: bad },
      { hook: 'onRewind', message: 'a conflict' },
    ],
  );
  expect(shown(home.store)).toEqual([]);
});

test('a hook that does not return delays an aborted run no longer than tools may', async () => {
  const hooks: Hooks = { onMessage: () => new Promise(() => {}) };
  await using home = await scriptedDeck(answers, { hooks, limits: { abortGraceMs: 0 } });
  const main = await home.deck.session('main');
  const run = main.run('ask 1');
  run.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(entryLines(home.store.entries.read('main')).slice(1, 3)).toEqual([
    'event hook/failed',
    'user: ask 1',
  ]);
});

test('an anchor before the message stays in view, and one after it does not', async () => {
  await using home = await withTurns(1);
  const { main } = home;
  await main.anchor('before');
  await main.run('ask 2');
  await main.anchor('after');
  expect(await main.rewind(5)).toMatchObject({ to: 4 });
  expect(await main.fork({ inherit: { since: 'before' } })).toMatchObject({ parent: 'main' });
  await expect(main.fork({ inherit: { since: 'after' } })).rejects.toMatchObject({
    code: 'TAPE_NO_ANCHOR',
    data: { hidden: { seq: 7, by: 8 } },
  });
});
