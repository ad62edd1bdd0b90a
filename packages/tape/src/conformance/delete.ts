import { assistant, user } from '../entry/entry.ts';
import type { TapeStore } from '../store/store.ts';
import { all, type Chapter, refusal, sessionOf } from './contract.ts';

/** Makes `main` with some messages; returns its id. */
async function made(store: TapeStore, messages: number): Promise<string> {
  await sessionOf(store, 'main', messages);
  return (await store.sessions.find('main'))?.id ?? '';
}

/** Names of sessions: renames, deletions and purges. */
export const deleteChapter: Chapter = ({ test, expect }, open) => {
  test('a rename gives a name and a title; renaming the new name takes it away again', async () => {
    await using store = await open();
    const id = await made(store, 1);
    expect(await store.sessions.update('main', { name: 'release' })).toMatchObject({
      session: 'main',
      aliases: ['release'],
      title: 'release',
    });
    expect((await store.sessions.find('release'))?.id).toBe(id);
    expect(await store.sessions.update('release', { name: 'final' })).toMatchObject({
      aliases: ['final'],
      title: 'final',
    });
    expect(await store.sessions.find('release')).toBe(undefined);
    const { head } = await store.sessions.update('final', { name: 'final' });
    const back = await store.sessions.update('final', { name: 'main' });
    expect([back.aliases, back.title, back.head]).toEqual([[], undefined, head + 1]);
    await sessionOf(store, 'other', 1);
    const taken = await refusal(() => store.sessions.update('main', { name: 'other' }));
    expect(taken.code).toBe('TAPE_EXISTS');
    expect((await refusal(() => store.sessions.update('main', { name: 'a b' }))).code).toBe('TAPE_BAD_NAME');
    expect(await all(store.verify())).toEqual([]);
  });

  test('a deleted session is found by its ULID alone, and its names are free', async () => {
    await using store = await open();
    const id = await made(store, 2);
    await store.sessions.update('main', { alias: { name: 'talk', reason: 'a test' } });
    await store.lineage.fork('main', { name: 'child' });
    expect(await store.sessions.update('main', { lifecycle: 'destroyed' })).toMatchObject({
      id,
      lifecycle: 'destroyed',
      aliases: [],
    });
    for (const ref of ['main', 'main~1', 'talk'])
      expect([ref, await store.sessions.find(ref)]).toEqual([ref, undefined]);
    expect(await refusal(() => store.entries.append('main', [user('x')]))).toMatchObject({
      code: 'TAPE_NO_SESSION',
      data: { deleted: id, near: [] },
    });
    expect((await refusal(() => store.entries.append('mian', [user('x')]))).data).toEqual({
      session: 'mian',
      near: [],
    });
    const names = async (query: object) =>
      (await store.sessions.list({ all: true, after: null, ...query })).map(({ session }) => session);
    expect(await names({ deleted: false })).toEqual(['child']);
    expect(await names({ deleted: true })).toEqual(['main']);
    expect(await names({ prefix: 'm' })).toEqual([]);
    expect(await names({ prefix: 't' })).toEqual([]);
    // What is on the tape stays readable, there and through the child.
    expect((await all(store.entries.read(id))).length).toBe(3);
    expect((await all(store.entries.read('child', { to: 3 }))).length).toBe(3);
    expect(await store.sessions.find('child')).toMatchObject({ parentId: id });
    const { id: again, tape, created } = await store.sessions.open('main');
    expect([again === id, tape, created]).toEqual([false, 'tape:main~2', true]);
    await store.sessions.update('main', { alias: { name: 'talk', reason: 'another' } });
    expect((await store.sessions.find('talk'))?.id).toBe(again);
    expect(await all(store.verify())).toEqual([]);
  });

  test('a deleted session takes no entries, messages, names or keyed forks', async () => {
    await using store = await open();
    const id = await made(store, 1);
    const { id: child } = await store.lineage.fork('main', { name: 'child', key: 'k' });
    await store.sessions.update('child', { lifecycle: 'destroyed' });
    const again = await refusal(() => store.lineage.fork('main', { name: 'child', key: 'k' }));
    expect(again).toMatchObject({ code: 'TAPE_ARCHIVED', data: { id: child, lifecycle: 'destroyed' } });
    await store.sessions.update('main', { lifecycle: 'destroyed' });
    for (const act of [
      () => store.entries.append(id, [user('x')]),
      () => store.inbox.post(id, { body: { type: 'append', drafts: [user('x')] } }),
      () => store.inbox.post(id, { body: { type: 'input', drafts: [user('x')] } }),
      () => store.sessions.update(id, { alias: { name: 'talk', reason: 'a test' } }),
      () => store.sessions.update(id, { name: 'talk' }),
    ])
      expect(await refusal(act)).toMatchObject({
        code: 'TAPE_ARCHIVED',
        data: { id, lifecycle: 'destroyed' },
      });
    expect((await store.sessions.find(id))?.head).toBe(2);
  });

  test('a deleted session comes back with all its names, or not at all', async () => {
    await using store = await open();
    const id = await made(store, 1);
    await store.sessions.update('main', { alias: { name: 'talk', reason: 'a test' } });
    await store.sessions.update('main', { lifecycle: 'archived' });
    const { headHash } = await store.sessions.update('main', { lifecycle: 'destroyed' });
    // Deleting it again, by whomever, changes nothing.
    const lines = (await all(store.lineage.read())).length;
    await store.sessions.update(id, { lifecycle: 'destroyed' });
    expect((await all(store.lineage.read())).length).toBe(lines);
    for (const [name, taker] of [
      ['main', 'main'],
      ['main', 'Main'],
      ['talk', 'talk'],
    ] as const) {
      const { id: other } = await store.sessions.open(taker);
      const refused = await refusal(() => store.sessions.update(id, { lifecycle: 'active' }));
      expect(refused).toMatchObject({ code: 'TAPE_EXISTS', data: { deleted: id, name } });
      expect((await store.sessions.find(id))?.lifecycle).toBe('destroyed');
      await store.sessions.update(other, { lifecycle: 'destroyed' });
    }
    expect(await store.sessions.update(id, { lifecycle: 'active' })).toMatchObject({
      aliases: ['talk'],
      lifecycle: 'active',
      headHash,
    });
    for (const ref of ['main', 'talk', 'main~1']) expect((await store.sessions.find(ref))?.id).toBe(id);
    expect(await all(store.verify())).toEqual([]);
  });

  test('a session that is written is not deleted; a search leaves out what only deleted ones read', async () => {
    await using store = await open();
    const id = await made(store, 1);
    await store.entries.append('main', [user('a needle')]);
    const lease = await store.leases.acquire('main', { id: 'me' });
    for (const lifecycle of ['destroyed', 'archived'] as const)
      expect((await refusal(() => store.sessions.update('main', { lifecycle }))).code).toBe('TAPE_BUSY');
    expect((await refusal(() => store.sessions.update('main', { name: 'new' }))).code).toBe('TAPE_BUSY');
    expect((await refusal(() => store.sessions.purge('main', 'why'))).code).toBe('TAPE_BUSY');
    await store.leases.release(lease);
    const { session: child } = await store.lineage.fork('main', { name: 'child' });
    await store.sessions.update('main', { lifecycle: 'destroyed' });
    const found = async (query: object = {}) =>
      (await store.entries.search({ text: 'needle', ...query })).hits.map((hit) => [
        hit.session,
        hit.sessions,
      ]);
    expect(await found()).toEqual([[id, [child]]]);
    await store.sessions.update(child, { lifecycle: 'destroyed' });
    expect(await found()).toEqual([]);
    expect(await found({ session: id })).toEqual([[id, []]]);
    expect(await found({ deleted: true })).toEqual([[id, []]]);
  });

  test('a purge erases what a session wrote, and refuses while forks inherit it', async () => {
    await using store = await open();
    const id = await made(store, 2);
    await store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Look' } });
    await store.lineage.fork('child', { name: 'grand' });
    await store.lineage.fork('main', { name: 'fresh', inherit: 'nothing' });
    await store.entries.append('child', [assistant('Found.')]);
    await store.lineage.merge('child');
    const refused = await refusal(() => store.sessions.purge('main', 'why'));
    expect(refused).toMatchObject({
      code: 'TAPE_CONFLICT',
      data: { session: 'main', forks: ['child', 'grand'] },
    });
    expect(await refusal(() => store.sessions.previewPurge('main'))).toEqual(refused);
    await store.sessions.update('grand', { lifecycle: 'destroyed' });
    expect((await refusal(() => store.sessions.purge('child', 'why'))).code).toBe('TAPE_CONFLICT');
    for (const ref of [(await store.sessions.list({ deleted: true }))[0]?.id ?? '', 'child'])
      await store.sessions.purge(ref, 'why');
    const preview = await store.sessions.previewPurge('main');
    expect(preview).toMatchObject({ session: 'main', id, erased: 5, repeated: false });
    expect(await store.sessions.purge('main', 'why')).toMatchObject({ id, erased: 5, repeated: false });
    expect(await store.sessions.purge(id, 'why')).toMatchObject({ id, erased: 0, repeated: true });
    const entries = await all(store.entries.read(id, { own: true }));
    expect(entries.filter(({ kind, payload }) => kind !== 'redaction' && payload !== null)).toEqual([]);
    expect(entries.length).toBe(10);
    expect(await store.sessions.find('main')).toBe(undefined);
    expect((await store.sessions.list({ deleted: true })).map(({ lifecycle }) => lifecycle)).toEqual(
      Array(3).fill('purged'),
    );
    for (const lifecycle of ['active', 'archived', 'destroyed'] as const)
      expect((await refusal(() => store.sessions.update(id, { lifecycle }))).code).toBe('TAPE_ARCHIVED');
    expect((await refusal(() => store.sessions.update('fresh', { lifecycle: 'purged' }))).code).toBe(
      'TAPE_BAD_STATUS',
    );
    expect(await all(store.verify())).toEqual([]);
  });
};
