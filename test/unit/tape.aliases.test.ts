import { anchor, note, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { countedIds } from '../support/ids.ts';
import { openStore, refusal } from '../support/store.ts';

test('an alias is given and taken away by lines with their reasons, and a session lists its aliases', () => {
  using store = openStore();
  store.sessions.open('main');
  store.sessions.open('other');
  for (const [name, reason] of [
    ['release', 'the project'],
    ['a-release', ''],
  ] as const)
    expect(store.sessions.update('main', { alias: { name, reason } }).aliases).toContain(name);
  expect(store.sessions.find('release')?.aliases).toEqual(['a-release', 'release']);
  expect(store.sessions.list().map(({ session: name, aliases }) => [name, aliases])).toEqual([
    ['other', []],
    ['main', ['a-release', 'release']],
  ]);
  const away = { name: 'release', reason: 'it is over' };
  expect(refusal(() => store.sessions.update('other', { unalias: away })).code).toBe('TAPE_EXISTS');
  expect(refusal(() => store.sessions.update('main', { unalias: { name: 'main', reason: '' } })).code).toBe(
    'TAPE_EXISTS',
  );
  expect(store.sessions.update('main', { unalias: away }).aliases).toEqual(['a-release']);
  // Again, it changes nothing.
  store.sessions.update('main', { unalias: away });
  expect(store.sessions.find('release')).toBeUndefined();
  expect(
    store.sessions.update('other', { alias: { name: 'release', reason: 'the next one' } }),
  ).toMatchObject({
    session: 'other',
    aliases: ['release'],
  });
  const lines = [...store.lineage.read({ types: ['alias', 'unalias'] })];
  expect(lines.map(({ type, session_id, alias, reason }) => [type, session_id, alias, reason])).toEqual([
    ['alias', 'main', 'release', 'the project'],
    ['alias', 'main', 'a-release', ''],
    ['unalias', 'main', 'release', 'it is over'],
    ['alias', 'other', 'release', 'the next one'],
  ]);
  expect([...store.verify()]).toEqual([]);
});

test('an alias that would record nothing is refused, and repeating one changes nothing', () => {
  using store = openStore();
  const { id } = store.sessions.open('main');
  const give = (name: string, reason: string) => store.sessions.update('main', { alias: { name, reason } });
  for (const own of ['main', 'main~1', id, `worker:${id}`])
    expect(
      refusal(() => give(own, 'a test')),
      own,
    ).toMatchObject({ code: expect.stringMatching(/^TAPE_(EXISTS|BAD_NAME)$/) });
  expect(refusal(() => give('main', '')).message).toBe("cannot alias 'main' to 'main': it is its name or id");
  give('release', 'the project');
  give('release', 'the project');
  expect(give('release', '').aliases).toEqual(['release']);
  expect(refusal(() => give('release', 'another')).message).toContain(
    "it is its alias already, with another reason ('the project')",
  );
  expect([...store.lineage.read({ types: ['alias'] })]).toHaveLength(1);
});

test('aliases of a base are none in another', () => {
  using store = openStore(':memory:', { base: 'bub' });
  store.sessions.open('main');
  store.sessions.update('main', { alias: { name: 'release', reason: '' } });
  expect(store.sessions.find('release')?.tape).toBe('bub:main');
});

test('sessions are listed by their last message, at the source where it was imported', () => {
  using store = openStore();
  const origin = (timestamp: string) => ({ source: 'import', timestamp });
  const { id } = store.imports.stage('old');
  store.imports.append(id, [
    user('then', origin('2020-03-01T10:00:00.000Z')),
    user('earlier', origin('2020-02-01T10:00:00.000Z')),
  ]);
  store.sessions.open('new');
  store.entries.append('new', [user('now')]);
  store.imports.publish([id]);
  store.sessions.open('empty');
  expect(store.sessions.list().map(({ session: name }) => name)).toEqual(['empty', 'new', 'old']);
  const time = Date.parse('2020-03-01T10:00:00.000Z');
  expect(store.sessions.find('old')).toMatchObject({ lastMessageAt: time });
  expect(store.sessions.find('empty')).not.toHaveProperty('lastMessageAt');
  expect(store.sessions.list({ since: time }).map(({ session: name }) => name)).toContain('old');
  expect(store.sessions.list({ since: time + 1 }).map(({ session: name }) => name)).toEqual(['empty', 'new']);
  const [entry] = store.entries.read('old', { kind: 'message' });
  expect(entry?.sourceAt).toBe(time);
  expect(entry?.at).toBeGreaterThan(time);
  // A time without an offset depends on a machine, and a text of another source is its own.
  store.entries.append('new', [
    user('x', origin('2020-03-01 10:00')),
    user('y', { timestamp: '2020-03-01T10:00:00Z' }),
  ]);
  expect([...store.entries.read('new')].some(({ sourceAt }) => sourceAt !== undefined)).toBe(false);
});

test('a session without an own message is listed by the time that its import gives it, also in another home', async () => {
  using store = openStore();
  const timestamp = '2020-03-01T10:00:00.000Z';
  store.sessions.open('left');
  store.entries.append('left', [note('import/source', {}, { source: 'import', timestamp })]);
  const time = { lastMessageAt: Date.parse(timestamp) };
  expect(store.sessions.find('left')).toMatchObject(time);
  expect([...store.verify()]).toEqual([]);
  using other = openStore(':memory:', { newId: countedIds('01JE') });
  await adopt(other, bundleOf(store, 'left'));
  expect(other.sessions.find('left')).toMatchObject(time);
  expect([...other.verify()]).toEqual([]);
});

test('an alias that reads as a point of a session is refused, as a name is', () => {
  using store = openStore();
  store.sessions.open('main');
  store.sessions.open('other');
  store.entries.append('main', [user('One'), anchor('done')]);
  for (const name of ['main@2', 'main@head', 'main@done']) {
    const refused = refusal(() => store.sessions.update('other', { alias: { name, reason: '' } }));
    expect([refused.code, refused.message]).toEqual([
      'TAPE_EXISTS',
      expect.stringContaining('reads as the point'),
    ]);
  }
  expect(store.sessions.update('other', { alias: { name: 'main@later', reason: '' } }).aliases).toEqual([
    'main@later',
  ]);
});
