import { assistant, user } from '../entry/entry.js';
import { entryBytesMax } from '../entry/json.js';
import { all, answers, asks,               refusal, sessionOf } from './contract.js';

/** Children that are created with finished work. */
export const doneChapter          = ({ test, expect }, open) => {
  test('a child that is created with finished work has its entries, its final state and one lineage line', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 3);
    const before = await store.sessions.find('main');
    const drafts = [{ ...user('m'), key: 'k' }, asks('c1'), answers('c1'), assistant('It is done.')];
    const request = { name: 'child', key: 'f', cut: 2, done: { drafts, task: 'failed' } }         ;
    const { entries, ...receipt } = await store.lineage.previewFork('main', request);
    expect(receipt).toMatchObject({ base: 2, range: [1, 2], repeated: false });
    expect(entries.map(({ seq, kind }) => [seq, kind])).toEqual([
      [3, 'anchor'],
      [4, 'message'],
      [5, 'message'],
      [6, 'tool-result'],
      [7, 'message'],
    ]);
    const forked = await store.lineage.fork('main', request);
    expect(await store.sessions.find('main')).toEqual(before);
    expect(await store.sessions.find('child')).toMatchObject({
      task: 'failed',
      base: 2,
      head: 7,
      settled: 7,
    });
    const own = await all(store.entries.read('child', { own: true }));
    expect(own.map(({ seq, key }) => [seq, key])).toEqual([
      [3, undefined],
      [4, 'u:k'],
      [5, undefined],
      [6, undefined],
      [7, undefined],
    ]);
    const lines = await all(store.lineage.read({ session: 'child' }));
    expect(lines).toMatchObject([
      { type: 'fork', status: 'failed', task: 'failed', child_head: own.at(-1)?.hash },
    ]);
    // The finished work is not part of the request: the same request later gives the same child.
    const again = { name: 'child', key: 'f', cut: 2 };
    expect(await store.lineage.fork('main', again)).toEqual({ ...forked, repeated: true });
    expect(await all(store.verify())).toEqual([]);
  });

  test('work that an entry cannot hold is an error, and creates no child', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const before = await all(store.lineage.read());
    const bad = [
      { kind: 'rewind', mark: 'rewind', ref: 1, payload: {} }         ,
      user('x'.repeat(entryBytesMax + 1)),
    ];
    for (const draft of bad) {
      const request = { name: 'child', done: { drafts: [user('fine'), draft], task: 'completed' } }         ;
      expect((await refusal(() => store.lineage.fork('main', request))).code).toBe('TAPE_BAD_ENTRY');
      expect(await store.sessions.find('child')).toBe(undefined);
    }
    expect(await all(store.lineage.read())).toEqual(before);
  });
};
