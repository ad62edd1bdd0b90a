import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore, refusal } from '../support/store.ts';

const sms = 'dm:imessage:+15559876543';
const mail = 'dm:gmail:mom@gmail.com';
const mom = 'dm:entity_mom';

type Store = ReturnType<typeof openStore>;

/** Makes the session of a key, with a number of turns. */
function talked(store: Store, key: string, turns: number): string {
  const { session } = store.identities.resolve(key);
  for (let i = 0; i < turns; i += 1) store.entries.append(session.id, [user(`${key} ${i}`)]);
  return session.id;
}

const idOf = (store: Store, key: string) => store.identities.resolve(key).session.id;
const aliasLines = (store: Store) =>
  [...store.lineage.read({ types: ['alias', 'unalias'] })].map(({ type, alias, reason }) => [
    type,
    alias,
    reason,
  ]);

test('a key that nothing stands for gets a session before its first message, and later the same one', () => {
  using store = openStore();
  const first = store.identities.resolve(mom, { init: { title: 'Mom' } });
  expect(first).toMatchObject({
    how: 'created',
    session: { session: mom, lifecycle: 'active', head: 1, messageCount: 0 },
  });
  expect(store.identities.resolve(mom)).toMatchObject({ how: 'direct', session: { id: first.session.id } });
  expect([...store.entries.read(mom)].map(({ name }) => name)).toEqual(['session/start']);
});

test('the session of an address is promoted once, with its history', () => {
  using store = openStore();
  const id = talked(store, sms, 3);
  expect(store.identities.find(mom, { address: sms })).toMatchObject({ how: 'promoted', session: { id } });
  expect(aliasLines(store)).toEqual([]);
  expect(store.identities.resolve(mom, { address: sms })).toMatchObject({
    how: 'promoted',
    session: { id, messageCount: 3 },
  });
  for (const key of [mom, sms]) expect(idOf(store, key)).toBe(id);
  expect(store.identities.resolve(mom, { address: sms }).how).toBe('alias');
  expect(aliasLines(store)).toEqual([['alias', mom, 'identity_promotion']]);
  expect(store.sessions.list()).toHaveLength(1);
});

test('a link makes the session with the most turns stand for the others, which stay as they are', () => {
  using store = openStore();
  const [a, b] = [talked(store, sms, 20), talked(store, mail, 5)];
  const heads = () => [sms, mail].map((name) => store.sessions.find(name)?.headHash);
  const before = heads();
  expect(store.identities.link(mom, [mail, sms])).toMatchObject({
    primary: { id: a },
    quiet: [{ id: b }],
    keys: [mom],
    changed: true,
    created: false,
  });
  expect(heads()).toEqual(before);
  for (const key of [mom, sms, mail]) expect([key, idOf(store, key)]).toEqual([key, a]);
  // The other one is still found by its name, and can be read.
  expect(store.sessions.find(mail)?.id).toBe(b);
  expect([...store.entries.read(mail, { kind: 'message' })]).toHaveLength(5);
  expect(store.entries.search({ text: 'gmail', session: mom }).hits).toHaveLength(5);
  expect(store.entries.search({ text: 'gmail', session: sms }).hits).toHaveLength(5);
  expect(store.entries.search({ text: 'imessage', session: mail }).hits).toEqual([]);
  const lines = aliasLines(store);
  expect(store.identities.link(mom, [mail, sms])).toMatchObject({ primary: { id: a }, changed: false });
  expect(aliasLines(store)).toEqual(lines);
  expect([...store.verify()]).toEqual([]);
});

test('a promoted key moves to a session with more turns, and unlinking that one brings it back', () => {
  using store = openStore();
  const [a, b] = [talked(store, sms, 2), talked(store, mail, 9)];
  store.identities.resolve(mom, { address: sms });
  store.identities.link(mom, [mail]);
  for (const key of [mom, sms, mail]) expect([key, idOf(store, key)]).toEqual([key, b]);
  expect(store.identities.unlink(mom, [mail])).toMatchObject({ primary: { id: a }, quiet: [], keys: [mom] });
  expect([mom, sms, mail].map((key) => idOf(store, key))).toEqual([a, a, b]);
  expect(store.identities.unlink(mom)).toMatchObject({ keys: [], changed: true });
  expect(store.identities.list()).toEqual([]);
  expect(store.identities.find(mom)).toBeUndefined();
  expect([...store.verify()]).toEqual([]);
});

test('an address without a session becomes an alias, and without any session one is made', () => {
  using store = openStore();
  const { primary, created } = store.identities.link(mom, [sms, mail]);
  expect([primary.session, created]).toEqual([mom, true]);
  for (const key of [sms, mail]) expect(idOf(store, key)).toBe(primary.id);
  expect(store.identities.link(mom, [sms]).changed).toBe(false);
  store.identities.unlink(mom, [mail]);
  expect(store.identities.resolve(mail).how).toBe('created');
  expect(store.identities.list()).toMatchObject([{ primary: { id: primary.id }, keys: [sms] }]);
});

