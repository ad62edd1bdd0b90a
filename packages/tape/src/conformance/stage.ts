import { type Draft, note, user } from '../entry/entry.ts';
import { all, type Chapter, refusal, textOf } from './contract.ts';

/** Staged imports. */
export const stageChapter: Chapter = ({ test, expect }, open) => {
  test('a staged session is invisible until it is published', async () => {
    await using store = await open();
    const staged = await store.imports.stage('imported', { title: 'From afar' });
    await store.imports.append(staged.id, [{ ...user('m1'), key: 'line-1' }]);
    expect(await store.sessions.find('imported')).toBe(undefined);
    expect(await store.sessions.list({ all: true })).toEqual([]);
    expect((await refusal(() => store.entries.append('imported', [user('x')]))).code).toBe('TAPE_NO_SESSION');
    const again = await store.imports.stage('imported');
    expect(again.id).toBe(staged.id);
    const resumed = [
      { ...user('m1'), key: 'line-1' },
      { ...user('m2'), key: 'line-2' },
    ];
    expect(await store.imports.append(staged.id, resumed)).toMatchObject({ added: 1, repeated: 1 });
    const published = await store.imports.publish([staged.id]);
    expect(published.map((s) => [s.session, s.title, s.head])).toEqual([['imported', 'From afar', 3]]);
    expect((await all(store.entries.read('imported', { from: 2 }))).map(textOf)).toEqual(['m1', 'm2']);
    expect(await all(store.verify())).toEqual([]);
  });

  test('an unfinished import does not occupy its name, and only the same import continues it', async () => {
    await using store = await open();
    const left = await store.imports.stage('name', { keys: ['a', 'b'] });
    await store.imports.append(left.id, [{ ...user('m1'), key: 'a' }]);
    expect((await store.imports.stage('name', { keys: ['a', 'b', 'c'] })).id).toBe(left.id);
    const other = await store.imports.stage('name', { keys: ['x'] });
    expect(other.id === left.id).toBe(false);
    const made = await store.sessions.open('name');
    expect(made.created).toBe(true);
    expect((await refusal(() => store.imports.publish([other.id]))).code).toBe('TAPE_EXISTS');
    expect((await store.sessions.find('name'))?.id).toBe(made.id);
    expect(await all(store.verify())).toEqual([]);
  });

  test('publishing is all or nothing, and publishing again changes nothing', async () => {
    await using store = await open();
    const one = await store.imports.stage('one');
    const none = '01JD0000000000000000000ZZZ';
    expect((await refusal(() => store.imports.publish([one.id, none]))).code).toBe('TAPE_NO_SESSION');
    expect(await store.sessions.find('one')).toBe(undefined);
    await store.imports.publish([one.id]);
    const before = await store.sessions.find('one');
    expect((await store.imports.publish([one.id])).map((s) => s.id)).toEqual([one.id]);
    expect(await store.sessions.find('one')).toEqual(before);
    expect((await refusal(() => store.imports.stage('one'))).code).toBe('TAPE_EXISTS');
    expect((await refusal(() => store.imports.append(one.id, [user('x')]))).code).toBe('TAPE_NO_SESSION');
  });

  test('an unfinished import is listed by what it began with, and discarding it erases its content for good', async () => {
    await using store = await open();
    const left = await store.imports.stage('name', { title: 'A secret' });
    const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'bash', input: { command: 'secret' } };
    const usage = { input: 3, output: 5 };
    const asked: Draft = {
      kind: 'message',
      payload: { role: 'assistant', content: [call] },
      meta: { usage },
    };
    await store.imports.append(left.id, [
      note('from', { source: 'afar' }),
      { ...user('secret'), key: 'a' },
      asked,
    ]);
    const beside = await store.imports.stage('other');
    const [begun] = await store.imports.unfinished({ session: 'name' });
    expect(begun).toMatchObject({ id: left.id, session: 'name', title: 'A secret', entries: 3 });
    expect(begun?.first).toMatchObject({ kind: 'event', name: 'from', payload: { source: 'afar' } });
    expect(await store.imports.discard([left.id])).toMatchObject({ erased: 4 });
    expect((await store.imports.unfinished()).map(({ id }) => id)).toEqual([beside.id]);
    expect(await store.imports.discard([left.id, left.id])).toMatchObject({ erased: 0 });
    for (const act of [
      () => store.imports.append(left.id, [user('x')]),
      () => store.imports.publish([left.id]),
      () => store.imports.discard(['01JD0000000000000000000ZZZ']),
    ])
      expect((await refusal(act)).code).toBe('TAPE_NO_SESSION');
    const anew = await store.imports.stage('name', { keys: ['a'] });
    expect(anew.id === left.id).toBe(false);
    await store.imports.append(anew.id, [{ ...user('m1'), key: 'a' }]);
    const [published] = await store.imports.publish([anew.id]);
    expect([published?.session, published?.title, published?.head]).toEqual(['name', undefined, 2]);
    expect((await refusal(() => store.imports.discard([anew.id]))).code).toBe('TAPE_EXISTS');
    expect((await all(store.entries.read('name', { from: 2 }))).map(textOf)).toEqual(['m1']);
    expect(await all(store.verify())).toEqual([]);
  });

  test('a redaction discards an unfinished import that has a copy of what it erases, and no other one', async () => {
    await using store = await open();
    const meta = { source: 'import', timestamp: '2026-03-12T09:00:00.000Z' };
    const said = { ...user('secret', meta), key: 'a' };
    await store.sessions.open('name');
    await store.entries.append('name', [said, { ...user('else'), key: 'b' }]);
    const stage = async (session: string, draft: Draft) => {
      const { id } = await store.imports.stage(session);
      await store.imports.append(id, [draft]);
    };
    await stage('same-key', { ...user('secret'), key: 'a' });
    await stage('same-time', { ...user('secret', meta), key: 'c' });
    await stage('neither', { ...user('other'), key: 'd' });
    const left = async () => (await store.imports.unfinished()).map(({ session }) => session);
    await store.entries.redact('name', 3, 'private');
    expect(await left()).toEqual(['same-key', 'same-time', 'neither']);
    await store.entries.redact('name', 2, 'private');
    expect(await left()).toEqual(['neither']);
    await store.sessions.purge('name', 'private');
    expect(await left()).toEqual(['neither']);
    expect(await all(store.verify())).toEqual([]);
  });
};
