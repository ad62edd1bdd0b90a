import { check } from '@tapedeck/runtime';
import { type TapeStore, user } from '@tapedeck/tape';
import { openPostgresStore } from '@tapedeck/tape/postgres';
import { expect, test, vi } from 'vitest';
import { connected, serverPlace } from '../support/postgres.ts';
import { sized } from '../support/size.ts';
import { slowLink } from '../support/slow-link.ts';

/** Appends messages, as many as one call takes. */
async function fill(
  store: TapeStore,
  session: string,
  count: number,
  textOf = (i: number) => `message ${i}`,
) {
  await store.sessions.open(session);
  for (let at = 0; at < count; at += 500)
    await store.entries.append(
      session,
      Array.from({ length: Math.min(500, count - at) }, (_, i) => user(textOf(at + i))),
    );
}

/** How many texts are parsed while something is read: each row has some, and is parsed again when it is read again. */
async function parsedBy(read: () => Promise<unknown>): Promise<number> {
  const parse = vi.spyOn(JSON, 'parse');
  try {
    await read();
    return parse.mock.calls.length;
  } finally {
    parse.mockRestore();
  }
}

test('what is read in many pages is read once', async () => {
  await using place = await serverPlace();
  await using store = await place.open();
  await fill(store, 'main', 2_000);
  for (const read of [
    (at: number) => Array.fromAsync(store.entries.read('main', { to: at })),
    (at: number) => Array.fromAsync(store.views.entries('main', { policy: 'full', at })),
    (at: number) => Array.fromAsync(store.views.entries('main', { at })),
  ]) {
    const [short, long] = [await read(600), await read(1_900)];
    expect(long.map(({ seq }) => seq)).toEqual(long.map((_, i) => i + 1));
    const counts = [await parsedBy(() => read(600)), await parsedBy(() => read(1_900))] as const;
    expect(counts[1] / long.length).toBeLessThan(1.2 * (counts[0] / short.length));
  }

  // Lines as those that are there: the hashes do not matter to a reader.
  await using client = await connected(place.url);
  const add = async (count: number) =>
    await client.query(
      `INSERT INTO lineage SELECT n, 'e' || n, type, tape_id, peer_id, seq, to_seq, replace(line, '"g":1,', '"g":' || n || ','), hash
         FROM lineage, generate_series((SELECT max(g) + 1 FROM lineage), (SELECT max(g) + ${count} FROM lineage)) n WHERE g = 1`,
    );
  const lines = async () => await Array.fromAsync(store.lineage.read());
  await add(600);
  const [few, ofFew] = [await lines(), await parsedBy(lines)];
  await add(1_200);
  const [many, ofMany] = [await lines(), await parsedBy(lines)];
  expect(many.map(({ g }) => g)).toEqual(many.map((_, i) => i + 1));
  expect(ofMany / many.length).toBeLessThan(1.2 * (ofFew / few.length));
  expect(await Array.fromAsync(store.lineage.read({ session: 'main', from: 2 }))).toHaveLength(1_800);
});

test('a verification reads each entry once, says how far it is, and finds what one that waits finds', async () => {
  await using place = await serverPlace();
  await using link = await slowLink(place.url);
  await using writer = await place.open();
  await fill(writer, 'small', 900);
  await fill(writer, 'long', 6_000);
  await writer.lineage.fork('long', { name: 'half', cut: 2_001 });
  await using store = await openPostgresStore(link.url);
  const told = async (ref?: string) => {
    const progress: number[] = [];
    const before = link.trips;
    const onProgress = ({ done }: { done: number }) => progress.push(done);
    expect(await Array.fromAsync(store.verify(ref, { onProgress }))).toEqual([]);
    return { progress, trips: link.trips - before };
  };
  const hundreds = (count: number) => Array.from({ length: count }, (_, i) => (i + 1) * 100);
  expect((await told('small')).progress).toEqual([...hundreds(9), 901]);
  const [half, long] = [await told('half'), await told('long')];
  expect(half.progress.slice(0, 20)).toEqual(hundreds(20));
  expect(long.progress).toEqual([...hundreds(60), 6_001]);
  expect(long.trips).toBeLessThan(3 * half.trips);
  expect((await told()).progress.at(-1)).toBeGreaterThan(6_900);

  await using client = await connected(place.url);
  await client.query(`SET session_replication_role = replica`);
  await client.query(`UPDATE entry SET payload = replace(payload, 'message', 'massage') WHERE seq = 700`);
  using waiting = await place.openHome();
  const problems = await Array.fromAsync(store.verify());
  expect(problems.map(({ code, session }) => `${code} ${session}`)).toEqual(
    ['small', 'long'].map((name) => `entry-changed ${name}`),
  );
  expect(problems).toEqual([...waiting.verify()]);
  for await (const { code } of store.verify('long')) {
    expect(code).toBe('entry-changed');
    break;
  }
  const failing = store.verify('long', {
    onProgress: () => {
      throw new Error('enough');
    },
  });
  await expect(Array.fromAsync(failing)).rejects.toThrow('enough');
  await expect(Array.fromAsync(store.verify('nobody'))).rejects.toMatchObject({ code: 'TAPE_NO_SESSION' });
});

