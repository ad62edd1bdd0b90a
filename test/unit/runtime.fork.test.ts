import { note, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { entryLines, scriptedDeck } from '../support/scripted.ts';

const said = [{ text: 'Two pages are out of date.' }];
const parentTail = (home: Awaited<ReturnType<typeof scriptedDeck>>) =>
  entryLines(home.store.entries.read('main')).slice(1);

test('a child works on its own tape, and its parent does not change', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [user('Hello')]);
  const head = home.store.sessions.find('main');
  const child = await main.fork({ task: 'Check the docs.' });
  expect(child).toMatchObject({ parent: 'main', base: 2, task: 'Check the docs.' });
  expect(child.name).toMatch(/^main-check-the-docs-[0-9a-f]{8}$/);
  expect(await child.run()).toMatchObject({ finish: 'stop', from: 5 });
  expect(home.store.sessions.find('main')).toEqual(head);
  expect(home.store.sessions.find(child.name)).toMatchObject({ task: 'completed' });
});

test('finishing a child merges its last text, once', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  const child = await main.fork({ name: 'docs', task: 'Check the docs.' });
  await child.run();
  const merged = await child.finish();
  expect(merged).toMatchObject({ parent: 'main', child: 'docs', state: 'merged', seq: 2, repeated: false });
  expect(await child.finish()).toEqual({ ...merged, repeated: true });
  expect(await main.merge(child)).toEqual({ ...merged, repeated: true });
  expect(parentTail(home)).toEqual([
    'anchor merge/docs',
    expect.stringContaining('Two pages are out of date.'),
  ]);
});

test('an explicit result overrides the last text', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  const child = await main.fork({ name: 'docs', task: 'Check the docs.' });
  await child.run();
  await child.result({ outdated: ['intro.md', 'api.md'] });
  await child.finish();
  expect(parentTail(home)[1]).toContain('{"outdated":["intro.md","api.md"]}');
});

test('a child that grew after its merge merges only its new entries', async () => {
  await using home = await scriptedDeck([...said, { text: 'And a third.' }]);
  const main = await home.deck.session('main');
  const child = await main.fork({ name: 'docs', task: 'Check the docs.' });
  await child.run();
  const first = await child.finish();
  await child.run('Look again.');
  const second = await child.finish();
  expect(second).toMatchObject({ repeated: false, range: [first.range[1] + 1, first.range[1] + 2] });
  expect(parentTail(home)[3]).toContain('And a third.');
});

test('a discarded child leaves a receipt, and no message', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  const child = await main.fork({ name: 'docs' });
  await child.discard('not needed any more');
  const [, mark, ...rest] = home.store.entries.read('main');
  expect(rest).toEqual([]);
  expect(mark).toMatchObject({
    name: 'merge/docs',
    payload: { state: { strategy: 'discard', reason: 'not needed any more' } },
  });
  expect(home.store.sessions.find('docs')).toMatchObject({ delivery: 'discarded' });
  await expect(child.finish()).rejects.toMatchObject({ code: 'TAPE_CONFLICT' });
});

test('withFork merges the result of the child, and returns what the block returned', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  const { value, merge } = await main.withFork({ name: 'docs' }, async (child) => {
    await child.run('Check the docs.');
    return 42;
  });
  expect(value).toBe(42);
  expect(merge).toMatchObject({ child: 'docs', state: 'merged', repeated: false });
  expect(parentTail(home)).toHaveLength(2);
});

test('withFork merges the failure of a block that throws, and rethrows it', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  const act = main.withFork({ name: 'docs' }, async () => {
    throw new RangeError('no such page');
  });
  await expect(act).rejects.toThrow(RangeError);
  const [, mark, message] = home.store.entries.read('main');
  expect(mark?.payload).toMatchObject({ state: { status: 'failed' } });
  expect(entryLines(message === undefined ? [] : [message])[0]).toContain('Error: no such page');
  expect(home.store.sessions.find('main')?.head).toBe(3);
});

test('withFork discards or keeps a child whose block throws, as onUnmerged says', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  for (const onUnmerged of ['discard', 'keep'] as const) {
    const act = main.withFork({ name: onUnmerged, onUnmerged }, async () => {
      throw new Error('no such page');
    });
    await expect(act).rejects.toThrow('no such page');
  }
  expect(parentTail(home)).toEqual(['anchor merge/discard']);
});

test('withFork leaves a child discarded that the block discarded', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  const { value, merge } = await main.withFork({ name: 'docs' }, async (child) => {
    await child.discard('nothing came of it');
    return 'done';
  });
  expect(value).toBe('done');
  expect(merge).toMatchObject({ state: 'discarded' });
  expect(parentTail(home)).toEqual(['anchor merge/docs']);
});

test('withFork rethrows an error that the block throws after it finished the child itself', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  const act = main.withFork({ name: 'docs' }, async (child) => {
    await child.run('Check the docs.');
    await child.finish();
    throw new RangeError('afterwards');
  });
  await expect(act).rejects.toThrow('afterwards');
  expect(parentTail(home)).toEqual(['anchor merge/docs', expect.stringContaining('Two pages')]);
});

test.each([
  { onUnmerged: 'fail', delivery: 'merged', tail: ['anchor merge/docs', expect.stringContaining('Error: ')] },
  { onUnmerged: 'discard', delivery: 'discarded', tail: ['anchor merge/docs'] },
  { onUnmerged: 'keep', delivery: undefined, tail: [] },
] as const)('leaving a block with an unfinished child: $onUnmerged', async (policy) => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  {
    await using child = await main.fork({ name: 'docs', onUnmerged: policy.onUnmerged });
    expect(child.parent).toBe('main');
  }
  expect(parentTail(home)).toEqual(policy.tail);
  expect(home.store.sessions.find('docs')?.delivery).toBe(policy.delivery);
});

test('leaving a block with a child that was finished or discarded writes nothing more', async () => {
  await using home = await scriptedDeck([...said, ...said]);
  const main = await home.deck.session('main');
  {
    await using done = await main.fork({ name: 'done', onUnmerged: 'fail' });
    await done.run('Check the docs.');
    await done.finish();
    await using left = await main.fork({ name: 'left' });
    await left.discard('no');
  }
  expect(parentTail(home)).toEqual(['anchor merge/done', expect.any(String), 'anchor merge/left']);
});

test('a grandchild is merged one level at a time', async () => {
  await using home = await scriptedDeck(said);
  const main = await home.deck.session('main');
  const child = await main.fork({ name: 'child' });
  const grandchild = await child.fork({ name: 'grandchild' });
  await grandchild.run('Check the docs.');
  expect(await child.merge(grandchild)).toMatchObject({ parent: 'child', child: 'grandchild' });
  expect(entryLines(home.store.entries.read('child', { own: true }))).toContain('anchor merge/grandchild');
  expect(parentTail(home)).toEqual([]);
  await child.finish();
  expect(parentTail(home)[0]).toBe('anchor merge/child');
});

test('a busy parent can be forked too, at its settled point', async () => {
  await using home = await scriptedDeck([{ text: 'Slow.', delayMs: 100 }]);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [note('deploy', {})]);
  const run = main.run('Take your time.');
  await run[Symbol.asyncIterator]().next();
  const child = await main.fork({ inherit: 'nothing' });
  expect(child.base).toBe(3);
  await run;
});
