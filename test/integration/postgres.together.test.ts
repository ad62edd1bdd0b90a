import { setTimeout as sleep } from 'node:timers/promises';
import { assistant, TapeError, user } from '@tapedeck/tape';
import { openPostgresStore } from '@tapedeck/tape/postgres';
import { expect, test } from 'vitest';
import { connected, serverPlace } from '../support/postgres.ts';
import { slowLink } from '../support/slow-link.ts';

const writers = Array.from({ length: 8 }, (_, i) => i);
const times = Array.from({ length: 10 }, (_, i) => i);

/** Some stores on the same place of a server, as that many processes have them. */
async function stores(count: number) {
  const stack = new AsyncDisposableStack();
  const place = stack.use(await serverPlace());
  const all: Awaited<ReturnType<typeof openPostgresStore>>[] = [];
  for (let i = 0; i < count; i += 1)
    all.push(stack.use(await openPostgresStore(place.url, { connections: 3 })));
  const [first] = all;
  if (first === undefined) throw new TypeError('there is no store');
  return {
    first,
    of: (i: number) => all[i % count] ?? first,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test('eight writers on four stores append to one session: each entry once, without gaps', async () => {
  await using at = await stores(4);
  await at.first.sessions.open('main');
  await Promise.all(
    writers.map(async (writer) => {
      for (const time of times)
        await at.of(writer).entries.append('main', [user(`${writer} ${time}`)], { key: `${writer}-${time}` });
    }),
  );
  const entries = await Array.fromAsync(at.first.entries.read('main', { kind: 'message' }));
  expect(new Set(entries.map(({ payload }) => JSON.stringify(payload))).size).toBe(80);
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 2));
  expect(await Array.fromAsync(at.first.verify())).toEqual([]);
});

test('pieces of an answer are saved while another session is written; those of the written one wait, and know its owner', async () => {
  await using place = await serverPlace();
  await using store = await place.open();
  const busy = await store.sessions.open('busy');
  const free = await store.sessions.open('free');
  const piece = (session: string, epoch: number) => ({
    session,
    run: 'run',
    chunks: [{ index: 0, chunk: 'so' }],
    epoch,
  });
  const lease = await store.leases.acquire(free.id, { id: 'owner' });
  await using client = await connected(place.url);
  await client.query(`BEGIN; SELECT FROM tape WHERE ulid = '${busy.id}' FOR UPDATE`);
  // It has its locks, and waits for the row. It takes the session from an owner that does not know yet.
  const taken = store.leases.acquire(busy.id, { id: 'next' });
  const isWaiting = async () =>
    (await client.query(`SELECT FROM pg_stat_activity WHERE wait_event = 'transactionid'`)).rowCount;
  await expect.poll(isWaiting).toBe(1);
  await store.live.save([piece(free.id, lease.epoch)]);
  expect(await store.live.read(free.id)).toHaveLength(1);
  const late = store.live.save([piece(busy.id, 0), piece('free', lease.epoch)]);
  await client.query('ROLLBACK');
  await taken;
  await late;
  expect(await store.live.read(busy.id)).toEqual([]);
});

test('eight children are forked, written and merged at once on four stores, and nothing is lost', async () => {
  await using at = await stores(4);
  await at.first.sessions.open('main');
  await Promise.all(
    writers.map(async (writer) => {
      const store = at.of(writer);
      const child = await store.lineage.fork('main', { name: `child-${writer}` });
      const lease = await store.leases.acquire(child.id, { id: `owner-${writer}` });
      for (const time of times) await store.entries.append(child.id, [assistant(`${time}`)], { lease });
      await store.leases.release(lease);
      await store.lineage.merge(child.id);
    }),
  );
  const children = await at.first.sessions.list({ parent: 'main', all: true });
  expect(children.map(({ delivery }) => delivery)).toEqual(writers.map(() => 'merged'));
  const marks = await Array.fromAsync(at.first.entries.read('main', { namePrefix: 'merge/' }));
  expect(new Set(marks.map(({ name }) => name)).size).toBe(8);
  const lines = await Array.fromAsync(at.first.lineage.read());
  expect(lines.map(({ g }) => g)).toEqual(lines.map((_, i) => i + 1));
  expect(await Array.fromAsync(at.first.verify())).toEqual([]);
});

test('an owner that was overtaken writes nothing more, whatever it knew of its session', async () => {
  await using at = await stores(2);
  const [first, second] = [at.of(0), at.of(1)];
  const { id } = await first.sessions.open('main');
  const old = await first.leases.acquire(id, { id: 'old' }, { ttlMs: 1 });
  for (const time of times) await first.entries.append(id, [user(`old ${time}`)], { lease: old });
  await sleep(5);
  const lease = await second.leases.acquire(id, { id: 'new' });
  await second.entries.append(id, [user('new')], { lease });
  const late = await Promise.resolve(first.entries.append(id, [user('too late')], { lease: old })).catch(
    (error: unknown) => error,
  );
  expect(late).toMatchObject({ code: 'TAPE_FENCED' });
  await second.entries.append(id, [user('newer')], { lease });
  const texts = await Array.fromAsync(first.entries.read(id, { kind: 'message', last: 3 }));
  expect(texts.map(({ payload }) => JSON.stringify(payload)).join()).not.toContain('too late');
  expect(await Array.fromAsync(first.verify())).toEqual([]);
});

test('connections that are lost in the middle lose no entry, and repeat none under its key', async () => {
  await using place = await serverPlace();
  await using link = await slowLink(place.url, { delayMs: 1 });
  await using store = await openPostgresStore(link.url, { connections: 2 });
  await store.sessions.open('main');
  const cutting = setInterval(link.cut, 500);
  try {
    for (let time = 0; time < 200; ) {
      try {
        await store.entries.append('main', [user(`entry ${time}`)], { key: `k${time}` });
        time += 1;
      } catch (error) {
        // The entry may be on the tape: the same key says so.
        if (!(error instanceof TapeError) || !/^TAPE_(?:IO|CANNOT_OPEN)$/.test(error.code)) throw error;
      }
    }
  } finally {
    clearInterval(cutting);
  }
  // The last cut may have been a moment ago.
  await using whole = await place.open();
  const entries = await Array.fromAsync(whole.entries.read('main', { kind: 'message' }));
  expect(entries.map(({ key }) => key)).toEqual(Array.from({ length: 200 }, (_, time) => `u:k${time}`));
  expect(await Array.fromAsync(whole.verify())).toEqual([]);
});

test('a process that is stopped in the middle of an act holds up the others for seconds, and writes nothing of it', async () => {
  await using place = await serverPlace();
  await using link = await slowLink(place.url);
  const limit = encodeURIComponent('-c idle_in_transaction_session_timeout=2s');
  const stopped = await openPostgresStore(`${link.url}&options=${limit}`, { connections: 1 });
  await using store = await place.open();
  await store.sessions.open('main');
  // The first trip begins the transaction and locks the home; the act has not learnt yet what it will ask.
  link.stopAfter(1);
  const lost = Promise.resolve(stopped.lineage.fork('main', { name: 'a' })).catch((error: unknown) => error);
  await sleep(500);
  expect(await store.lineage.fork('main', { name: 'b' })).toMatchObject({ session: 'b' });
  expect(await lost).toMatchObject({ code: 'TAPE_IO' });
  link.cut();
  await stopped[Symbol.asyncDispose]();
  expect(await store.sessions.find('a')).toBeUndefined();
  expect(await Array.fromAsync(store.verify())).toEqual([]);
});