test('a connection that is lost during a verification is an error, and no damage', async () => {
  await using place = await serverPlace();
  await using link = await slowLink(place.url);
  await using writer = await place.open();
  await fill(writer, 'long', 2_500);
  await using store = await openPostgresStore(link.url);
  const whole = async () => expect((await check(store)).sections.integrity.findings).toEqual([]);
  await whole();
  const before = link.trips;
  await whole();
  const trips = link.trips - before;
  for (const share of sized([0.5], [0.2, 0.8], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])) {
    link.cutAfter(Math.floor(share * trips));
    await expect(check(store)).rejects.toMatchObject({
      code: expect.stringMatching(/^TAPE_(?:IO|CANNOT_OPEN)$/),
      data: { server: expect.any(String), reason: expect.stringMatching(/^(?:lost|unreachable)$/) },
    });
  }
  await whole();
}, 600_000);

test('a server that shares statements among its processes verifies a home, also one that refuses some acts in them', async () => {
  await using place = await serverPlace();
  await using writer = await place.open();
  await fill(writer, 'main', 20);
  await using client = await connected(place.url);
  const { rows: forced } = await client.query<{ name: string }>(
    `SELECT name FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode')`,
  );
  const settings = { [`${forced[0]?.name}`]: 'on', parallel_setup_cost: 0, min_parallel_table_scan_size: 0 };
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  await using store = await openPostgresStore(
    `${place.url}&options=${encodeURIComponent(options.join(' '))}`,
  );
  expect(await Array.fromAsync(store.verify())).toEqual([]);
  await client.query(`SET session_replication_role = replica`);
  await client.query(`UPDATE entry SET payload = '{' WHERE seq = 7`);
  expect((await Array.fromAsync(store.verify())).map(({ seq }) => seq)).toContain(7);

  // Servers before PostgreSQL 17 refuse a part of a transaction there, which catches an error.
  const { rows: refused } = await client.query(
    `SELECT proname FROM pg_proc WHERE pronamespace = current_schema::regnamespace
       AND prosrc ~ '\\mEXCEPTION WHEN' AND proparallel <> 'u'`,
  );
  expect(refused).toEqual([]);
}, 600_000);

test('a search for signs looks at the newest entries, and says what it has not looked at', async () => {
  await using place = await serverPlace();
  await using store = await place.open();
  await fill(store, 'first', 1, () => '⇒ the first');
  const filler = 'x'.repeat(500_000);
  await fill(store, 'large', 42, (i) => `${i === 41 ? '⇒ ' : ''}${filler}`);
  const near = await store.entries.search({ text: '⇒' });
  expect(near.hits.map(({ session }) => session)).toEqual(['large']);
  expect(near.unsearched).toBeGreaterThan(2);
  const all = await store.entries.search({ text: '⇒', all: true });
  expect(all.hits.map(({ session }) => session)).toEqual(['large', 'first']);
  expect(all.unsearched).toBe(0);
  using waiting = await place.openHome();
  expect(waiting.entries.search({ text: '⇒' })).toEqual(near);
  // The words of a text are in the index, and are searched to the end.
  await fill(store, 'words', 450, (i) => (i === 0 ? 'red then blue' : 'blue then red'));
  const found = await store.entries.search({ text: 'red then' });
  expect(found).toMatchObject({ hits: [{ session: 'words', seq: 2 }], unsearched: 0, unindexed: 0 });
  expect((await store.entries.search({ text: 'blue', limit: 300 })).hits).toHaveLength(300);
});
