import { copyTapes, openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import { afterEach, expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { rawDb } from '../support/raw-db.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

afterEach(() => onCrashPoint(undefined));

const empty = () => openTapeStore(':memory:', { secrets: [] });

/** A store with a large family and two small ones. */
function filled(path = ':memory:'): SqliteTapeStore {
  const store = openStore(path, { secrets: [] });
  fillForForgeries(store);
  for (const name of ['aside', 'other']) {
    store.sessions.open(name);
    store.entries.append(name, [user(`In ${name}`)]);
  }
  return store;
}

/** What a home says of its sessions, entries and lineage, whatever the order in which they came. */
function stateOf(store: SqliteTapeStore): unknown {
  const sessions = store.sessions
    .list({ all: true })
    .map(({ id, session, lifecycle, task, delivery, title, aliases, headHash }) => ({
      ...{ id, session, lifecycle, task, delivery, title, aliases, headHash },
      entries: [...store.entries.read(id, { own: true })].map(
        // How an entry came is no part of it.
        ({ adopted: _adopted, elsewhere: _elsewhere, ...entry }) => entry,
      ),
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const lines = [...store.lineage.read()].map(({ event_id }) => event_id).sort();
  return { sessions, lines };
}

test('a copy has the sessions, entries, names and lineage of the first home, and verifies', async () => {
  using from = filled();
  from.sessions.update('aside', { alias: { name: 'beside', reason: '' } });
  from.sessions.update('other', { lifecycle: 'archived' });
  using to = empty();
  const seen: number[] = [];
  const copied = await copyTapes(from, to, { onProgress: ({ done }) => seen.push(done) });
  const count = from.sessions.list({ all: true }).length;
  expect(copied).toMatchObject({ sessions: count, changed: count, refused: [], behind: [], waiting: [] });
  expect(copied.entries).toBe(from.count().entries);
  expect(seen.at(-1)).toBe(count);
  expect(stateOf(to)).toEqual(stateOf(from));
  expect([...to.verify()]).toEqual([]);
  expect(to.sessions.find('beside')?.session).toBe('aside');
});

test('copying again adds what is new alone, also new names and states', async () => {
  using from = filled();
  using to = empty();
  await copyTapes(from, to);
  expect(await copyTapes(from, to)).toMatchObject({ changed: 0, entries: 0 });
  from.entries.append('aside', [user('More')]);
  expect(await copyTapes(from, to)).toMatchObject({ changed: 1, entries: 1 });
  from.sessions.update('other', { lifecycle: 'archived' });
  expect(await copyTapes(from, to)).toMatchObject({ changed: 1, entries: 0 });
  expect(stateOf(to)).toEqual(stateOf(from));
});

test('a copy that was interrupted has whole families alone, and goes on', async () => {
  using from = filled();
  for (const point of ['bundle/scanned', 'bundle/entries', 'bundle/verified', 'commit/before'] as const) {
    using to = empty();
    let passed = 0;
    onCrashPoint((at) => {
      if (at === point && ++passed === 2) throw new Error('stopped');
    });
    await expect(copyTapes(from, to), point).rejects.toThrow('stopped');
    onCrashPoint(undefined);
    const before = to.count();
    expect(before.entries, point).toBeLessThan(from.count().entries);
    expect([...to.verify()], point).toEqual([]);
    const { entries, behind } = await copyTapes(from, to);
    expect(entries, point).toBe(from.count().entries - before.entries);
    expect(behind).toEqual([]);
    expect(stateOf(to), point).toEqual(stateOf(from));
  }
});

test('content that an earlier bundle did not bring comes with the copy', async () => {
  using from = filled();
  using to = empty();
  await adopt(to, bundleOf(from, 'grand'));
  expect(to.countAbsent()).toBeGreaterThan(0);
  await copyTapes(from, to);
  expect(to.countAbsent()).toBe(0);
  expect(stateOf(to)).toEqual(stateOf(from));
});

test('a session that went on in another way, or whose name is taken, stays as it is; others are copied', async () => {
  using from = filled();
  using to = empty();
  await copyTapes(from, to);
  from.entries.append('aside', [user('Here')]);
  to.entries.append('aside', [user('There')]);
  from.sessions.open('taken');
  to.sessions.open('taken');
  from.entries.append('other', [user('More')]);
  const { refused, behind, changed } = await copyTapes(from, to);
  expect(refused.map(({ session, error }) => [session, error.code])).toEqual([
    ['aside', 'TAPE_DIVERGED'],
    ['taken', 'TAPE_EXISTS'],
  ]);
  expect(behind.toSorted()).toEqual(['aside', 'taken']);
  expect(changed).toBe(1);
  expect([...to.entries.read('aside')].at(-1)?.payload).toMatchObject({
    content: [{ text: 'There' }],
  });
});

test('a damaged family is left out; others are copied', async () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  filled(path).close();
  {
    using db = rawDb(path);
    db.dropTriggers();
    db.exec(`UPDATE entry SET payload = replace(payload, 'In aside', 'Inxaside')`);
  }
  using from = openStore(path, { secrets: [] });
  using to = empty();
  const { refused, sessions, changed } = await copyTapes(from, to);
  expect(refused).toMatchObject([{ session: 'aside', error: { code: 'TAPE_CORRUPT' } }]);
  expect(changed).toBe(sessions - 1);
  expect(to.sessions.find('aside')).toBeUndefined();
});

test('what waits in an inbox is reported, and stays', async () => {
  using from = filled();
  from.inbox.post('aside', { body: { type: 'input', drafts: [user('Later')] } });
  using to = empty();
  expect((await copyTapes(from, to)).waiting).toEqual([{ session: 'aside', items: 1 }]);
  expect(to.inbox.list('aside')).toEqual([]);
});

test('what descends from a deleted or purged session is copied, with that session', async () => {
  using from = empty();
  for (const name of ['gone', 'hidden']) {
    from.sessions.open(name);
    from.entries.append(name, [user(`In ${name}`)]);
    from.lineage.fork(name, { name: `${name}-child`, inherit: 'nothing' });
    from.entries.append(`${name}-child`, [user('Below')]);
  }
  const { id } = from.sessions.purge('gone', 'asked for');
  from.sessions.update('hidden', { lifecycle: 'destroyed' });
  using to = empty();
  expect(await copyTapes(from, to)).toMatchObject({ sessions: 4, changed: 4, behind: [], stillThere: [] });
  expect(to.sessions.find('gone-child')?.head).toBe(from.sessions.find('gone-child')?.head);
  expect(to.sessions.find(id)?.lifecycle).toBe('purged');
  expect(await copyTapes(from, to)).toMatchObject({ changed: 0, behind: [] });
  expect([...to.verify()]).toEqual([]);
});

test('what was erased after a copy is named until it is erased there, too', async () => {
  using from = filled();
  using to = empty();
  await copyTapes(from, to);
  from.entries.redact('main', 2, 'a key');
  const { id } = from.sessions.purge('aside', 'asked for');
  expect(await copyTapes(from, to)).toMatchObject({ behind: [], stillThere: [id, 'main@2'] });
  expect(to.sessions.find(id)?.lifecycle).toBe('destroyed');
  expect(await copyTapes(from, to)).toMatchObject({ behind: [], stillThere: [id] });
  to.sessions.purge(id, 'asked for');
  expect(await copyTapes(from, to)).toMatchObject({ changed: 0, behind: [], stillThere: [] });
  expect([...to.verify()]).toEqual([]);
});

test('a copy of named sessions has what they inherit from, and with trees what descends from them', async () => {
  using from = empty();
  from.sessions.open('main');
  from.entries.append('main', [user('Plan the release.')]);
  from.lineage.fork('main', { name: 'fix' });
  from.entries.append('fix', [user('Fix it.')]);
  from.lineage.fork('fix', { name: 'fix-deeper' });
  from.sessions.open('other');
  const names = ({ sessions }: SqliteTapeStore) => sessions.list({ all: true }).map(({ session }) => session);
  using one = empty();
  expect(await copyTapes(from, one, { sessions: ['fix'] })).toMatchObject({ sessions: 2, behind: [] });
  expect(names(one).sort()).toEqual(['fix', 'main']);
  expect(one.sessions.find('fix')?.headHash).toBe(from.sessions.find('fix')?.headHash);
  expect([...one.verify()]).toEqual([]);
  expect(await copyTapes(from, one, { sessions: ['main'], trees: true })).toMatchObject({
    ...{ sessions: 3, changed: 1, behind: [] },
  });
  expect(names(one).sort()).toEqual(['fix', 'fix-deeper', 'main']);
  await expect(copyTapes(from, one, { sessions: ['none'] })).rejects.toMatchObject({
    code: 'TAPE_NO_SESSION',
  });
});
