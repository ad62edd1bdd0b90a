import { anchor, handoff,           user } from '../entry/entry.js';
                                                      
                                                   
import { all, answers, asks,               refusal, sessionOf, textOf } from './contract.js';

/** Returns the messages of a session's current view. */
async function seen(store           , name        )                    {
  return (await all(store.views.entries(name))).filter((e) => e.kind === 'message').map(textOf);
}

/** Returns the positions that no rewind hides: first and last of each range. */
async function shown(store           , name        , query             = {})                        {
  const ranges = await store.views.ranges(name, query);
  return ranges.flatMap(({ from, to, hiddenBy }) => (hiddenBy === undefined ? [[from, to]] : []));
}

/** Rewinds. */
export const rewindChapter          = ({ test, expect }, open) => {
  test('a rewind hides and an unrewind shows again; no entry is removed', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 4);
    expect(await store.history.rewind('main', 3)).toMatchObject({ seq: 6, to: 3, hidden: 2, forks: [] });
    expect(await seen(store, 'main')).toEqual(['m1', 'm2']);
    await store.entries.append('main', [user('instead')]);
    expect(await seen(store, 'main')).toEqual(['m1', 'm2', 'instead']);
    expect(await store.history.unrewind('main')).toMatchObject({ seq: 8, to: 5 });
    expect(await seen(store, 'main')).toEqual(['m1', 'm2', 'm3', 'm4']);
    await store.history.unrewind('main');
    expect(await seen(store, 'main')).toEqual(['m1', 'm2', 'instead']);
    expect((await all(store.entries.read('main'))).map((e) => e.seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('an unrewind undoes the given rewind, even one before the last', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 4);
    await store.history.rewind('main', 4);
    await store.history.rewind('main', 2);
    expect(await store.history.unrewind('main', { rewind: 6 })).toMatchObject({ seq: 8, to: 5, shown: 3 });
    expect(await seen(store, 'main')).toEqual(['m1', 'm2', 'm3', 'm4']);
    await store.history.unrewind('main');
    expect(await seen(store, 'main')).toEqual(['m1']);
    const refused = [
      [{ rewind: 3 }, 'TAPE_BAD_POINT'],
      [{ rewind: 99 }, 'TAPE_NO_SEQ'],
    ]         ;
    for (const [which, code] of refused)
      expect((await refusal(() => store.history.unrewind('main', which))).code).toBe(code);
    await store.lineage.fork('main', { name: 'child' });
    // A child cannot undo a rewind that it inherited.
    expect((await refusal(() => store.history.unrewind('child', { rewind: 6 }))).code).toBe('TAPE_BAD_POINT');
  });

  test('a rewind reports how many entries it hides and shows, and the ranges list the rest', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 4);
    expect(await shown(store, 'main')).toEqual([[1, 5]]);
    expect(await store.history.rewind('main', 3)).toMatchObject({ hidden: 2, shown: 0 });
    await store.entries.append('main', [user('instead')]);
    expect(await shown(store, 'main')).toEqual([
      [1, 3],
      [7, 7],
    ]);
    expect(await store.history.unrewind('main')).toMatchObject({ hidden: 1, shown: 2 });
    expect(await shown(store, 'main')).toEqual([[1, 5]]);
    expect(await shown(store, 'main', { at: 7 })).toEqual([
      [1, 3],
      [7, 7],
    ]);
    expect(await store.history.unrewind('main')).toMatchObject({ hidden: 2, shown: 1 });
    await store.lineage.fork('main', { name: 'child', inherit: { since: 2 } });
    expect(await shown(store, 'child')).toEqual([
      [3, 3],
      [7, 7],
      [10, 10],
    ]);
    expect(await shown(store, 'child', { at: '@2' })).toEqual([]);
  });

  test('ranges divide a session into what readers see and what each rewind hides', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 4);
    await store.history.rewind('main', 3);
    await store.entries.append('main', [user('instead')]);
    await store.history.rewind('main', 1);
    const ranges = [
      { from: 1, to: 1 },
      { from: 2, to: 8, hiddenBy: 8 },
    ];
    expect(await store.views.ranges('main')).toEqual(ranges);
    const before = [
      { from: 1, to: 3 },
      { from: 4, to: 6, hiddenBy: 6 },
      { from: 7, to: 7 },
    ];
    expect(await store.views.ranges('main', { at: 7 })).toEqual(before);
    expect(await store.views.ranges('main', { at: 7, from: 5 })).toEqual(before.slice(1));
    expect(await store.views.ranges('main', { at: 7, from: 8 })).toEqual([]);
  });

  test('a rewind to the start hides everything before it', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    expect(await store.history.rewind('main', '@0')).toMatchObject({ to: 0, hidden: 3 });
    expect(await all(store.views.entries('main'))).toEqual([]);
    expect((await refusal(() => store.history.rewind('main', 5))).code).toBe('TAPE_NO_SEQ');
    await store.sessions.open('plain');
    expect((await refusal(() => store.history.unrewind('plain'))).code).toBe('TAPE_BAD_POINT');
  });

  test('a rewind into a batch of tool calls moves back to before it', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.entries.append('main', [asks('c1'), answers('c1'), user('next')]);
    expect(await store.history.rewind('main', 3)).toMatchObject({ to: 2, snappedFrom: 3 });
    await store.entries.append('main', [asks('c2')]);
    expect(await store.history.rewind('main', 'head')).toMatchObject({ to: 6, snappedFrom: 7 });
    expect(await store.sessions.find('main')).toMatchObject({ head: 8, settled: 8 });
  });

  test('an anchor that a rewind hides is found only by its position', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [anchor('task'), user('a'), anchor('task')]);
    await store.history.rewind('main', 3);
    expect(await store.entries.resolve('main', 'task')).toBe(2);
    await store.history.rewind('main', 1);
    expect(await refusal(() => store.entries.resolve('main', 'task'))).toMatchObject({
      code: 'TAPE_NO_ANCHOR',
      data: { hidden: { seq: 4, by: 6 } },
    });
    expect(await store.entries.resolve('main', '@4')).toBe(4);
  });

  test('a child rewinds into what it inherited, on its own tape only', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 3);
    await store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Go.' } });
    await store.entries.append('child', [user('own')]);
    await store.history.rewind('child', 2);
    expect(await seen(store, 'child')).toEqual(['m1']);
    expect((await all(store.views.entries('child'))).map((e) => e.name).includes('intention')).toBe(true);
    expect(await store.entries.resolve('child', 'intention')).toBe(6);
    expect(await seen(store, 'main')).toEqual(['m1', 'm2', 'm3']);
  });

  test('a child keeps the rewinds and boundaries of its parent up to the cut', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 4);
    await store.history.rewind('main', 3);
    await store.entries.append('main', [user('m5'), handoff('H', {}, { keepFrom: 3 }), user('m6')]);
    await store.lineage.fork('main', { name: 'after' });
    await store.lineage.fork('main', { name: 'between', cut: 7 });
    await store.lineage.fork('main', { name: 'before', cut: 5 });
    await store.lineage.fork('main', { name: 'clipped', inherit: { since: 4 } });
    expect(await seen(store, 'after')).toEqual(['m2', 'm5', 'm6']);
    expect(await seen(store, 'between')).toEqual(['m1', 'm2', 'm5']);
    expect(await seen(store, 'before')).toEqual(['m1', 'm2', 'm3', 'm4']);
    expect(await seen(store, 'clipped')).toEqual(['m5', 'm6']);
  });

  test('a rewind names the children whose fork point it hides', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 4);
    await store.lineage.fork('main', { name: 'early', cut: 2 });
    await store.lineage.fork('main', { name: 'late', cut: 4 });
    await store.lineage.fork('main', { name: 'gone' });
    await store.lineage.merge('gone', { strategy: 'discard' });
    // A child that only wrote a summary is not listed.
    await store.lineage.fork('main', { name: 'summary', kind: 'summarizer' });
    expect((await store.history.rewind('main', 3)).forks).toEqual(['late']);
  });
};
