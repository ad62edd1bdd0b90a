import { anchor, assistant, note, result, user } from '../entry/entry.ts';
import type { EntryQuery } from '../store/options.ts';
import { all, answers, asks, type Chapter, finishedChild, refusal, sessionOf, textOf } from './contract.ts';

const discarding = { strategy: 'discard' } as const;

/** Merges and discards. */
export const mergeChapter: Chapter = ({ test, expect }, open) => {
  test('a merge is one mark and one message at the tail of the parent', async () => {
    await using store = await open();
    await finishedChild(store);
    const childBefore = await all(store.entries.read('child'));
    const merged = await store.lineage.merge('child');
    expect(merged).toMatchObject({
      parent: 'main',
      child: 'child',
      state: 'merged',
      seq: 4,
      range: [4, 6],
      repeated: false,
      complete: true,
      conflicts: [],
    });
    const [mark, message] = await all(store.entries.read('main', { from: 4 }));
    expect([mark?.kind, mark?.mark, mark?.name]).toEqual(['anchor', 'anchor', 'merge/child']);
    const child = await store.sessions.find('child');
    expect(mark?.payload).toMatchObject({
      state: { child: child?.id, range: [4, 6], child_head: child?.headHash, strategy: 'result', gap: 0 },
    });
    expect(message?.payload).toMatchObject({ role: 'user' });
    expect(message?.meta).toMatchObject({ source: 'merge', session: 'child', from: 'child:4-6' });
    expect(textOf(message)).toMatch(/<merge-[0-9a-f]{8} [^>]*>\ndone\n<\/merge-/);
    expect(child).toMatchObject({ delivery: 'merged', head: 6 });
    expect(await all(store.entries.read('child'))).toEqual(childBefore);
  });

  test('a merge that an import found has the time at its source, and names where the result came back', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 0);
    const said = { source: 'import', timestamp: '2026-03-12T11:00:00.000Z' };
    await store.entries.append('main', [user('Ask.', said)]);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [assistant('done', said)]);
    const nowhere = await refusal(() => store.lineage.merge('child', { received: 9 }));
    expect(nowhere.code).toBe('TAPE_NO_SEQ');
    await store.lineage.merge('child', { timestamp: '2026-03-12T10:00:00.000Z', received: 2 });
    expect(await all(store.lineage.read({ types: ['merge'] }))).toMatchObject([{ seq: 3, received: 2 }]);
    const entries = await all(store.entries.read('main', { from: 3 }));
    const came = Date.parse('2026-03-12T10:00:00.000Z');
    expect(entries.map(({ sourceAt }) => sourceAt)).toEqual([came, came]);
    const last = Date.parse(said.timestamp);
    expect((await store.sessions.find('main'))?.lastMessageAt).toBe(last);
    expect(await all(store.verify())).toEqual([]);
  });

  test('a merge of a child that asks for it starts one run of its parent, by any call', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.lineage.fork('main', { name: 'child', deliver: 'merge+turn' });
    await store.lineage.fork('child', { name: 'grand', deliver: 'merge+turn' });
    const notices = async () => (await store.inbox.list('main')).map(({ body }) => body);
    await store.lineage.merge('grand', { into: 'main' });
    expect(await notices()).toEqual([]);
    await store.entries.append('child', [result('Done.')]);
    await store.lineage.merge('child', { text: 'All done.' });
    await store.lineage.merge('child');
    expect(await notices()).toMatchObject([{ type: 'input' }]);
    expect(JSON.stringify(await notices())).toMatch(
      /Session child, which you started, has ended \(completed\)/,
    );
    // A merge that a rewind hides is done again, and its message is another one.
    await store.history.rewind('main', 2);
    await store.lineage.merge('child');
    expect(new Set((await store.inbox.list('main')).map(({ key }) => key)).size).toBe(2);
    await store.lineage.fork('main', { name: 'other', deliver: 'merge+turn' });
    await store.lineage.merge('other', { strategy: 'discard' });
    expect((await notices()).length).toBe(2);
  });

  test('a child that only notifies tells its parent each end of its task, and is not merged', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.lineage.fork('main', { name: 'child', deliver: 'notify' });
    await store.entries.append('child', [assistant('secret result')]);
    const news = async () =>
      (await all(store.entries.read('main', { kind: 'message', from: 3 }))).map(textOf);
    await store.sessions.update('child', { task: 'running' });
    expect(await news()).toEqual([]);
    await store.sessions.update('child', { task: 'halted' });
    await store.sessions.update('child', { task: 'halted' });
    const end = (task: string) =>
      `Session child, which you started, has ended (${task}). Its result is not merged; it is on the tape of child.`;
    expect(await news()).toEqual([end('halted')]);
    expect((await store.sessions.find('child'))?.delivery).toBe(undefined);
    expect(await all(store.lineage.read({ types: ['merge'] }))).toEqual([]);
    expect(await store.sessions.list({ under: 'main', unfinished: true, all: true })).toEqual([]);
    // Given another task, it ends again. A process that writes the parent appends the message.
    const lease = await store.leases.acquire('main', { id: 'alice' });
    await store.sessions.update('child', { task: 'running' });
    await store.sessions.update('child', { task: 'completed' });
    expect((await news()).length).toBe(1);
    await store.inbox.drain(lease);
    expect(await news()).toEqual([end('halted'), end('completed')]);
    await store.leases.release(lease);
    // An archived parent takes no message.
    await store.sessions.update('main', { lifecycle: 'archived' });
    await store.sessions.update('child', { task: 'failed' });
    expect(await store.inbox.list('main')).toEqual([]);
  });

  test('merging again returns the same receipt and writes nothing', async () => {
    await using store = await open();
    await finishedChild(store);
    const merged = await store.lineage.merge('child');
    await store.entries.append('main', [user('next')]);
    expect(await store.lineage.merge('child')).toEqual({ ...merged, repeated: true });
    expect((await store.sessions.find('main'))?.head).toBe(6);
    expect((await refusal(() => store.lineage.merge('child', { strategy: 'summary' }))).code).toBe(
      'TAPE_CONFLICT',
    );
    expect((await refusal(() => store.lineage.merge('child', { text: 'else' }))).code).toBe('TAPE_CONFLICT');
    expect(await store.lineage.merge('child', { text: 'done' })).toMatchObject({ repeated: true });
  });

  test('a second merge covers what the child added after the first', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.lineage.merge('child');
    await store.entries.append('child', [user('And?'), assistant('more')]);
    expect(await store.lineage.merge('child')).toMatchObject({ range: [7, 8], repeated: false, seq: 6 });
    expect((await all(store.entries.read('main', { from: 7 }))).map(textOf)[0]).toMatch(/\nmore\n/);
    expect(await store.lineage.merge('child')).toMatchObject({ range: [7, 8], repeated: true, seq: 6 });
  });

  test('what a child has done is delivered once, whatever has followed on its tape', async () => {
    await using store = await open();
    await finishedChild(store);
    const first = await store.lineage.merge('child', { unlessMerged: 6 });
    expect(first).toMatchObject({ range: [4, 6], repeated: false });
    await store.entries.append('child', [note('seen', {}), anchor('later'), user('Left.')]);
    const again = { ...first, repeated: true };
    const other = { text: 'else', strategy: 'summary' } as const;
    for (const request of [{ unlessMerged: 6 }, { unlessMerged: 9 }, { unlessMerged: 9, ...other }]) {
      expect(await store.lineage.previewMerge('child', request)).toMatchObject({ repeated: true, seq: 4 });
      expect(await store.lineage.merge('child', request)).toEqual(again);
    }
    const lease = await store.leases.acquire('main', { id: 'runner' });
    const body = { type: 'merge', draft: { child: 'child', unlessMerged: 9 } } as const;
    await store.inbox.post('main', { body });
    expect(await store.inbox.drain(lease)).toBe(1);
    await store.leases.release(lease);
    expect((await store.sessions.find('main'))?.head).toBe(5);
    // It works on: a request for what was delivered has its receipt still, and one for the rest merges the rest.
    await store.entries.append('child', [user('And?'), assistant('more')]);
    expect(await store.lineage.merge('child', { unlessMerged: 9 })).toEqual(again);
    expect(await store.lineage.merge('child', { unlessMerged: 11 })).toMatchObject({
      range: [7, 11],
      repeated: false,
    });
    expect((await refusal(() => store.lineage.merge('child', { unlessMerged: 9, ...discarding }))).code).toBe(
      'TAPE_CONFLICT',
    );
  });

  test('without a position a child that has grown is merged again, and so is one whose merge is undone', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.lineage.merge('child');
    await store.entries.append('child', [note('seen', {})]);
    expect(await store.lineage.merge('child')).toMatchObject({ range: [7, 7], repeated: false });
    await store.history.rewind('main', 3);
    expect(await store.lineage.merge('child', { unlessMerged: 6 })).toMatchObject({ repeated: false });
  });

  test('a child is undone while a rewind hides each of its merges', async () => {
    await using store = await open();
    await finishedChild(store);
    const states = async () => {
      const found = await store.sessions.find('child');
      const [listed] = await store.sessions.list({ parent: 'main', all: true });
      const [main] = (await store.sessions.list({ all: true, counts: true })).filter(
        ({ session }) => session === 'main',
      );
      const { openChildren, mergedChildren } = main?.counts ?? {};
      return [found?.delivery, found?.undone, listed?.undone, openChildren, mergedChildren];
    };
    const [unmerged, merged, undone] = [
      [undefined, undefined, undefined, 1, 0],
      ['merged', undefined, undefined, 0, 1],
      ['merged', true, true, 1, 0],
    ];
    expect(await states()).toEqual(unmerged);
    const { seq } = await store.lineage.merge('child');
    expect(await states()).toEqual(merged);
    await store.history.rewind('main', seq - 1);
    expect(await states()).toEqual(undone);
    await store.history.unrewind('main');
    expect(await states()).toEqual(merged);
    // A second merge counts, although the first is undone.
    await store.history.rewind('main', seq - 1);
    await store.lineage.merge('child');
    expect(await states()).toEqual(merged);
    // One whose merges are all undone can be discarded, and that is for good.
    await store.history.rewind('main', seq - 1);
    expect(await store.lineage.merge('child', discarding)).toMatchObject({ state: 'discarded' });
    await store.history.rewind('main', seq - 1);
    expect(await states()).toEqual(['discarded', undefined, undefined, 0, 0]);
  });

  test('a discard writes a mark and no message, and excludes a merge', async () => {
    await using store = await open();
    await finishedChild(store);
    const discard = { strategy: 'discard', reason: 'not needed' } as const;
    expect(await store.lineage.merge('child', discard)).toMatchObject({ state: 'discarded', seq: 4 });
    expect((await all(store.entries.read('main', { from: 4 }))).map((e) => e.kind)).toEqual(['anchor']);
    expect((await store.sessions.find('child'))?.delivery).toBe('discarded');
    expect(await store.lineage.merge('child', discard)).toMatchObject({ state: 'discarded', repeated: true });
    expect((await refusal(() => store.lineage.merge('child'))).code).toBe('TAPE_CONFLICT');
    expect((await store.sessions.find('main'))?.head).toBe(4);
  });

  test('a merged child cannot be discarded', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.lineage.merge('child');
    expect((await refusal(() => store.lineage.merge('child', { strategy: 'discard' }))).code).toBe(
      'TAPE_CONFLICT',
    );
    await store.entries.append('child', [assistant('more')]);
    expect((await refusal(() => store.lineage.merge('child', { strategy: 'discard' }))).code).toBe(
      'TAPE_CONFLICT',
    );
  });

  test('a merge that a rewind hides can be repeated, and is found again after an unrewind', async () => {
    await using store = await open();
    await finishedChild(store);
    const first = await store.lineage.merge('child');
    await store.history.rewind('main', 3);
    const second = await store.lineage.merge('child');
    expect(second).toMatchObject({ range: first.range, repeated: false, seq: 7 });
    expect(await store.lineage.merge('child')).toEqual({ ...second, repeated: true });
    await store.history.unrewind('main');
    expect(await store.lineage.merge('child')).toEqual({ ...first, repeated: true });
  });

  test('several children are merged all or nothing', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    for (const name of ['one', 'two']) {
      await store.lineage.fork('main', { name });
      await store.entries.append(name, [assistant(name)]);
    }
    await store.entries.append('two', [asks('open')]);
    const drafts = [{ child: 'one' }, { child: 'two' }];
    expect((await refusal(() => store.lineage.merge(drafts))).code).toBe('TAPE_UNSETTLED');
    expect([(await store.sessions.find('main'))?.head, (await store.sessions.find('one'))?.delivery]).toEqual(
      [3, undefined],
    );
    await store.entries.append('two', [answers('open')]);
    expect((await store.lineage.merge(drafts)).map((m) => [m.child, m.seq])).toEqual([
      ['one', 4],
      ['two', 6],
    ]);
  });

  test('a running child is merged only with force', async () => {
    await using store = await open();
    await finishedChild(store);
    const lease = await store.leases.acquire('child', { id: 'runner' });
    expect((await refusal(() => store.lineage.merge('child'))).code).toBe('TAPE_BUSY');
    await store.entries.append('child', [asks('c1')], { lease });
    expect(await store.lineage.merge('child', { force: true })).toMatchObject({ range: [4, 6] });
    await store.entries.append('child', [answers('c1'), assistant('now')], { lease });
    await store.leases.release(lease);
    expect(await store.lineage.merge('child')).toMatchObject({ range: [7, 9] });
  });

  test('no merge separates a call from its result', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.entries.append('main', [asks('c1')]);
    expect((await refusal(() => store.lineage.merge('child'))).code).toBe('TAPE_UNSETTLED');
    await store.entries.append('main', [answers('c1')]);
    expect((await store.lineage.merge('child')).seq).toBe(6);
  });

  test('a child is merged only into its parent or another ancestor', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.lineage.fork('child', { name: 'grand' });
    await store.entries.append('grand', [assistant('deep')]);
    await store.sessions.open('other');
    expect((await refusal(() => store.lineage.merge('main'))).code).toBe('TAPE_CONFLICT');
    expect((await refusal(() => store.lineage.merge('grand', { into: 'other' }))).code).toBe('TAPE_CONFLICT');
    expect(await store.lineage.merge('grand')).toMatchObject({ parent: 'child', range: [7, 8] });
    expect(await store.lineage.merge('grand', { into: 'main' })).toMatchObject({
      parent: 'main',
      repeated: false,
    });
    await store.lineage.fork('child', { name: 'fresh', inherit: 'nothing' });
    expect(await store.lineage.merge('fresh')).toMatchObject({ parent: 'child' });
  });

  test('a merge into an archived parent is an error, and changes neither session', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.sessions.update('main', { lifecycle: 'archived' });
    const before = [await store.sessions.find('main'), await store.sessions.find('child')];
    for (const request of [{}, { strategy: 'discard' }, { force: true }] as const)
      expect(await refusal(() => store.lineage.merge('child', request))).toMatchObject({
        code: 'TAPE_ARCHIVED',
        data: { parent: 'main', child: 'child', lifecycle: 'archived' },
      });
    expect([await store.sessions.find('main'), await store.sessions.find('child')]).toEqual(before);
    await store.sessions.update('main', { lifecycle: 'active' });
    const merged = await store.lineage.merge('child');
    await store.sessions.update('main', { lifecycle: 'archived' });
    expect(await store.lineage.merge('child')).toEqual({ ...merged, repeated: true });
  });

  test('a merge by an unknown strategy is an error, and changes neither session', async () => {
    await using store = await open();
    await finishedChild(store);
    const before = [await store.sessions.find('main'), await store.sessions.find('child')];
    const strategy = 'bogus' as 'result';
    expect(await refusal(() => store.lineage.merge('child', { strategy }))).toMatchObject({
      code: 'TAPE_BAD_STATUS',
      data: { value: 'bogus', allowed: ['result', 'summary', 'structured', 'pick', 'discard'] },
    });
    expect([await store.sessions.find('main'), await store.sessions.find('child')]).toEqual(before);
  });

  test('a merge of or into an unknown session is an error', async () => {
    await using store = await open();
    await finishedChild(store);
    expect((await refusal(() => store.lineage.merge('missing'))).code).toBe('TAPE_NO_SESSION');
    expect((await refusal(() => store.lineage.merge('child', { into: 'missing' }))).code).toBe(
      'TAPE_NO_SESSION',
    );
    expect((await store.sessions.find('main'))?.head).toBe(3);
  });

  test('a preview of a merge returns what the merge writes and returns, and writes nothing', async () => {
    for (const request of [{}, { text: 'so' }, { strategy: 'discard', reason: 'no' }] as const) {
      await using store = await open();
      await finishedChild(store);
      const state = async () => [
        await store.sessions.find('main'),
        await store.sessions.find('child'),
        await all(store.lineage.read()),
      ];
      const before = await state();
      const { entries, ...receipt } = await store.lineage.previewMerge('child', request);
      expect(await state()).toEqual(before);
      expect(receipt).toEqual(await store.lineage.merge('child', request));
      const written = await all(store.entries.read('main', { from: 4 }));
      expect(written.map(({ seq, name, payload }) => [seq, name, payload])).toEqual(
        entries.map(({ seq, name, payload }) => [seq, name, payload]),
      );
      expect(await store.lineage.previewMerge('child', request)).toEqual({
        ...receipt,
        repeated: true,
        entries: [],
      });
    }
  });

  test('a preview of a merge reports the error of the merge as its refusal', async () => {
    await using store = await open();
    await finishedChild(store);
    const refused = async () => {
      const { entries, refusal: why } = await store.lineage.previewMerge('child');
      expect(entries).toEqual([]);
      const thrown = await refusal(() => store.lineage.merge('child'));
      expect({ code: why?.code, message: why?.message }).toEqual({
        code: thrown.code,
        message: thrown.message,
      });
      return why?.code;
    };
    expect((await refusal(() => store.lineage.previewMerge('missing'))).code).toBe('TAPE_NO_SESSION');
    expect((await refusal(() => store.lineage.previewMerge('main'))).code).toBe('TAPE_CONFLICT');
    await store.entries.append('main', [asks('c1')]);
    expect(await refused()).toBe('TAPE_UNSETTLED');
    await store.entries.append('main', [answers('c1')]);
    const lease = await store.leases.acquire('main', { id: 'runner' });
    expect(await refused()).toBe('TAPE_BUSY');
    await store.leases.release(lease);
    await store.sessions.update('main', { lifecycle: 'archived' });
    expect(await refused()).toBe('TAPE_ARCHIVED');
    await store.sessions.update('main', { lifecycle: 'active' });
    await store.lineage.merge('child', { strategy: 'discard' });
    expect(await refused()).toBe('TAPE_CONFLICT');
  });

  test('the marks of merges are found by the beginning of their names, and a rewind hides those after its target', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    for (const name of ['two', 'one']) {
      await store.lineage.fork('main', { name });
      await store.entries.append(name, [assistant(name)]);
    }
    await store.lineage.merge('two');
    await store.lineage.merge('one', { strategy: 'discard' });
    await store.entries.append('two', [assistant('more')]);
    await store.lineage.merge('two');
    const marks = async (ref: string, more: EntryQuery = {}) =>
      (await all(store.entries.read(ref, { own: true, kind: 'anchor', namePrefix: 'merge/', ...more }))).map(
        ({ name, seq }) => [name, seq],
      );
    const [first, second, third] = [
      ['merge/two', 3],
      ['merge/one', 5],
      ['merge/two', 6],
    ];
    expect(await marks('main')).toEqual([first, second, third]);
    expect(await marks('main', { namePrefix: 'merge/t' })).toEqual([first, third]);
    expect(await marks('main', { last: 2 })).toEqual([second, third]);
    expect(await marks('main', { from: 4, limit: 1 })).toEqual([second]);
    expect(await marks('one')).toEqual([]);
    const { seq } = await store.history.rewind('main', 4);
    const hiding = [];
    for (const from of [3, 5, 6]) hiding.push((await store.views.ranges('main', { from }))[0]?.hiddenBy);
    expect(hiding).toEqual([undefined, seq, seq]);
  });

  test('a merge with context false stays out of views', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.lineage.merge('child', { context: false });
    const message = (await all(store.entries.read('main', { last: 1 })))[0];
    expect(message?.meta).toMatchObject({ source: 'merge', context: false });
  });
};
