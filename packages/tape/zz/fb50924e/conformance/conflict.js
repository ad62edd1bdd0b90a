import { anchor,             note, user } from '../entry/entry.js';
import { sha256 } from '../entry/hash.js';
                                             
                                                            
                                                     
                                                   
import { all, answers, asks,               finishedChild, refusal, sessionOf } from './contract.js';

/** Returns the conflicts that a merge would report. */
async function conflictsOf(store           , child        , request               )                          {
  const { complete, conflicts } = await store.lineage.previewMerge(child, request);
  return { complete, conflicts };
}

/** Makes the record of a child's worktree on its tape. */
function patched(patch        , paths                   )        {
  const files = paths.map((path) => ({ path, change: 'changed', mode: '100644' }));
  const record = { base: 'a'.repeat(40), tree: 'b'.repeat(40), files, patch: Buffer.from(patch) };
  return note('workspace/closed', record                   );
}

/** What parent and child both wrote, and the files of worktrees. */
export const conflictChapter          = ({ test, expect }, open) => {
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
    const odd = [{}, null, { ...(payload          ), base: 'HEAD' }, { ...(payload          ), patch: 'x' }];
    await store.entries.append(
      'child',
      odd.map((value) => note('workspace/closed', value        )),
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
};
