import { audit, diffSessions, trace } from '@tapedeck/runtime';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';

/** Any value, as plain JavaScript passes it. */
const any = (value: unknown): never => value as never;

test('audit, trace and diffSessions take a deck or its store, and sessions by name', async () => {
  await using home = await scriptedDeck([{ text: 'ok' }]);
  const { deck, store } = home;
  await (await deck.session('main')).run('Hi');
  await deck.session('other');
  expect(await audit(deck)).toEqual(await audit(store));
  expect(await trace(deck, 'main', 2)).toEqual(await trace(store, 'main', 2));
  const places = [{ session: 'main' }, { session: 'other' }] as const;
  expect(await diffSessions(deck, 'main', 'other')).toEqual(await diffSessions(store, ...places));
});

test.each([
  ['audit of nothing', () => audit(any(undefined)), /neither a store nor a deck/],
  ['audit of a path', () => audit(any('.tape')), /neither a store nor a deck/],
  ['trace in a handle', () => trace(any({}), 'main', 2), /neither a store nor a deck/],
  ['diffSessions of nothing', () => diffSessions(any(null), 'a', 'b'), /neither a store nor a deck/],
])('%s is refused', async (_, act, says) => {
  await expect(act()).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringMatching(says),
  });
});

test('misspelt options of audit and diffSessions are refused', async () => {
  await using home = await scriptedDeck([]);
  await home.deck.session('main');
  await expect(audit(home.deck, any({ sesion: 'main' }))).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: "cannot audit: there is no option 'sesion'; did you mean 'session'?",
  });
  await expect(diffSessions(home.deck, any({ name: 'main' }), 'main')).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringContaining("there is no option 'name'"),
  });
});

test('withFork without a function forks nothing; misspelt callbacks are refused before anything is posted', async () => {
  await using home = await scriptedDeck([{ text: 'ok' }]);
  const main = await home.deck.session('main');
  for (const args of [[{}], [async () => 1], [{}, 'act']] as const)
    await expect(main.withFork(any(args[0]), any(args[1]))).rejects.toMatchObject({
      code: 'SESSION_BAD_INPUT',
    });
  expect(home.store.sessions.list({ all: true })).toHaveLength(1);
  const on = any({ 'content-chunks': () => {} });
  await expect(main.send('Hi', { on })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: "cannot send to 'main': there is no option 'content-chunks'; did you mean 'content-chunk'?",
  });
  await expect(main.send('Hi', { on: { warning: any('loud') } })).rejects.toMatchObject({
    message: "cannot send to 'main': warning must be a function",
  });
  expect(home.store.inbox.list('main')).toEqual([]);
  await expect(main.run('Hi').watch(on)).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
});

test('errors about options name the session, also when it is given by its id', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  const read = async () => await Array.fromAsync(main.entries({ last: 1.5 }));
  await expect(read()).rejects.toMatchObject({
    code: 'TAPE_BAD_OPTION',
    message: "cannot read 'main': last must be a whole number from 0",
  });
  for (const act of [
    () => home.store.entries.append(main.id, [], any({ keys: 'x' })),
    () => home.store.lineage.fork(main.id, any({ nam: 'x' })),
    () => home.store.lineage.merge(main.id, any({ intoo: 'x' })),
    () => home.store.leases.acquire(main.id, { id: 'me' }, any({ ttl: 5 })),
    () => home.store.sessions.update(main.id, any({ taks: 'completed' })),
  ])
    expect(act).toThrow(/^cannot [a-z ]+ 'main': there is no option/);
  expect(() => home.store.inbox.post(main.id, { body: any({ type: 'odd' }) })).toThrow(
    "cannot post to 'main': the body is of no known type",
  );
  expect(() => home.store.lineage.fork('nowhere', any({ nam: 'x' }))).toThrow(/^cannot fork 'nowhere': /);
});