test('a delivery of a known sender quiets the session of its address, but of no other entity', () => {
  using store = openStore();
  const a = talked(store, sms, 2);
  store.identities.resolve(mom, { address: sms });
  const b = talked(store, mail, 3);
  expect(store.identities.resolve(mom, { address: mail }).session.id).toBe(a);
  expect(idOf(store, mail)).toBe(a);
  // A telephone that two people use: the session is that of the first.
  const dad = store.identities.resolve('dm:entity_dad', { address: sms });
  expect(dad.how).toBe('created');
  expect(idOf(store, sms)).toBe(a);
  expect(refusal(() => store.identities.link('dm:entity_dad', [sms]))).toMatchObject({
    code: 'TAPE_CONFLICT',
    data: { linked: [mom, mail] },
  });
  store.identities.unlink(mom, [mail]);
  expect(idOf(store, mail)).toBe(b);
});

test('keys that look alike, or are too long for a name, have sessions of their own', () => {
  using store = openStore();
  const long = `dm:teams:${'x'.repeat(400)}`;
  const keys = ['group:slack:C1', 'group:slack:c1', 'dm:a:%C3%A9', 'dm:a:e%CC%81', long, `${long}y`];
  store.sessions.open('dm:x:mom');
  keys.push('dm:x:mom@12');
  const ids = keys.map((key) => idOf(store, key));
  expect(new Set(ids).size).toBe(keys.length);
  expect(keys.map((key) => idOf(store, key))).toEqual(ids);
  store.identities.link('dm:entity', [long, `${long}y`, 'dm:x:mom@12']);
  expect(new Set([long, `${long}y`, 'dm:x:mom@12', 'dm:entity'].map((key) => idOf(store, key))).size).toBe(1);
  expect([...store.verify()]).toEqual([]);
});

test('realms have keys of their own, on one connection', () => {
  using store = openStore();
  const [atlas, hermes] = [store.inRealm('atlas'), store.inRealm('hermes')];
  const made = [atlas, hermes, store].map((one) => one.identities.resolve(mom).session);
  expect(made.map(({ tape }) => tape)).toEqual([`atlas:${mom}`, `hermes:${mom}`, `tape:${mom}`]);
  atlas.identities.link(mom, [sms]);
  expect(store.identities.find(sms)).toBeUndefined();
  expect(atlas.identities.find(sms)?.session.id).toBe(made[0]?.id);
  expect([atlas, hermes, store].map((one) => one.identities.list().length)).toEqual([1, 0, 0]);
  expect(store.sessions.find(made[0]?.id ?? '')?.tape).toBe(`atlas:${mom}`);
  expect(refusal(() => store.inRealm('a:b')).code).toBe('TAPE_BAD_NAME');
});

test('an archived session gets nothing, a deleted one is replaced, and both come back with their links', () => {
  using store = openStore();
  const a = talked(store, sms, 3);
  talked(store, mail, 1);
  store.identities.link(mom, [sms, mail]);
  store.sessions.update(a, { lifecycle: 'archived' });
  for (const key of [mom, sms, mail])
    expect(refusal(() => store.identities.resolve(key)).code).toBe('TAPE_ARCHIVED');
  expect(store.identities.resolve('dm:other', { address: sms }).how).toBe('created');
  store.sessions.update(a, { lifecycle: 'active' });
  store.sessions.update(a, { lifecycle: 'destroyed' });
  expect(idOf(store, mail)).not.toBe(a);
  expect(store.identities.find(mom)).toBeUndefined();
  store.sessions.update(a, { lifecycle: 'active' });
  for (const key of [mom, sms, mail]) expect(idOf(store, key)).toBe(a);
  // What is deleted of the quiet ones leaves its link.
  const quiet = store.sessions.find(mail);
  store.sessions.update(mail, { lifecycle: 'destroyed' });
  expect(store.identities.resolve(mail)).toMatchObject({ how: 'alias', session: { id: a } });
  expect(store.identities.list()).toMatchObject([{ primary: { id: a }, quiet: [] }]);
  store.sessions.update(quiet?.id ?? '', { lifecycle: 'active' });
  expect(idOf(store, mail)).toBe(a);
  expect([...store.verify()]).toEqual([]);
});

test('a link that says nothing, names itself or leads in a circle is refused', () => {
  using store = openStore();
  talked(store, sms, 1);
  for (const addresses of [[], [mom], [sms, mom]])
    expect(refusal(() => store.identities.link(mom, addresses)).code).toBe('TAPE_BAD_OPTION');
  expect(refusal(() => store.identities.unlink(mom)).code).toBe('TAPE_NO_SESSION');
  expect(refusal(() => store.identities.unlink(sms, [sms])).code).toBe('TAPE_CONFLICT');
  for (const key of ['', 'a b', 'a::b', 'x\0', 'x'.repeat(1001), 7 as never])
    expect(refusal(() => store.identities.resolve(key)).code).toMatch(/^TAPE_BAD_(NAME|OPTION)$/);
  expect(refusal(() => store.identities.resolve('worker:01ARZ3NDEKTSV4RRFFQ69G5FAV')).code).toBe(
    'TAPE_NO_SESSION',
  );
  talked(store, mail, 1);
  store.sessions.update(sms, { alias: { name: `link:${mail}`, reason: '' } });
  store.sessions.update(mail, { alias: { name: `link:${sms}`, reason: '' } });
  expect(refusal(() => store.identities.resolve(sms))).toMatchObject({
    code: 'TAPE_CONFLICT',
    data: { circle: true },
  });
});
