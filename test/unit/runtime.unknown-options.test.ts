import type { DelegateOptions, ForkOptions, Session } from '@tapedeck/runtime';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';

/** An options object as plain JavaScript passes it, with a field that no type allows. */
const misspelt = (field: string): object => ({ [field]: 'task-start' });

const acts: readonly (readonly [
  act: string,
  field: string,
  near: string,
  call: (main: Session, options: object) => unknown,
])[] = [
  ['fork', 'inherits', 'inherit', async (main, o) => await main.fork(o)],
  ['run', 'maxStep', 'maxSteps', async (main, o) => await main.run('hello', o)],
  ['send', 'mod', 'mode', async (main, o) => await main.send('hello', o)],
  ['respond', 'models', 'model', async (main, o) => await main.respond('c1', { approved: true }, o)],
  ['subscribe', 'form', 'from', async (main, o) => main.subscribe(o)],
  ['rewind', 'Mode', 'mode', async (main, o) => await main.rewind(1, o)],
  ['undo', 'att', 'at', async (main, o) => await main.undo(o)],
  ['branch', 'titel', 'title', async (main, o) => await main.branch(1, o)],
  ['compact', 'focused', 'focus', async (main, o) => await main.compact(o)],
  ['delegate', 'concurency', 'concurrency', async (main, o) => await main.delegate('look', o)],
  ['merge', 'stratgy', 'strategy', async (main, o) => await main.merge('kid', o)],
  ['mergeAll', 'stratgy', 'strategy', async (main, o) => await main.mergeAll(['kid'], o)],
  ['usage', 'trees', 'tree', async (main, o) => await main.usage(o)],
  ['view', 'polcy', 'policy', async (main, o) => await main.view(o)],
  ['handoff', 'sumary', 'summary', async (main, o) => await main.handoff('done', o)],
  ['idle', 'signl', 'signal', async (main, o) => await main.idle(o)],
];

test.each(acts)('%s refuses the option %s, suggests %s, and writes nothing', async (_, field, near, call) => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  home.store.lineage.fork('main', { name: 'kid' });
  const before = [...home.store.sessions.list({ all: true })];
  await expect(call(main, misspelt(field))).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringMatching(`there is no option '${field}'; did you mean .*'${near}'`),
    data: { field, near: expect.arrayContaining([near]) },
  });
  expect([...home.store.sessions.list({ all: true })]).toEqual(before);
});

/** A value as plain JavaScript passes it, which no type allows. */
const mistaken = <T>(value: unknown) => value as T;

test.each(acts)('%s refuses options that are no object', async (_, _field, _near, call) => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  home.store.lineage.fork('main', { name: 'kid' });
  for (const options of ['text', 5, ['a']])
    await expect(call(main, mistaken(options))).rejects.toMatchObject({
      code: 'SESSION_BAD_INPUT',
      message: expect.stringMatching('the options must be an object'),
    });
  await expect(main.run('hello', mistaken(null))).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
});

test.each([
  ['deliver', "'merge' or 'merge+turn' or 'notify' or 'tool-result'"],
  ['onComplete', "'notify_parent'"],
  ['strategy', "'result' or 'summary' or 'structured'"],
  ['onUnmerged', "'fail' or 'discard' or 'keep'"],
  ['workspace', "'shared' or 'worktree'"],
])('a fork with an unknown %s, not %s, is refused, and no child is forked', async (field, choices) => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  await expect(main.fork(mistaken<ForkOptions>({ [field]: 'other' }))).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: `cannot fork 'main': ${field} must be ${choices}`,
    data: { field },
  });
  expect(home.store.sessions.list({ parent: 'main', all: true })).toEqual([]);
});

test.each([
  [{ order: 'spwan' }, /order must be 'completion' or 'spawn'/],
  [{ concurrency: 0 }, /concurrency must be a whole number from 1, or Infinity/],
  [{ concurrency: '2' }, /concurrency must be/],
  [{ maxSteps: -1 }, /maxSteps must be a whole number from 1, or Infinity/],
  [{ at: 'now' }, /at must be 'step' or 'idle'/],
  [{ onConflict: 'fail' }, /onConflict must be 'report' or 'refuse'/],
])('a delegation with the option %o is refused, and no child is forked', async (options, message) => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  await expect(main.delegate('Look', mistaken<DelegateOptions>(options))).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringMatching(message),
  });
  const urgent = { task: 'Look', priority: mistaken<number>('high') };
  await expect(main.delegate(urgent)).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  expect(home.store.sessions.list({ parent: 'main', all: true })).toEqual([]);
});

test('a merge with a choice or a child that does not exist is refused', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  await main.fork({ name: 'kid', onUnmerged: 'keep' });
  await expect(main.merge('kid', mistaken({ onConflict: 'fail' }))).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    data: { field: 'onConflict' },
  });
  for (const child of [undefined, 5, {}])
    await expect(main.merge(mistaken<string>(child))).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
});

