import { user } from '../entry/entry.ts';
import type { TapeStore } from '../store/store.ts';
import { type Chapter, refusal } from './contract.ts';

const [phone, mail, mom] = ['dm:phone:1', 'dm:mail:mom@example.org', 'dm:entity_mom'];

/** Makes the session of a key, with a number of turns; returns its id. */
async function talked(store: TapeStore, key: string, turns: number): Promise<string> {
  const { session } = await store.identities.resolve(key);
  for (let i = 0; i < turns; i += 1) await store.entries.append(session.id, [user(`${key} ${i}`)]);
  return session.id;
}

const idOf = async (store: TapeStore, key: string) => (await store.identities.resolve(key)).session.id;

/** Keys and the sessions that stand for them. */
export const identityChapter: Chapter = ({ test, expect }, open) => {
  test('a key is resolved to its session, to that of its address, or to a new one, each time to the same', async () => {
    await using store = await open();
    expect(await store.identities.find(phone)).toBe(undefined);
    expect(await store.identities.resolve(phone)).toMatchObject({
      how: 'created',
      session: { session: phone },
    });
    const id = await idOf(store, phone);
    expect(await store.identities.resolve(mom, { address: phone })).toMatchObject({
      how: 'promoted',
      session: { id, aliases: [mom] },
    });
    expect(await store.identities.resolve(mom, { address: phone })).toMatchObject({
      how: 'alias',
      session: { id },
    });
    const other = store.inRealm('other');
    expect(await other.identities.resolve(mom)).toMatchObject({
      how: 'created',
      session: { tape: `other:${mom}` },
    });
    expect([other.base, (await other.sessions.list()).length]).toEqual(['other', 1]);
    expect((await refusal(() => store.identities.resolve('a b'))).code).toBe('TAPE_BAD_NAME');
    await store.sessions.update(id, { lifecycle: 'archived' });
    expect((await refusal(() => store.identities.resolve(mom))).code).toBe('TAPE_ARCHIVED');
  });

  test('linked keys lead to the session with the most turns, and unlinked ones to their own', async () => {
    await using store = await open();
    const [a, b] = [await talked(store, phone, 2), await talked(store, mail, 5)];
    expect(await store.identities.link(mom, [phone, mail])).toMatchObject({
      primary: { id: b },
      quiet: [{ id: a, head: 3 }],
      keys: [mom],
      changed: true,
    });
    for (const key of [phone, mail, mom]) expect(await idOf(store, key)).toBe(b);
    expect((await store.sessions.find(phone))?.id).toBe(a);
    expect((await store.entries.search({ text: 'phone', session: mom })).hits.length).toBe(2);
    expect((await store.identities.link(mom, [mail])).changed).toBe(false);
    expect((await store.identities.list()).length).toBe(1);
    const other = await refusal(() => store.identities.link('dm:entity_dad', [mail]));
    expect(other.code).toBe('TAPE_CONFLICT');
    expect(await store.identities.unlink(mom, [mail])).toMatchObject({ primary: { id: a }, keys: [mom] });
    expect([await idOf(store, mom), await idOf(store, mail)]).toEqual([a, b]);
    await store.identities.unlink(mom);
    expect(await store.identities.list()).toEqual([]);
    expect((await refusal(() => store.identities.link(mom, [mom]))).code).toBe('TAPE_BAD_OPTION');
    expect((await refusal(() => store.identities.unlink(mom))).code).toBe('TAPE_NO_SESSION');
  });
};
