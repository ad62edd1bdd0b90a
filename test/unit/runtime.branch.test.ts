import { audit, diffSessions } from '@tapedeck/runtime';
import {
  assistant,
  type SessionInfo,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';

const answers = ['One.', 'Two.', 'Three.', 'Four.'].map((text) => ({
  text,
  usage: { input: 10, output: 1 },
}));

const texts = (store: SqliteTapeStore, name: string) =>
  view(store.views.entries(name)).messages.map(({ content }) => content.map((part) => part.text).join());

/** A session of two turns, the second of which took the place of another: positions 2, 3 and 7, 8 are visible. */
async function withTurns() {
  const home = await scriptedDeck(answers);
  const main = await home.deck.session('main', { title: 'Release' });
  await main.run('ask 1');
  await main.run('ask 2');
  await main.rewind(4);
  await main.run('ask 2 anew');
  return { ...home, main, [Symbol.asyncDispose]: home[Symbol.asyncDispose] };
}

test('a branch contains all that is visible up to its point, and the usage of its calls', async () => {
  await using home = await withTurns();
  const { main, store } = home;
  const before = await main.info();
  const branch = await main.branch(8, { name: 'aside', title: 'Another way' });
  expect(texts(store, 'aside')).toEqual(['ask 1', 'One.', 'ask 2 anew', 'Three.']);
  const [, own] = [...store.entries.read('main')].filter(({ seq }) => seq === 7 || seq === 8);
  expect([...store.entries.read('aside', { from: 8, to: 8 })]).toEqual([
    { ...own, session: 'aside', inherited: true },
  ]);
  expect(await branch.info()).toMatchObject({
    kind: 'session',
    title: 'Another way',
    parent: 'main',
    base: 8,
    ephemeral: false,
  });
  expect(await main.info()).toEqual(before);
  const two = { steps: 2, usage: { input: 20, output: 2 }, total: 22 };
  expect(await branch.usage()).toMatchObject({ steps: 0, total: 0, inherited: two });
  await branch.run('ask 3');
  expect(await branch.usage()).toMatchObject({ steps: 1, total: 11, inherited: two });
  // In a tree nothing is counted twice: three calls of the parent, one of the branch.
  expect(await main.usage({ tree: true })).toMatchObject({ total: 33, tree: { steps: 4, total: 44 } });
  expect((await main.branch(3)).name).toMatch(/^main-fork-/);
  expect(await main.usage()).not.toHaveProperty('inherited');
});

test('a branch begins with the total usage of its parent at the point', async () => {
  await using home = await scriptedDeck(answers);
  const main = await home.deck.session('main');
  await main.run('ask 1');
  await main.run('ask 2');
  const { total, usage, steps } = await main.usage();
  const branch = await main.branch();
  await main.run('ask 3');
  expect((await branch.usage()).inherited).toEqual({ steps, usage, total });
});

test('a branch of a busy session is refused, here and elsewhere, and nothing is created', async () => {
  await using home = await scriptedDeck([{ text: 'One.', delayMs: 60_000 }]);
  const { deck, store } = home;
  const main = await deck.session('main');
  const run = main.run('ask 1');
  const busy = { code: 'SESSION_BUSY', data: { session: 'main' } };
  await expect(main.branch()).rejects.toMatchObject(busy);
  run.abort();
  await run;
  const lease = store.leases.acquire('main', { id: 'another' });
  await expect(main.branch()).rejects.toMatchObject({ ...busy, message: /^cannot branch 'main': / });
  expect(store.sessions.list({ all: true })).toHaveLength(1);
  store.leases.release(lease);
  await main.branch();
});

test('an ephemeral branch is in no list, and among the children of its parent', async () => {
  await using home = await withTurns();
  const { deck, main, store } = home;
  await main.branch(undefined, { name: 'sidecar', ephemeral: true });
  const names = (found: readonly SessionInfo[]) => found.map(({ session }) => session).sort();
  expect(names(await deck.sessions())).toEqual(['main']);
  expect(names(await deck.sessions({ all: true }))).toEqual(['main', 'sidecar']);
  expect(names(store.sessions.list({ parent: 'main', all: true }))).toEqual(['sidecar']);
  expect(await deck.find('sidecar')).toBeDefined();
});

test('a point that a rewind hides, or that does not exist, is refused', async () => {
  await using home = await withTurns();
  const { main, store } = home;
  await expect(main.branch(4)).rejects.toMatchObject({
    code: 'TAPE_BAD_POINT',
    message: expect.stringMatching(/^cannot branch/),
    data: { session: 'main', seq: 4, hidden: 6 },
  });
  await expect(main.branch(99)).rejects.toMatchObject({ code: 'TAPE_NO_SEQ' });
  await expect(main.branch('mark')).rejects.toMatchObject({ code: 'TAPE_NO_ANCHOR' });
  expect(store.sessions.list({ all: true })).toHaveLength(1);
  // At the end of a session all is meant that is visible, a rewind too.
  await main.rewind(7);
  await main.branch('head', { name: 'all' });
  expect(texts(store, 'all')).toEqual(['ask 1', 'One.']);
});

test('a point among calls without a result moves back to before them', async () => {
  await using home = await scriptedDeck(answers);
  const { store } = home;
  const main = await home.deck.session('main');
  store.entries.append('main', [user('Go'), assistant([toolCall('c1', 'read', {})])]);
  expect((await (await main.branch()).info()).base).toBe(2);
  store.entries.append('main', [toolResult({ toolCallId: 'c1', toolName: 'read' }, 'x')]);
  expect((await (await main.branch(3)).info()).base).toBe(2);
  expect((await (await main.branch(4)).info()).base).toBe(4);
});

test('a branch has no task: no recovery merges it, and no audit reports it', async () => {
  await using home = await withTurns();
  const { deck, main, store } = home;
  const branch = await main.branch(undefined, { name: 'aside' });
  await branch.run('ask 3');
  expect(store.sessions.find('aside')?.task).toBe(undefined);
  expect((await audit(store)).findings).toEqual([]);
  expect(await deck.recover()).toMatchObject({ resumed: [], merged: [] });
  expect((await main.status()).children).toBe(undefined);
  // On request it is merged as any fork.
  expect(await main.merge('aside')).toMatchObject({ state: 'merged', child: 'aside' });
});

test('branches of branches are no deeper than their source', async () => {
  await using home = await scriptedDeck(answers, { limits: { maxDepth: 1 } });
  const main = await home.deck.session('main');
  const branch = await (await main.branch()).branch();
  const child = await branch.fork();
  await expect(child.fork()).rejects.toMatchObject({ code: 'SESSION_LIMIT', data: { depth: 2 } });
  await (await child.branch()).branch();
});

test('a branch inherits settings, and given settings override them', async () => {
  await using home = await scriptedDeck(answers);
  const { script, store } = home;
  const main = await home.deck.session('main');
  await main.run('ask 1');
  const other = script([{ text: 'Said before' }, { text: 'Another model.' }, { text: 'Still another.' }]);
  await main.run('ask 2', { model: other });
  const early = await main.branch(3);
  const late = await main.branch(5);
  expect(await early.run('ask')).toMatchObject({ text: 'One.' });
  expect(await late.run('ask')).toMatchObject({ text: 'Said before' });
  const given = await main.branch(5, {
    name: 'given',
    model: home.spec,
    instructions: 'Be brief.',
    metadata: { topic: 'release', for: 'me' },
  });
  expect(await given.run('ask')).toMatchObject({ text: 'One.' });
  const below = await given.branch(undefined, { metadata: { for: 'you' } });
  expect(await below.metadata()).toEqual({ topic: 'release', for: 'you' });
  expect([await given.metadata(), await main.metadata()]).toEqual([{ topic: 'release', for: 'me' }, {}]);
  const [start] = store.entries.read(below.name, { own: true });
  expect(start?.payload).toMatchObject({ settings: { instructions: 'Be brief.', model: home.spec } });
});

test('a repeated key returns the same branch, and makes no fork', async () => {
  await using home = await withTurns();
  const { main, store } = home;
  const branch = await main.branch(8, { key: 'k', title: 'One' });
  await main.run('more');
  await main.rewind(7);
  // It is there already, wherever its parent is by now.
  expect((await main.branch(8, { key: 'k', title: 'One' })).id).toBe(branch.id);
  const conflict = { code: 'TAPE_KEY_CONFLICT' };
  await expect(main.branch(8, { key: 'k', title: 'Two' })).rejects.toMatchObject(conflict);
  await expect(main.fork({ cut: 8, key: 'k' })).rejects.toMatchObject(conflict);
  expect(store.sessions.list({ all: true })).toHaveLength(2);
});

test('a branch begins with a tail or a slice of the messages, or with none, and keeps settings and model', async () => {
  await using home = await withTurns();
  const { deck, main, store, script } = home;
  const other = script(['1', '2', '3', 'Four.'].map((text) => ({ text })));
  const first = await main.run('ask 3', { model: other, settings: { temperature: 0.5 } });
  expect(first.text).toBe('Four.');
  // A view that begins with an answer says so first: providers expect a message of a user.
  const cut = 'The conversation before this point is not shown.';
  const tail = await main.branch(undefined, { name: 'tail', inherit: { last: 3 } });
  expect(texts(store, 'tail')).toEqual([cut, 'Three.', 'ask 3', 'Four.']);
  const slice = await main.branch(8, { name: 'slice', inherit: { since: 2 } });
  expect(texts(store, 'slice')).toEqual([cut, 'One.', 'ask 2 anew', 'Three.']);
  const empty = await main.branch(undefined, { name: 'empty', inherit: 'nothing' });
  expect(texts(store, 'empty')).toEqual([]);
  // The tail has no message that a rewind hid, and the model is that of its parent at the point.
  expect(await tail.run('ask 4')).toMatchObject({ text: '1' });
  expect(await empty.run('ask 4')).toMatchObject({ text: '1' });
  expect(texts(store, 'empty')).toEqual(['ask 4', '1']);
  expect(await slice.run('ask 4')).toMatchObject({ text: 'One.' });
  expect(await tail.usage()).toMatchObject({ inherited: { steps: 2 } });
  expect(await empty.usage()).not.toHaveProperty('inherited');
  const diff = await diffSessions(store, { session: 'main' }, { session: 'tail' });
  expect(diff).toMatchObject({ base: { session: 'main', seq: first.to }, a: { ranges: [] } });
  expect(diff.b.messages).toEqual({ user: 1, assistant: 1, merge: 0 });
  expect([...store.verify()]).toEqual([]);
  expect((await audit(store)).findings).toEqual([]);
  await expect(tail.rewind(2)).rejects.toMatchObject({ code: 'TAPE_NO_SEQ' });
  expect(await main.merge('tail')).toMatchObject({ state: 'merged', child: 'tail' });
  expect(await deck.recover()).toMatchObject({ resumed: [], merged: [] });
});

test('a branch of a part refuses the forms that a fork refuses, and its key remembers the part', async () => {
  await using home = await withTurns();
  const { main, store } = home;
  const refused = [
    [{ inherit: { last: 0 } }, 'TAPE_BAD_POINT'],
    [{ inherit: { since: 'nowhere' } }, 'TAPE_NO_ANCHOR'],
    [{ inherit: JSON.parse('{"first":2}') }, 'TAPE_BAD_POINT'],
  ] as const;
  for (const [options, code] of refused)
    await expect(main.branch(undefined, options)).rejects.toMatchObject({ code });
  await expect(main.branch(3, { inherit: { since: 8 } })).rejects.toMatchObject({
    code: 'TAPE_BAD_POINT',
    message: "cannot branch 'main' since '8': it is at @8, after the cut @3",
  });
  expect(store.sessions.list({ all: true })).toHaveLength(1);
  const tail = await main.branch(8, { key: 'k', inherit: { last: 2 } });
  expect((await main.branch(8, { key: 'k', inherit: { last: 2 } })).id).toBe(tail.id);
  for (const inherit of ['all', 'nothing', { last: 3 }, { since: 2 }] as const)
    await expect(main.branch(8, { key: 'k', inherit })).rejects.toMatchObject({ code: 'TAPE_KEY_CONFLICT' });
});
