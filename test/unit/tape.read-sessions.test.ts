import { assistant, openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';

const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** A store of 450 sessions, which takes three reads. Each third is a child, some are archived, numbers repeat. */
function manySessions(): SqliteTapeStore {
  let now = 1_000;
  const store = openTapeStore(':memory:', { now: () => now });
  for (let n = 0; n < 450; n += 1) {
    now += n % 5 === 0 ? 0 : 7;
    const name = `s${(n * 37) % 450}`;
    if (n % 3 === 2) store.lineage.fork(`s${((n - 1) * 37) % 450}`, { name });
    else store.sessions.open(name);
    for (let i = 0; i < n % 4; i += 1)
      store.entries.append(name, [user('Go on.'), assistant('Done.', { model: 'a/b', usage })]);
    if (n % 50 === 49) store.sessions.update(name, { lifecycle: 'archived' });
  }
  return store;
}

test('reads the sessions that list returns, in its order', () => {
  using store = manySessions();
  for (const query of [
    {},
    { all: true, counts: true, titles: true },
    { roots: true, limit: 220 },
    { kind: 'subagent', counts: true },
    { since: 1_900 },
    { limit: 0 },
  ]) {
    const listed = store.sessions.list(query);
    expect([...store.readSessions(query)]).toEqual(listed);
    if (!('limit' in query)) expect(listed.length).toBeGreaterThan(100);
  }
});

test('reads them in another order, equal ones by their last messages', () => {
  using store = manySessions();
  const listed = store.sessions.list({ counts: true });
  const orders = {
    last: () => 0,
    created: (a, b) => b.createdAt - a.createdAt,
    name: (a, b) => (a.session < b.session ? -1 : 1),
    messages: (a, b) => b.messageCount - a.messageCount,
    tokens: (a, b) => (b.counts?.tokens ?? 0) - (a.counts?.tokens ?? 0),
  } satisfies Record<string, (a: (typeof listed)[number], b: (typeof listed)[number]) => number>;
  for (const [order, compare] of Object.entries(orders) as [keyof typeof orders, typeof orders.name][])
    expect([...store.readSessions({ counts: true, order })], order).toEqual(listed.toSorted(compare));
});

test('yields each session once, although others write meanwhile, as it is at its turn', () => {
  using store = manySessions();
  const expected = store.sessions.list({ all: true }).map(({ id }) => id);
  const read: string[] = [];
  for (const info of store.readSessions({ all: true })) {
    read.push(info.id);
    // The last one becomes the newest, and a new one appears.
    if (read.length === 1) {
      store.entries.append(expected.at(-1) ?? '', [user('Again.')]);
      store.sessions.open('another');
    }
    if (info.id === expected.at(-1))
      expect(info.lastMessageAt).toBe(store.sessions.find(info.id)?.lastMessageAt);
  }
  expect(read).toEqual(expected);
});

test('refuses an option that does not exist', () => {
  using store = openTapeStore(':memory:');
  expect(() => store.readSessions({ sort: 'name' } as object)).toThrow(
    expect.objectContaining({ code: 'TAPE_BAD_OPTION' }),
  );
  expect(() => store.readSessions({ order: 'size' } as object)).toThrow(
    expect.objectContaining({ code: 'TAPE_BAD_OPTION' }),
  );
});

test('reads a part of them, or those of some ids, and counts them', () => {
  using store = manySessions();
  const listed = store.sessions.list({ all: true });
  expect([...store.readSessions({ all: true, offset: 210, limit: 30 })]).toEqual(listed.slice(210, 240));
  expect([...store.readSessions({ offset: 450 })]).toEqual([]);
  const some = listed.filter((_, i) => i % 50 === 0);
  expect([...store.readSessions({ all: true, ids: some.map(({ id }) => id).reverse() })]).toEqual(some);
  for (const query of [{}, { all: true }, { kind: 'subagent' }, { roots: true }])
    expect(store.countListed(query)).toBe(store.sessions.list(query).length);
});

test('what was written behind a place of the home is found by what is new alone', () => {
  using store = manySessions();
  const before = store.homeHead();
  expect(store.writtenBehind(before)).toEqual({ head: before, entries: [], lines: [], isMore: false });
  const { id } = store.sessions.open('new');
  const { id: other = '' } = store.sessions.find('s3') ?? {};
  store.entries.append('s3', [user('Again.')]);
  const { head, entries, lines } = store.writtenBehind(before);
  expect({ head, entries: [...entries].sort(), lines }).toEqual({
    ...{ head: store.homeHead(), entries: [id, other].sort(), lines: [id] },
  });
  expect(store.writtenBehind(head).entries).toEqual([]);
});

test('a child that is deleted is counted no more, until it is brought back', () => {
  using store = openTapeStore(':memory:');
  store.sessions.open('main');
  const { id } = store.sessions.find(store.lineage.fork('main', { name: 'child' }).session) ?? {};
  store.lineage.fork('main', { name: 'other' });
  const children = () => store.sessions.list({ counts: true, roots: true })[0]?.counts?.children;
  expect(children()).toBe(2);
  store.sessions.update('child', { lifecycle: 'destroyed' });
  expect(children()).toBe(1);
  store.sessions.update(id ?? '', { lifecycle: 'active' });
  expect(children()).toBe(2);
});
