import type { PageEvent } from '@tapedeck/cli/internal';
import { assistant, processOwner, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { pageOn } from '../support/page.ts';
import { memoryHome, type TempHome } from '../support/temp-home.ts';

/** The events that a page of a home gets as another process writes there. */
function followed(home: TempHome, after?: string) {
  const store = home.open();
  const page = pageOn(store);
  const stop = new AbortController();
  const events: PageEvent[] = [];
  const done = (async () => {
    const from = after ?? (await page.home()).at;
    for await (const together of page.follow(from, stop.signal)) events.push(...together);
  })();
  return {
    events,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await done;
      store.close();
    },
  };
}

const said = ({ what, session, head, state }: PageEvent) => `${what} ${session}@${head} ${state}`;

test('tells what another process writes, soon, and what begins and ceases to run', async () => {
  using home = memoryHome();
  using writer = home.open();
  writer.sessions.open('main');
  await using page = followed(home);
  await new Promise((done) => setTimeout(done, 100));
  expect(page.events).toEqual([]);

  writer.entries.append('main', [user('Go.')]);
  await expect.poll(() => page.events.map(said), { interval: 5 }).toEqual(['entries main@2 active']);

  const lease = writer.leases.acquire('main', processOwner('test'));
  await expect.poll(() => page.events.map(said).at(-1)).toBe('state main@2 busy');
  writer.leases.release(lease);
  await expect.poll(() => page.events.map(said).at(-1)).toBe('state main@2 active');

  writer.lineage.fork('main', { name: 'kid' });
  await expect.poll(() => page.events.map(said).at(-1)).toBe('lineage kid@3 active');
  writer.sessions.update('kid', { lifecycle: 'destroyed' });
  await expect
    .poll(() => page.events.at(-1))
    .toMatchObject({ what: 'lineage', session: '', state: 'deleted' });
});

test('goes on where a page was cut off', async () => {
  using home = memoryHome();
  using writer = home.open();
  for (const name of ['a', 'b', 'c']) writer.sessions.open(name);
  const { at } = await pageOn(writer).home();
  writer.entries.append('a', [user('One.')]);
  writer.entries.append('c', [user('Two.'), assistant('Three.')]);
  await using page = followed(home, at);
  await expect.poll(() => page.events.map(said).sort()).toEqual(['entries a@2 active', 'entries c@3 active']);
  await using again = followed(home, page.events.at(-1)?.at);
  writer.entries.append('b', [user('Four.')]);
  await expect.poll(() => again.events.map(said)).toEqual(['entries b@2 active']);
});

test('what is written while events are read is in later ones alone', async () => {
  using home = memoryHome();
  using writer = home.open();
  writer.sessions.open('main');
  using store = home.open();
  const page = pageOn(store);
  const { at } = await page.home();
  const read = store.readSessions.bind(store);
  let isFirst = true;
  store.readSessions = (query) => {
    if (isFirst) writer.entries.append('main', [user('In between.')]);
    isFirst = false;
    return read(query);
  };
  writer.entries.append('main', [user('Before.')]);
  const stop = new AbortController();
  const events: PageEvent[] = [];
  for await (const together of page.follow(at, stop.signal)) {
    events.push(...together);
    if (events.length === 2) stop.abort();
  }
  expect(events.map(said)).toEqual(['entries main@2 active', 'entries main@3 active']);
});

test('of more than it can say one by one it says that all has changed', async () => {
  using home = memoryHome();
  using writer = home.open();
  for (let n = 0; n < 600; n += 1) writer.sessions.open(`s${n}`);
  for (const after of ['0.0', 'no place', '']) {
    await using page = followed(home, after);
    await expect.poll(() => page.events.map(({ what }) => what)).toEqual(['all']);
  }
});
