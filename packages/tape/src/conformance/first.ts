import { assistant, type Draft, user } from '../entry/entry.ts';
import { entryBytesMax } from '../entry/json.ts';
import { all, answers, asks, type Chapter, refusal, sessionOf, textOf } from './contract.ts';

/** Children that are created with their first entries. */
export const firstChapter: Chapter = ({ test, expect }, open) => {
  test('a child that is forked with its first entries has them with its first reader, as if they were appended', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    const first = [
      { ...user('m'), key: 'k' },
      asks('c1'),
      answers('c1'),
      assistant('Done.', { model: 'm-1', usage: { input: 7, output: 3 } }),
      asks('c2'),
    ];
    const request = { cut: 2, intention: { nextSteps: 'Look.' } };
    const { entries, ...receipt } = await store.lineage.previewFork('main', {
      ...request,
      ...{ name: 'one', first },
    });
    expect(entries.map(({ seq, kind }) => [seq, kind])).toEqual([
      [3, 'anchor'],
      [4, 'anchor'],
      [5, 'message'],
      [6, 'message'],
      [7, 'tool-result'],
      [8, 'message'],
      [9, 'message'],
    ]);
    const { id, tape: _, ...forked } = await store.lineage.fork('main', { ...request, name: 'one', first });
    expect(forked).toEqual(receipt);
    await store.lineage.fork('main', { ...request, name: 'two' });
    await store.entries.append('two', first);
    const read = async (name: string) => {
      const own = await all(store.entries.read(name, { own: true }));
      return own.map(({ seq, kind, key, payload, meta }) => ({ seq, kind, key, payload, meta }));
    };
    expect((await read('one')).slice(2)).toEqual((await read('two')).slice(2));
    const stateIn = async (name: string) => {
      const info = await store.sessions.find(name);
      if (info === undefined) return undefined;
      const { base, head, settled, messageCount, lastMessageAt } = info;
      return { base, head, settled, messageCount, hasSpoken: lastMessageAt !== undefined };
    };
    expect(await stateIn('one')).toEqual(await stateIn('two'));
    const usageOf = async (session: string) =>
      (await store.sessions.calls({ session })).map(({ usage }) => usage);
    expect(await usageOf('one')).toEqual(await usageOf('two'));
    const [line, ...more] = await all(store.lineage.read({ session: id }));
    const head = (await store.sessions.find('one'))?.headHash;
    expect([line?.type, line?.child_head, more.length]).toEqual(['fork', head, 0]);
    expect(await all(store.verify())).toEqual([]);
  });

  test('a child can begin with a rewind of what it inherits, and end with finished work', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 3);
    const rewind: Draft = { kind: 'rewind', mark: 'rewind', ref: 2, payload: { to: 2, mode: 'test' } };
    const done = { drafts: [assistant('It is done.')], task: 'completed' } as const;
    await store.lineage.fork('main', { name: 'child', first: [rewind, user('other')], done });
    expect(
      (await all(store.views.entries('child'))).filter(({ kind }) => kind === 'message').map(textOf),
    ).toEqual(['m1', 'other', 'It is done.']);
    expect(await store.sessions.find('child')).toMatchObject({ task: 'completed' });
    expect(await all(store.verify())).toEqual([]);
  });

  test('a child that cannot begin with what it is given is not created, and its key stays free', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const before = await all(store.lineage.read());
    const bad: readonly Draft[] = [
      { kind: 'rewind', mark: 'rewind', ref: 9, payload: { to: 9 } },
      user('x'.repeat(entryBytesMax + 1)),
      null as never,
    ];
    for (const draft of bad) {
      const request = { name: 'child', key: 'k', first: [user('fine'), draft] };
      expect((await refusal(() => store.lineage.fork('main', request))).code).toBe('TAPE_BAD_ENTRY');
      expect(await store.sessions.find('child')).toBe(undefined);
    }
    expect(await all(store.lineage.read())).toEqual(before);
    const forked = await store.lineage.fork('main', { name: 'child', key: 'k', first: [user('one')] });
    expect(forked.repeated).toBe(false);
    // What it begins with is no part of the request, and is written once.
    const again = await store.lineage.fork('main', { name: 'child', key: 'k', first: [user('another')] });
    expect(again).toEqual({ ...forked, repeated: true });
    const own = await all(store.entries.read('child', { own: true, kind: 'message' }));
    expect(own.map(textOf)).toEqual(['one']);
  });

  test('a parent that has other entries than its caller read is not forked, unless the child exists', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const expectHead = (await store.sessions.find('main'))?.headHash ?? '';
    const forked = await store.lineage.fork('main', { key: 'k', expectHead });
    await store.entries.append('main', [user('more')]);
    for (const act of [
      () => store.lineage.fork('main', { key: 'other', expectHead }),
      () => store.lineage.previewFork('main', { key: 'other', expectHead }),
    ])
      expect(await refusal(act)).toMatchObject({
        code: 'TAPE_STALE_HEAD',
        data: { session: 'main', head: 3 },
      });
    expect(await store.lineage.fork('main', { key: 'k', expectHead })).toEqual({ ...forked, repeated: true });
    expect((await store.sessions.list({ parent: 'main' })).length).toBe(1);
  });
};
