import { setTimeout as sleep } from 'node:timers/promises';
import { audit } from '@tapedeck/runtime';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { slowModel } from '../support/slow-model.ts';
import { openStore } from '../support/store.ts';

const answers = ['One.', 'Two.', 'Three.'].map((text) => ({ text, usage: { input: 10, output: 1 } }));

test('a model writes the title of a session after its first answer, once, and its usage is counted', async () => {
  const titles = slowModel(['# "Plan the ', 'release"\n', 'And more.'], 5);
  await using home = await scriptedDeck(answers, { titles });
  const { deck, store } = home;
  const main = await deck.session('main');
  const run = await main.run('Plan the release, please.');
  // The run has ended, and another can begin, before the title is there.
  expect((await main.info()).title).toBe(undefined);
  await deck.idle();
  expect(await main.info()).toMatchObject({ title: 'Plan the release', head: run.to + 1 });
  expect((await deck.sessions()).map(({ title }) => title)).toEqual(['Plan the release']);
  const [writer] = store.sessions.list({ parent: 'main', all: true });
  expect(writer).toMatchObject({
    kind: 'summarizer',
    ephemeral: true,
    task: 'completed',
    title: 'Title of main',
  });
  expect(entryLines(store.entries.read(writer?.id ?? '', { own: true }))).toEqual([
    'anchor fork/start',
    'anchor intention',
    'event title/asked',
    'assistant: # "Plan the release"\nAnd more.',
  ]);
  expect(await main.usage()).toMatchObject({ steps: 1, total: 11, summaries: { steps: 1, total: 6 } });
  expect(await main.run()).toMatchObject({ nothingToContinue: true });
  await main.run('Go on');
  await deck.idle();
  expect(titles.calls()).toBe(1);
  const texts = (await main.view()).messages.map(({ content }) => content[0]?.text);
  expect(texts).toEqual(['Plan the release, please.', 'One.', 'Go on', 'Two.']);
  expect((await main.status()).children).toBe(undefined);
  expect((await audit(store)).findings).toEqual([]);
  expect([...store.verify()]).toEqual([]);
  expect(await deck.recover()).toMatchObject({ resumed: [], merged: [] });
});

test('a given title stays, children keep their tasks, and a branch gets a title of its own', async () => {
  const titles = slowModel(['Written'], 1);
  await using home = await scriptedDeck(answers, { titles });
  const { deck, store } = home;
  const given = await deck.session('given', { title: 'Given' });
  await given.run('Go');
  const main = await deck.session('main');
  await main.run('Go');
  await deck.idle();
  await main.delegate('Check the tests');
  const branch = await main.branch(undefined, { name: 'branch' });
  expect((await branch.info()).title).toBe(undefined);
  await branch.run('Another way');
  await deck.idle();
  const named = Object.fromEntries(
    store.sessions
      .list({ after: null })
      .map(({ session, kind, title }) => [kind === 'subagent' ? kind : session, title]),
  );
  expect(named).toEqual({ given: 'Given', main: 'Written', subagent: undefined, branch: 'Written' });
  expect(titles.calls()).toBe(2);
});

test('a model that fails, is silent or is too slow leaves the run and the session as they are', async () => {
  const failing = { ...slowModel([], 1), doStream: () => Promise.reject(new Error('no titles today')) };
  for (const [titles, message] of [
    [failing, 'no titles today'],
    [slowModel([' \n ', '\u0007'], 1), 'the model returned no title'],
  ] as const) {
    using store = openStore();
    await using deck = await openDeck({ store, model: slowModel(['Fine.'], 1), titles });
    const main = await deck.session('main');
    expect(await main.run('Go')).toMatchObject({ finish: 'stop', text: 'Fine.' });
    await deck.idle();
    expect((await main.info()).title).toBe(undefined);
    const [writer] = store.sessions.list({ parent: 'main', all: true });
    expect(writer).toMatchObject({ kind: 'summarizer', task: 'failed' });
    expect([...store.entries.read(writer?.id ?? '', { name: 'title/failed' })]).toMatchObject([
      { payload: { message: expect.stringContaining(message) } },
    ]);
    // It is not tried again.
    await main.run('Go on');
    await deck.idle();
    expect(store.sessions.list({ parent: 'main', all: true })).toHaveLength(1);
    expect((await deck.sessions({ titles: true }))[0]?.title).toBe('Go');
  }
});

test('a model that cannot be used is a warning; a session without an answer is titled after the first one', async () => {
  await using home = await scriptedDeck([{ error: 'no answer' }, ...answers], {
    titles: 'openai-compatible/none',
    env: {},
  });
  const { deck, store } = home;
  const main = await deck.session('main');
  const told: string[] = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const event of main.subscribe({ signal: stop.signal }))
      if (event.type === 'warning') told.push(event.message);
  })();
  expect((await main.run('Go')).finish).toBe('error');
  await deck.idle();
  expect(told).toEqual([]);
  expect((await main.run('Again')).finish).toBe('stop');
  await deck.idle();
  await sleep(10);
  stop.abort();
  await reading;
  expect(told).toEqual([expect.stringMatching(/^cannot write a title for 'main': .*OPENAI_BASE_URL/)]);
  expect(store.sessions.list({ all: true })).toHaveLength(1);
});

test('closing a deck ends the writing of a title, and nothing is left of it', async () => {
  using store = openStore();
  const deck = await openDeck({ store, model: slowModel(['Fine.'], 1), titles: slowModel(['Late'], 60_000) });
  const main = await deck.session('main');
  await main.run('Go');
  await sleep(20);
  await deck.close();
  expect(store.sessions.list({ all: true })).toHaveLength(1);
});

test('a title that is ready while the session runs arrives at the end of that run', async () => {
  using store = openStore();
  await using deck = await openDeck({
    store,
    model: slowModel(['Fine.'], 40),
    titles: slowModel(['A title'], 20),
  });
  const main = await deck.session('main');
  await main.run('Go');
  const second = main.run('Go on');
  expect((await second).finish).toBe('stop');
  await deck.idle();
  expect((await main.info()).title).toBe('A title');
  expect((await main.view()).messages).toHaveLength(4);
});