test('a name, a point or input of another type is refused with a code', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  for (const value of [null, 5, {}]) {
    const text = mistaken<string>(value);
    await expect(home.deck.session(text)).rejects.toMatchObject({ code: 'TAPE_BAD_NAME' });
    await expect(main.anchor(text)).rejects.toMatchObject({ code: 'TAPE_BAD_NAME' });
    await expect(main.run(text)).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  }
  for (const value of [undefined, null, {}])
    await expect(main.rewind(mistaken<string>(value))).rejects.toMatchObject({ code: 'TAPE_BAD_POINT' });
});

test('what is no model, or has no name where a name is kept, is refused before anything is written', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  const before = (await main.info()).head;
  const refused = { code: 'SESSION_NO_MODEL' };
  for (const value of [5, {}, 'gpt-4', null]) {
    const model = mistaken<string>(value);
    await expect(main.run('hello', { model })).rejects.toMatchObject(refused);
    await expect(main.send('hello', { model })).rejects.toMatchObject(refused);
    await expect(main.fork({ model })).rejects.toMatchObject(refused);
    await expect(home.deck.session('other', { model })).rejects.toMatchObject(refused);
  }
  expect((await main.info()).head).toBe(before);
  expect(await main.status()).toMatchObject({ queued: 0 });
  expect(await home.deck.find('other')).toBeUndefined();
});

test('a budget that is no object is refused', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  await expect(main.fork({ budget: mistaken(5) })).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
});

test('a message of no known type is not posted, so the session can still be run', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  for (const body of [
    undefined,
    5,
    {},
    { type: 'other' },
    { type: 'input' },
    { type: 'append', drafts: 'x' },
  ])
    expect(() => home.store.inbox.post('main', { body: mistaken(body) })).toThrow(
      expect.objectContaining({ code: 'TAPE_BAD_ENTRY' }),
    );
  expect(home.store.inbox.list('main')).toEqual([]);
  expect((await main.run('hello')).text).toBe('Done.');
});

test('entries of options that are no object are refused, and nothing is left unhandled', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  await expect(Array.fromAsync(main.entries(mistaken(null)))).rejects.toMatchObject({
    code: 'TAPE_BAD_OPTION',
  });
});

test('a task with a field that does not exist, or without text, is refused, and no child is forked', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  const misspelled = { task: 'Look', nam: 'kid' };
  await expect(main.delegate([misspelled])).rejects.toMatchObject({ data: { field: 'nam', near: ['name'] } });
  for (const task of ['', ' \n', { task: '' }])
    await expect(main.delegate([task])).rejects.toMatchObject({
      code: 'SESSION_BAD_INPUT',
      message: "cannot delegate from 'main': a task has no text",
    });
  expect(home.store.sessions.list({ parent: 'main', all: true })).toEqual([]);
});

test('tasks are texts, objects, or both', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  const one = await main.delegate('Look');
  const two = await main.delegate(['Look again', { task: 'And here', name: 'kid' }]);
  expect([...one, ...two].map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
  expect(two[1]?.session).toBe('kid');
});

test('a deck that is closed by name is closed once', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  await Promise.all([home.deck.close(), home.deck.close()]);
  for (const act of [main.run('hello'), main.delegate('look'), main.compact()])
    await expect(act).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
  expect(home.store.sessions.list({ all: true })).toHaveLength(1);
});

test.each([
  ['into', { into: 'main' }],
  ['an unknown strategy', { strategy: 5 }],
  ['pick without its strategy', { pick: [2] }],
  ['the strategy pick without picks', { strategy: 'pick' }],
])('merge into a session refuses %s, and writes nothing', async (_, options) => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid' });
  const { head } = await main.info();
  const act = main.merge(kid, options as object);
  await expect(act).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  expect((await main.info()).head).toBe(head);
});

test.each<[string, object]>([
  ['maxSteps', { maxSteps: '3' }],
  ['maxSteps', { maxSteps: 1.5 }],
  ['meta', { meta: 'text' }],
  ['meta.model', { meta: { model: 'other/model' } }],
  ['meta.place', { meta: { place: { cwd: '/nowhere' } } }],
  ['tools', { tools: ['nope'] }],
  ['tools', { tools: { add: 5 } }],
  ['instructions', { instructions: 5 }],
  ['signal', { signal: 5 }],
])('a run refuses a wrong value of %s, and writes nothing: %o', async (field, options) => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  const { head } = await main.info();
  await expect(main.run('hello', options)).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringContaining(field),
  });
  expect((await main.info()).head).toBe(head);
});

test.each<[string, (main: Session) => Promise<unknown>]>([
  ['a tool that the deck does not have', async (main) => await main.fork({ tools: ['nope'] })],
  ['tools that are one text', async (main) => await main.fork({ tools: 'nope' as never })],
  ['a task that is no text', async (main) => await main.fork({ task: 5 as never })],
  ['a branch with an unknown tool', async (main) => await main.branch(undefined, { tools: ['nope'] })],
  [
    'two tasks under one key',
    async (main) =>
      await main.delegate([
        { task: 'x', key: 'k' },
        { task: 'y', key: 'k' },
      ]),
  ],
  [
    'a context that is no text',
    async (main) => await main.delegate(['x', { task: 'y', contextSummary: 5 as never }]),
  ],
])('%s is refused before any child is forked', async (_, act) => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  await expect(act(main)).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  expect(home.store.sessions.list({ all: true })).toHaveLength(1);
});
