import type { Session } from '@tapedeck/runtime';
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

test('a task with an unknown field, or without text, is refused, and no child is forked', async () => {
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
  await expect(main.run('hello')).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
});
