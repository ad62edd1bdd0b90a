import { assistant, user } from '@tapedeck/tape';
import { openPostgresStore } from '@tapedeck/tape/postgres';
import { expect, test } from 'vitest';
import { countedDeck } from '../support/counted-deck.ts';
import { serverPlace } from '../support/postgres.ts';
import { slowLink } from '../support/slow-link.ts';
import { slowModel } from '../support/slow-model.ts';

test('a step of a run takes at most four round trips and one for its batch of calls', async () => {
  await using deck = await countedDeck();
  const run = async (prompt: string) => (await deck.costOf(async () => await deck.main.run(prompt))).trips;
  // What acts ask is learned from the first of them.
  await run('once');
  await run('thrice');
  const one = await run('once');
  const three = await run('thrice');
  expect((three - one) / 2).toBeLessThanOrEqual(5);
});

test('a delegated child with one model call takes at most twenty round trips', async () => {
  // A scripted model would read the tape to find its place.
  await using deck = await countedDeck({ model: slowModel(['the report'], 0) });
  const delegate = (task: string) => deck.costOf(async () => await deck.main.delegate(task));
  for (const task of ['first', 'second', 'third']) await delegate(task);
  // On a busy machine an answer comes slowly, and its pieces are saved on the way: the least is what a child needs.
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 12 && least > 20; i += 1) least = Math.min(least, (await delegate(`task ${i}`)).trips);
  expect(least).toBeLessThanOrEqual(20);
});

test('merges that wait in an inbox are done with three round trips each, however many wait', async () => {
  await using place = await serverPlace();
  await using link = await slowLink(place.url);
  await using store = await openPostgresStore(link.url);
  await store.sessions.open('main');
  await store.entries.append('main', [user('ask')]);
  const lease = await store.leases.acquire('main', { id: 'owner' });
  const drained = async (name: string, count: number) => {
    for (let i = 0; i < count; i += 1) {
      const child = `${name}${i}`;
      await store.lineage.fork('main', { name: child });
      await store.entries.append(child, [assistant('done')]);
      await store.sessions.update(child, { task: 'completed' });
      await store.inbox.post('main', { key: child, body: { type: 'merge', draft: { child } } });
    }
    const before = link.trips;
    expect(await store.inbox.drain(lease)).toBe(count);
    return link.trips - before;
  };
  // What acts ask is learned from the first of them.
  await drained('first', 4);
  expect(await drained('few', 4)).toBeLessThanOrEqual(3 * 5);
  expect(await drained('many', 20)).toBeLessThanOrEqual(3 * 21);
});
