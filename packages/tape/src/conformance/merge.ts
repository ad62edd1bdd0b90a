import { anchor, assistant, type Draft, note, result, user } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import type { Json } from '../entry/json.ts';
import type { ConflictReport } from '../merge/conflicts.ts';
import type { MergeRequest } from '../merge/plan.ts';
import type { EntryQuery } from '../store/options.ts';
import type { TapeStore } from '../store/store.ts';
import { all, answers, asks, type Chapter, refusal, sessionOf, textOf } from './contract.ts';

/** Creates `main` with two messages, and a finished child `child` with the result "done". */
async function finishedChild(store: TapeStore): Promise<void> {
  await sessionOf(store, 'main', 2);
  await store.lineage.fork('main', { name: 'child' });
  await store.entries.append('child', [user('Do it.'), assistant('done')]);
}

/** Returns the conflicts that a merge would report. */
async function conflictsOf(store: TapeStore, child: string, request?: MergeRequest): Promise<ConflictReport> {
  const { complete, conflicts } = await store.lineage.previewMerge(child, request);
  return { complete, conflicts };
}

/** Makes the record of a child's worktree on its tape. */
function patched(patch: string, paths: readonly string[]): Draft {
  const files = paths.map((path) => ({ path, change: 'changed', mode: '100644' }));
  const record = { base: 'a'.repeat(40), tree: 'b'.repeat(40), files, patch: Buffer.from(patch) };
  return note('workspace/closed', record as unknown as Json);
}

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

  test('the result is the explicit one, else the last text of the model, after rewinds', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.entries.append('child', [assistant('wrong')]);
    await store.history.rewind('child', 6);
    await store.lineage.merge('child');
    expect(textOf((await all(store.entries.read('main', { last: 1 })))[0])).toMatch(/\ndone\n/);
    await store.entries.append('child', [result({ answer: 42 })]);
    await store.entries.append('child', [assistant('chatter')]);
    await store.lineage.merge('child');
    expect(textOf((await all(store.entries.read('main', { last: 1 })))[0])).toMatch(/\n\{"answer":42\}\n/);
  });

  test('a long result is cut, with a pointer to the whole', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [assistant('x'.repeat(500))]);
    await store.lineage.merge('child', { charsMax: 100 });
    const text = textOf((await all(store.entries.read('main', { last: 1 })))[0]);
    expect(text).toMatch(/\nx{100}\n\[400 more characters; the whole text: tape show child@4\]\n/);
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

  test('what parent and child both wrote since the fork is a conflict', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [anchor('plan', { owner: 'main', summary: 'x' })]);
    for (const name of ['one', 'two']) {
      await store.lineage.fork('main', { name });
      await store.entries.append(name, [anchor('plan', { owner: name, summary: 'y', [name]: 1 })]);
    }
    expect(await conflictsOf(store, 'one')).toEqual({ complete: true, conflicts: [] });
    await store.lineage.merge('one');
    const conflict = { what: 'state:owner', child: 4, parent: 3, via: 'one' };
    expect((await store.lineage.previewMerge('two')).conflicts).toEqual([conflict]);
    const refused = await refusal(() => store.lineage.merge('two', { onConflict: 'refuse' }));
    expect(refused).toMatchObject({ code: 'TAPE_CONFLICT', data: { conflicts: [conflict] } });
    await store.entries.append('main', [anchor('plan', { owner: 'main' })]);
    expect((await store.lineage.merge('two')).conflicts).toEqual([
      { what: 'state:owner', child: 4, parent: 5 },
    ]);
  });

  test('a merge delivers the patch of a worktree, and its files count as written', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    for (const name of ['one', 'two', 'three']) {
      await store.lineage.fork('main', { name });
      await store.entries.append(name, [asks('c1'), answers('c1')]);
    }
    await store.entries.append('one', [patched('a first try', ['src/old.ts', 'src/first.ts'])]);
    expect((await store.lineage.previewMerge('one')).complete).toBe(true);
    await store.entries.append('one', [patched('the patch', ['src/a.ts'])]);
    const artifact = {
      type: 'patch',
      blob: sha256('the patch'),
      bytes: 9,
      files: [{ path: 'src/a.ts', change: 'changed', mode: '100644' }],
      base: 'a'.repeat(40),
      tree: 'b'.repeat(40),
    };
    const merged = await store.lineage.merge('one');
    expect(merged).toMatchObject({ complete: true, conflicts: [], artifact });
    expect(await store.lineage.merge('one')).toEqual({ ...merged, repeated: true });
    const [mark] = await all(store.entries.read('main', { from: merged.seq, to: merged.seq }));
    expect(mark?.payload).toMatchObject({ state: { artifact } });
    expect(Buffer.from(await store.entries.blob(artifact.blob)).toString()).toBe('the patch');
    // The later tool declares no paths, so it may have written any file.
    await store.entries.append('two', [patched('another', ['src/a.ts', 'src/first.ts'])]);
    await store.entries.append('two', [asks('c2'), answers('c2')]);
    const conflict = { what: 'file:src/a.ts', child: 6, parent: merged.seq, via: 'one' };
    expect(await conflictsOf(store, 'two')).toEqual({ complete: false, conflicts: [conflict] });
    // `written` checks paths that are not on the tape yet.
    expect(await conflictsOf(store, 'three', { written: ['src/a.ts', 'src/old.ts'] })).toEqual({
      complete: true,
      conflicts: [{ ...conflict, child: 5 }],
    });
  });

  test('the patch of a discarded child is stored, but its files do not count as written', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    for (const name of ['one', 'two']) {
      await store.lineage.fork('main', { name });
      await store.entries.append(name, [patched(name, ['src/a.ts'])]);
    }
    const discarded = await store.lineage.merge('one', { strategy: 'discard' });
    expect(discarded).toMatchObject({ state: 'discarded', artifact: { blob: sha256('one') } });
    expect((await store.lineage.merge('two')).conflicts).toEqual([]);
  });

  test('a malformed worktree record is no artifact', async () => {
    await using store = await open();
    await finishedChild(store);
    const { payload } = patched('x', []);
    const odd = [{}, null, { ...(payload as object), base: 'HEAD' }, { ...(payload as object), patch: 'x' }];
    await store.entries.append(
      'child',
      odd.map((value) => note('workspace/closed', value as Json)),
    );
    expect((await store.lineage.merge('child')).artifact).toBe(undefined);
  });

  test('a nested fork conflicts with what its grandparent wrote since', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [user('c1'), user('c2'), user('c3')]);
    await store.lineage.fork('child', { name: 'grand' });
    await store.entries.append('grand', [anchor('plan', { owner: 'grand' })]);
    await store.entries.append('main', [anchor('plan', { owner: 'main' })]);
    const report = await store.lineage.previewMerge('grand', { into: 'main' });
    expect(report.conflicts).toEqual([{ what: 'state:owner', child: 8, parent: 3 }]);
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

  test('collecting a range returns what a merge of it delivers, and its position', async () => {
    await using store = await open();
    await finishedChild(store);
    expect(await store.lineage.collect('child', [4, 6])).toMatchObject({
      text: 'done',
      textSeq: 6,
      complete: true,
    });
    await store.entries.append('child', [assistant('wrong')]);
    await store.history.rewind('child', 6);
    expect(await store.lineage.collect('child', [4, 8])).toMatchObject({ text: 'done', textSeq: 6 });
    expect(await store.lineage.collect('child', [4, 4])).toMatchObject({ textSeq: undefined });
  });

  test('the pieces of an interrupted answer are delivered together', async () => {
    await using store = await open();
    await finishedChild(store);
    const cut = (text: string) => assistant(text, { partial: true });
    await store.entries.append('child', [
      user('Tell all.'),
      cut('One, '),
      note('run/interrupted', {}),
      cut('two, '),
      note('run/error', { message: 'overloaded' }),
    ]);
    expect(await store.lineage.collect('child')).toMatchObject({
      text: 'One, two, \n\nError: overloaded',
      textFrom: 8,
    });
    await store.entries.append('child', [assistant('three.')]);
    expect(await store.lineage.collect('child')).toMatchObject({
      text: 'One, two, three.',
      textSeq: 12,
      textFrom: 8,
    });
    await store.lineage.merge('child');
    const [mark, message] = await all(store.entries.read('main', { last: 2 }));
    expect(textOf(message).includes('>\nOne, two, three.\n<')).toBe(true);
    expect(JSON.stringify(mark?.payload).includes('"partial"')).toBe(false);
    // A model that began again has given the whole answer itself.
    await store.entries.append('child', [user('Again.'), cut('One, '), assistant('One, two.')]);
    expect(await store.lineage.collect('child')).toMatchObject({ text: 'One, two.' });
  });

  test('a merge whose text lacks pieces of an interrupted answer is partial, and says where they are', async () => {
    await using store = await open();
    await finishedChild(store);
    const cut = (text: string) => assistant(text, { partial: true });
    const rest = '[An interrupted answer came before this one: tape show child@';
    const merged = async () => {
      await store.lineage.merge('child');
      const [mark, message] = await all(store.entries.read('main', { last: 2 }));
      return { state: (mark?.payload as { state?: unknown } | undefined)?.state, text: textOf(message) };
    };
    await store.entries.append('child', [cut('One, '), user('Go on.'), assistant('two.')]);
    expect(await store.lineage.collect('child')).toMatchObject({ text: `${rest}7]\ntwo.`, rest: [7] });
    const first = await merged();
    expect(first.state).toMatchObject({ partial: true, rest: [7] });
    expect(first.text.includes(`partial="true">\n${rest}7]\ntwo.\n<`)).toBe(true);
    // A piece that was merged before is not delivered twice.
    await store.entries.append('child', [user('More.'), cut('Three, ')]);
    await merged();
    await store.entries.append('child', [note('run/interrupted', {}), assistant('four.')]);
    expect((await merged()).text.includes(`${rest}11]\nfour.\n<`)).toBe(true);
    // What follows another request is another answer.
    await store.entries.append('child', [user('More.'), cut('Five, ')]);
    await merged();
    await store.entries.append('child', [user('Now six.'), assistant('Six.')]);
    expect(await store.lineage.collect('child')).toMatchObject({ text: 'Six.' });
    expect(JSON.stringify(await merged()).includes('partial')).toBe(false);
  });

  test('a text in pieces that is cut names all of them', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.entries.append('child', [assistant('One, ', { partial: true }), assistant('two.')]);
    await store.lineage.merge('child', { charsMax: 4 });
    const [message] = await all(store.entries.read('main', { last: 1 }));
    const cut = 'One,\n[5 more characters; the whole text: tape log child --from 7 --to 8]';
    expect(textOf(message).includes(cut)).toBe(true);
  });

  test('a merge with context false stays out of views', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.lineage.merge('child', { context: false });
    const message = (await all(store.entries.read('main', { last: 1 })))[0];
    expect(message?.meta).toMatchObject({ source: 'merge', context: false });
  });
};
