import { assistant, type SqliteTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { pageOn } from '../support/page.ts';
import { rawDb } from '../support/raw-db.ts';
import { memoryHome, type TempHome } from '../support/temp-home.ts';

/** Gives a session a name that the store makes none of; a home from elsewhere can have one. */
function rename(home: TempHome, name: string, to: string): void {
  using db = rawDb(home.db);
  db.dropTriggers();
  db.run('UPDATE tape SET name = ? WHERE name = ?', to, name);
}

const showsOf = async (store: SqliteTapeStore, session: string) => {
  const { items } = await pageOn(store).timeline({ session, from: 1, to: 9 });
  return items.flatMap(({ commands }) =>
    commands.filter(({ what }) => what === 'Print it').map(({ line }) => line),
  );
};

test('a session whose name is not what a reader sees has its ULID in links and commands, and for those below it', async () => {
  using home = memoryHome();
  home.session('main', user('One'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'kid' });
  }
  rename(home, 'main', 'ma\u202ein\u0007');
  using store = home.open();
  const { id = '' } = store.sessions.find('ma\u202ein\u0007') ?? {};
  const page = pageOn(store);
  const { rows } = await page.sessions({});
  expect(rows).toContainEqual(expect.objectContaining({ session: id, name: 'ma\\u{202e}in\\u{7}', id }));
  expect(rows).toContainEqual(expect.objectContaining({ session: 'kid', parent: id }));
  expect(rows.find(({ session }) => session === 'kid')).not.toHaveProperty('name');
  expect((await page.session({ session: id })).commands.map(({ line }) => line)).toContain(`tape fork ${id}`);
  const stop = new AbortController();
  const { at } = await page.home();
  store.entries.append('kid', [user('Two')]);
  const { value: events } = await page.follow(at, stop.signal).next();
  stop.abort();
  expect(events).toMatchObject([{ session: 'kid', parent: id }]);
});

test('a command about an entry never names another session', async () => {
  using home = memoryHome();
  using store = home.open();
  store.sessions.open('a@2');
  store.sessions.open('a');
  store.entries.append('a@2', [user('One')]);
  store.entries.append('a', [user('One'), assistant('Two')]);
  const { id } = store.sessions.find('a') ?? {};
  expect(await showsOf(store, 'a')).toEqual([`tape show ${id}@2`, 'tape show a@3']);
  expect(await showsOf(store, 'a@2')).toEqual(['tape show a@2@2']);
});

test('a name that begins with a dash is no option of a command', async () => {
  using home = memoryHome();
  home.session('x', user('One'));
  rename(home, 'x', '--help');
  using store = home.open();
  expect(await showsOf(store, '--help')).toContain('tape show -- --help@2');
  const { commands } = await pageOn(store).session({ session: '--help' });
  expect(commands.map(({ line }) => line)).toContain('tape log --full -- --help');
});
