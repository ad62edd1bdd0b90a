import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { openDeck } from '@tapedeck/runtime';
import { pgBoss, queueState } from '@tapedeck/runtime/pg-boss';
import { openPostgresStore } from '@tapedeck/tape/postgres';
import pg from 'pg';
import { expect, test } from 'vitest';
import { bossScene, recordOf } from '../support/boss.ts';
import { serverPlace } from '../support/postgres.ts';
import { slowLink } from '../support/slow-link.ts';
import { tempDir } from '../support/temp-dir.ts';

const limit = 600_000;

/** A home on a server, and a connection to look at its queue. */
async function home() {
  const stack = new AsyncDisposableStack();
  const place = stack.use(await serverPlace());
  const store = stack.use(await place.open());
  const schema = new URL(place.url).searchParams.get('schema');
  const query = async (sql: string) => {
    const client = new pg.Client(place.url.replace(/\?.*/, ''));
    await client.connect();
    const { rows } = await client.query(sql);
    await client.end();
    return rows;
  };
  stack.defer(async () => void (await query(`DROP SCHEMA IF EXISTS ${schema}_boss CASCADE`)));
  return {
    url: place.url,
    store,
    jobs: async () => await query(`SELECT data, state FROM ${schema}_boss.job`),
    bossSchema: `${schema}_boss`,
    query,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test(
  'a fork and its job are one commit: both are there, or neither',
  async () => {
    await using at = await home();
    const { store } = at;
    const { id: parent } = await store.sessions.open('main');
    const engine = pgBoss(at.url);
    const toStatement = await engine.startBeside?.(1);
    if (toStatement === undefined) throw new TypeError('the engine starts runs beside a fork');
    const beside = ({ session, id }: { session: string; id: string }) =>
      toStatement({ id: session, parent: 'main', depth: 1, order: { session: id, parent } });
    const { id } = await store.lineage.fork('main', { name: 'a', key: 'once' }, beside);
    expect(await at.jobs()).toMatchObject([{ data: { id: 'a', order: { session: id } }, state: 'created' }]);
    // Found again by its key, it is started no second time.
    await store.lineage.fork('main', { name: 'a', key: 'once' }, beside);
    // The job was inserted, and the transaction ends before its commit.
    const broken = (forked: { session: string; id: string }) => ({
      ...beside(forked),
      sql: `WITH job AS (${beside(forked).sql}) SELECT 1 / (count(*) - count(*)) FROM job`,
    });
    await expect(store.lineage.fork('main', { name: 'b' }, broken)).rejects.toThrow();
    expect(await store.sessions.find('b')).toBeUndefined();
    expect(await at.jobs()).toHaveLength(1);
    expect(await queueState(at.url)).toEqual({ queues: ['depth1'], workers: [], waiting: 1, running: 0 });
    await engine.stop();
  },
  limit,
);

test(
  'the state of queues whose schema a newer pg-boss has changed is read, as its workers go on there',
  async () => {
    await using at = await home();
    const engine = pgBoss(at.url, { concurrency: 1, maxDepth: 1 });
    await engine.work(async () => {});
    await at.query(`UPDATE ${at.bossSchema}.version SET version = version + 1`);
    expect(await queueState(at.url)).toMatchObject({ queues: ['depth1'], workers: [{}], waiting: 0 });
    await engine.stop();
  },
  limit,
);

test(
  'a worker that stops gives back what it does not finish, and another continues it',
  async () => {
    await using at = await home();
    await using scene = await bossScene(at, {
      children: 3,
      stepMs: 100,
      toolMs: 3_000,
      workers: 1,
      stopMs: 1_000,
    });
    const first = await scene.busy();
    const state = await queueState(at.url);
    expect(state.workers).toMatchObject([{ pid: first.pid }]);
    expect(state.running).toBeGreaterThan(0);
    // At once: on a busy machine it would be done with all before another one has started.
    first.signal('SIGTERM');
    const second = await scene.start();
    expect(await first.ended).toBe(0);
    const [lead] = await scene.delegation;
    expect(lead).toMatchObject({ status: 'completed', text: 'all done' });
    expect(second.begun.length).toBeGreaterThan(0);
    expect(await recordOf(at.store)).toMatchObject({ results: 3, merged: 3, repeatedMerges: 0, steps: [4] });
  },
  limit,
);

test(
  'a notice to stop reaches the run that it names, of two of one child',
  async () => {
    await using at = await home();
    const worker = pgBoss(at.url, { concurrency: 2, stopMs: 1_000 });
    const starter = pgBoss(at.url);
    const over = Promise.withResolvers<void>();
    const signals = new Map<string, AbortSignal>();
    await worker.work(async ({ order }, signal) => {
      signals.set(order?.message?.key ?? '', signal);
      await over.promise;
    });
    const begin = async (key: string) => {
      const message = { text: key, key, meta: {} };
      await starter.start({
        id: 'a',
        parent: 'main',
        depth: 1,
        order: { session: 'A', parent: 'M', message },
      });
      await expect.poll(() => signals.has(key), { timeout: 30_000 }).toBe(true);
    };
    await begin('one');
    await begin('two');
    await starter.cancel('A', 'one');
    await expect.poll(() => signals.get('one')?.aborted, { timeout: 10_000 }).toBe(true);
    expect(signals.get('two')?.aborted).toBe(false);
    over.resolve();
    await Promise.all([worker.stop({ drain: true }), starter.stop()]);
  },
  limit,
);

test(
  'an abort reaches children in other processes, and those below them',
  async () => {
    await using at = await home();
    await using scene = await bossScene(at, { children: 3, stepMs: 100, toolMs: 60_000, workers: 2 });
    await scene.busy();
    scene.delegation.abort();
    const [lead] = await scene.delegation;
    expect(lead).toMatchObject({ status: 'aborted' });
    const children = await at.store.sessions.list({ parent: 'lead', all: true });
    await expect
      .poll(async () => (await at.store.sessions.list({ parent: 'lead', all: true })).map(({ task }) => task))
      .toEqual(children.map(() => 'aborted'));
  },
  limit,
);

test(
  'who delegates to workers needs no model and no key: those of the worker run',
  async () => {
    await using at = await home();
    using dir = tempDir();
    writeFileSync(dir.file('script.json'), JSON.stringify([{ text: 'done' }]));
    await using worker = await openDeck({
      store: at.store,
      model: `script:${dir.file('script.json')}`,
      env: {},
      engine: pgBoss(at.url, { concurrency: 1 }),
    });
    await using deck = await openDeck({ store: at.store, env: {}, engine: pgBoss(at.url) });
    const main = await deck.session('main');
    expect(await main.delegate({ task: 'Look' })).toMatchObject([{ status: 'completed', text: 'done' }]);
    const named = main.delegate({ task: 'Look again', name: 'named' }, { model: 'anthropic/claude-opus-5' });
    // The worker of this test has no key either, and its child says so.
    expect(await named).toMatchObject([{ session: 'named', status: 'failed' }]);
    await expect(main.delegate({ task: 'Look' }, { model: 'no name' })).rejects.toMatchObject({
      code: 'SESSION_NO_MODEL',
    });
    await worker.idle();
  },
  limit,
);

test(
  'a process that waits for children waits for the server, too, whenever its connections are lost',
  async () => {
    await using at = await home();
    using dir = tempDir();
    writeFileSync(dir.file('script.json'), JSON.stringify([{ text: 'done', delayMs: 300 }]));
    await using worker = await openDeck({
      store: at.store,
      model: `script:${dir.file('script.json')}`,
      env: {},
      engine: pgBoss(at.url, { concurrency: 2 }),
    });
    await using link = await slowLink(at.url);
    await using deck = await openDeck({
      store: openPostgresStore(link.url),
      env: {},
      engine: pgBoss(link.url),
    });
    const main = await deck.session('main');
    const delegation = main.delegate(['Look', 'Listen', 'Taste', 'Smell']);
    await delegation.started;
    for await (const { type } of delegation) if (type === 'child-ended') link.cut();
    const merged = { status: 'completed', text: 'done', merged: { state: 'merged' } };
    expect(await delegation).toMatchObject([merged, merged, merged, merged]);
    expect(await recordOf(at.store, 'main')).toMatchObject({ results: 4, merged: 4, repeatedMerges: 0 });
    await worker.idle();
  },
  limit,
);

test(
  'the trace of a call goes with the job: the run of a worker is below it',
  async () => {
    const exporter = new InMemorySpanExporter();
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
    );
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    try {
      await using at = await home();
      using dir = tempDir();
      writeFileSync(dir.file('script.json'), JSON.stringify([{ text: 'done' }]));
      const options = { model: `script:${dir.file('script.json')}`, env: {} };
      const place = { store: at.store, ...options };
      await using worker = await openDeck({ ...place, engine: pgBoss(at.url, { concurrency: 1 }) });
      await using deck = await openDeck({ ...place, engine: pgBoss(at.url) });
      const main = await deck.session('main');
      await trace.getTracer('test').startActiveSpan('caller', async (span) => {
        expect(await main.delegate({ task: 'Look', name: 'child' })).toMatchObject([{ status: 'completed' }]);
        span.end();
      });
      await worker.idle();
      await expect.poll(() => exporter.getFinishedSpans().length).toBeGreaterThan(2);
      await sleep(100);
      const spans = exporter.getFinishedSpans();
      const caller = spans.find(({ name }) => name === 'caller');
      const { id } = (await at.store.sessions.find('child')) ?? {};
      const run = spans.find(
        ({ name, attributes }) =>
          name.startsWith('invoke_agent') && attributes['gen_ai.conversation.id'] === id,
      );
      expect(run?.spanContext().traceId).toBe(caller?.spanContext().traceId);
    } finally {
      trace.disable();
      context.disable();
    }
  },
  limit,
);
