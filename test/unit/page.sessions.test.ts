import { assistant, openTapeStore, type SqliteTapeStore, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { pageOn } from '../support/page.ts';
import { rawDb } from '../support/raw-db.ts';
import { memoryHome } from '../support/temp-home.ts';

const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** Sessions in a home, half of them children of others, with some that were merged, archived and deleted. */
function manySessions(store: SqliteTapeStore, count: number): void {
  for (let n = 0; n < count; n += 1) {
    const name = `s${n}`;
    if (n % 2 === 0) store.sessions.open(name);
    else
      store.lineage.fork(`s${n - 1 - ((n - 1) % 10)}`, { name, intention: { nextSteps: `Look at ${n}.` } });
    store.entries.append(name, [user(`Question ${n}`), assistant(`Answer ${n}`, { model: 'a/b', usage })]);
    if (n % 10 === 3) store.lineage.merge(name);
    if (n % 10 === 4) store.entries.append(name, [assistant([toolCall(`c${n}`, 'read', {})])]);
    if (n % 10 === 6) store.sessions.update(name, { lifecycle: 'archived' });
    if (n % 10 === 8) store.sessions.update(name, { lifecycle: 'destroyed' });
  }
}

/** All rows of a list, in its parts. */
async function whole(store: SqliteTapeStore, query: Parameters<ReturnType<typeof pageOn>['sessions']>[0]) {
  const parts = [];
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const part = await pageOn(store).sessions({ ...query, offset });
    expect(part.rows.length).toBeLessThanOrEqual(200);
    parts.push(part);
    offset = part.next;
  }
  return { rows: parts.flatMap(({ rows }) => rows), total: parts[0]?.total };
}

test('lists in parts what tape sessions lists', async () => {
  using home = memoryHome();
  {
    using store = home.open();
    manySessions(store, 270);
  }
  using store = home.open();
  for (const [query, args] of [
    [{}, []],
    [{ all: true }, ['--all']],
    [{ kind: 'subagent' }, ['--kind', 'subagent']],
    [{ sort: 'name' }, ['--sort', 'name']],
    [{ find: 'question 23' }, ['--grep', 'question 23']],
    [{ find: 'S4' }, ['--grep', 'S4']],
    [{ tree: true }, ['--tree']],
    [{ tree: true, all: true }, ['--tree', '--all']],
    [{ tree: true, find: 'question 23' }, ['--tree', '--grep', 'question 23']],
    [{ tree: true, kind: 'subagent' }, ['--tree', '--kind', 'subagent']],
  ] as const) {
    const { stdout } = await home.here(['sessions', ...args, '--json']);
    const listed = JSON.parse(stdout) as readonly Readonly<Record<string, unknown>>[];
    const { rows, total } = await whole(store, query);
    expect(listed.length).toBeGreaterThan(0);
    expect(
      rows.map(({ session, id, kind, about, head, messages, tokens, children }) => ({
        ...{ session, id, kind, about, head, messages, tokens, children },
      })),
    ).toEqual(
      listed.map(({ session, id, kind, title = '', head, message_count, tokens, children }) => ({
        ...{ session, id, kind, about: title, head, messages: message_count, tokens },
        children: (children as { all: number }).all,
      })),
    );
    if (!('find' in query || 'tree' in query)) expect(total).toBe(listed.length);
  }
});

test('lists what is open, and what was merged', async () => {
  using store = openTapeStore(':memory:');
  manySessions(store, 60);
  const open = await whole(store, { state: 'open' });
  expect(open.rows.map(({ session, state }) => `${session} ${state}`)).toEqual(
    [54, 44, 34, 24, 14, 4].map((n) => `s${n} waiting`),
  );
  const merged = await whole(store, { state: 'merged' });
  expect(merged.rows.map(({ session, tone }) => `${session} ${tone}`)).toEqual(
    [53, 43, 33, 23, 13, 3].map((n) => `s${n} good`),
  );
});

test('a tree says how deep each session is below its root', async () => {
  using store = openTapeStore(':memory:');
  store.sessions.open('a');
  for (const [parent, name] of [
    ['a', 'b'],
    ['b', 'c'],
    ['a', 'd'],
  ] as const)
    store.lineage.fork(parent, { name });
  const { rows } = await whole(store, { tree: true });
  expect(rows.map(({ session, depth }) => `${session} ${depth}`)).toEqual(['a 0', 'd 1', 'b 1', 'c 2']);
});

test('a tree has each session that a list has, below its nearest ancestor that is listed', async () => {
  using store = openTapeStore(':memory:');
  store.sessions.open('top');
  for (let n = 0; n < 250; n += 1)
    store.lineage.fork('top', { name: `kid${n}`, intention: { nextSteps: `Look at ${n}.` } });
  for (const [parent, name] of [
    ['kid7', 'deep'],
    ['deep', 'deepest'],
  ] as const)
    store.lineage.fork(parent, { name, intention: { nextSteps: 'Look at 7 again.' } });
  store.lineage.merge('deepest');
  store.sessions.update('deep', { lifecycle: 'archived' });
  manySessions(store, 60);
  const placed = async (query: Parameters<typeof whole>[1]) =>
    (await whole(store, { ...query, tree: true })).rows.map(
      ({ session, depth }) => ' '.repeat(depth) + session,
    );
  expect(await placed({ find: 'at 7 again' })).toEqual(['deepest']);
  expect(await placed({ find: 'at 7 again', all: true })).toEqual(['deep', ' deepest']);
  expect(await placed({ find: 'top' })).toEqual(['top']);
  for (const query of [
    { state: 'merged' },
    { state: 'open' },
    { kind: 'subagent' },
    { find: 'look' },
    {},
  ] as const) {
    const flat = (await whole(store, query)).rows.map(({ session }) => session);
    const tree = (await placed(query)).map((line) => line.trim());
    expect(tree.toSorted()).toEqual(flat.toSorted());
  }
});

test('a deleted session is in no list, and cannot be shown', async () => {
  using store = openTapeStore(':memory:');
  const { id } = store.sessions.open('gone');
  store.sessions.update('gone', { lifecycle: 'destroyed' });
  expect((await whole(store, { all: true })).rows).toEqual([]);
  await expect(pageOn(store).session({ session: id })).rejects.toThrow('there is no such session');
});

test('the commands of a session whose forged name is not what one sees of it name it by its id', async () => {
  using home = memoryHome();
  {
    using store = home.open();
    store.sessions.open('main');
    store.entries.append('main', [user('Hello')]);
  }
  {
    using db = rawDb(home.db);
    db.dropTriggers();
    db.run(`UPDATE tape SET name = 'ma' || char(0x200b) || 'in'`);
  }
  using store = home.open();
  const page = pageOn(store, { inHome: (line) => `${line} --home ${home.path}` });
  const { id, session, commands } = (await page.session({
    session: (await page.sessions({})).rows[0]?.session ?? '',
  })) as { id: string; session: string; commands: readonly { line: string }[] };
  expect(session).toBe(id);
  const log = commands.find(({ line }) => line.startsWith('tape log '))?.line ?? '';
  expect((await home.here(log.split(' ').slice(1))).stdout).toContain('Hello');
});
