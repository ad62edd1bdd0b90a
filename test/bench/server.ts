import { type Draft, type TapeStore, user } from '@tapedeck/tape';
import pg from 'pg';
import { countedDeck } from '../support/counted-deck.ts';
import { serverPlace } from '../support/postgres.ts';
import { slowModel } from '../support/slow-model.ts';
import { gather, median } from './measure.ts';
import { type Bench, compared, counted, type Row } from './topic.ts';

const text = 'x'.repeat(1_200);
const draft: readonly Draft[] = [user(text)];
/** The delay of a link to another machine. */
const linkMs = 2;

/** What a home on a server of this machine costs: appends, and round trips over a slow link. */
export async function server(bench: Bench): Promise<Row[]> {
  return [...(await appends(bench)), await run(bench), await child(bench)];
}

/** Appends of writers in this process against inserts of the same text by as many, under the same lock. */
async function appends(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, writers, shared] of [
    ['1 writer', 1, false],
    ['8 writers, each its own session', 8, false],
    ['8 writers of one session', 8, true],
  ] as const) {
    await using place = await serverPlace();
    await using stack = new AsyncDisposableStack();
    const sessionOf = (i: number) => (shared ? 's0' : `s${i}`);
    const ours: (() => Promise<unknown>)[] = [];
    const raw: (() => Promise<unknown>)[] = [];
    for (let i = 0; i < writers; i += 1) {
      const store = stack.use(await place.open({ connections: 1 }));
      ours.push(await writerOf(store, sessionOf(i), shared));
      raw.push(await rawWriter(stack, place.url, sessionOf(i)));
    }
    const times = bench.size(100, 3);
    const perAppend = async (acts: readonly (() => Promise<unknown>)[]) => {
      const began = performance.now();
      await Promise.all(
        acts.map(async (act) => {
          for (let i = 0; i < times; i += 1) await act();
        }),
      );
      return ((performance.now() - began) * 1000) / (times * writers);
    };
    const taken = await gather({ ours: () => perAppend(ours), raw: () => perAppend(raw) }, bench.size(9, 1));
    rows.push(
      compared(taken.ours, taken.raw, {
        work: `append to a server, ${name}`,
        against: 'an INSERT under the same lock',
        unit: 'µs',
        goal: { most: 4 },
      }),
    );
    bench.note(
      `${name}: ${perSecond(median(taken.ours))} appends a second, ${perSecond(median(taken.raw))} raw inserts`,
    );
  }
  return rows;
}

function perSecond(micros: number): string {
  return Math.round(1e6 / micros).toLocaleString('en-US');
}

/** Appends as the owner of a session, or, where it is shared, without a lease. */
async function writerOf(store: TapeStore, session: string, shared: boolean): Promise<() => Promise<unknown>> {
  await store.sessions.open(session);
  if (shared) return async () => await store.entries.append(session, draft);
  const lease = await store.leases.acquire(session, { id: `bench:${session}` }, { ttlMs: 3_600_000 });
  return async () => await store.entries.append(session, draft, { lease });
}

/** Inserts with one statement, which is one trip and one commit. */
async function rawWriter(
  stack: AsyncDisposableStack,
  url: string,
  session: string,
): Promise<() => Promise<unknown>> {
  const client = new pg.Client(url.replace(/\?.*/, ''));
  await client.connect();
  stack.defer(async () => await client.end());
  const schema = new URL(url).searchParams.get('schema');
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${schema}.raw (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session text, text text)`,
  );
  return async () =>
    await client.query({
      name: 'raw',
      text: `INSERT INTO ${schema}.raw (session, text)
        SELECT $1, $2 FROM (SELECT pg_advisory_xact_lock(hashtextextended($1, 0))) locked`,
      values: [session, text],
    });
}

/** A run of three steps with a call each and one without, over a link that delays each round trip. */
async function run(bench: Bench): Promise<Row> {
  await using deck = await countedDeck({ delayMs: linkMs });
  return await overLink(bench, async () => await deck.costOf(async () => await deck.main.run('thrice')), {
    work: 'run of four steps, three with a call',
  });
}

/** A delegated child with one model call, over the same link. */
async function child(bench: Bench): Promise<Row> {
  await using deck = await countedDeck({ model: slowModel(['the report'], 0), delayMs: linkMs });
  return await overLink(
    bench,
    async () => await deck.costOf(async () => await deck.main.delegate('report')),
    {
      work: 'delegated child with one model call',
    },
  );
}

/** Compares the time of an act with that of its round trips alone. */
async function overLink(
  bench: Bench,
  act: () => Promise<{ readonly trips: number; readonly ms: number }>,
  { work }: { readonly work: string },
): Promise<Row> {
  const taken: { readonly trips: number; readonly ms: number }[] = [];
  // What acts ask is learned from the first of them.
  for (let i = -3; i < bench.size(9, 1); i += 1) {
    const cost = await act();
    if (i >= 0) taken.push(cost);
  }
  const trips = median(taken.map((one) => one.trips));
  return counted(median(taken.map(({ ms }) => ms)), trips * linkMs, {
    work: `${work}, ${linkMs} ms a trip`,
    against: `its ${trips} round trips`,
    unit: 'ms',
    goal: { most: 2 },
  });
}
