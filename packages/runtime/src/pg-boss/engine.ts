import { createHash } from 'node:crypto';
import type { Beside } from '@tapedeck/tape/store';
import type { Client } from 'pg';
import type { PgBoss } from 'pg-boss';
import { defaultLimits } from '../config/config.ts';
import type { RunEngine, RunSpec } from '../delegation/engine.ts';
import { giveOnAbandoned } from './abandoned.ts';
import { asking } from './asking.ts';
import { cancelChannel, WorkerLine } from './line.ts';
import { withPassword } from './password.ts';
import { placeOf } from './place.ts';

/** Options of `pgBoss`. */
export interface PgBossOptions {
  /**
   * How many children of each depth this process runs at once (default 0). With 0 it runs none: it starts children and
   * waits for what other processes do.
   */
  readonly concurrency?: number;
  /** The greatest depth of children that it runs (default: that of `limits.maxDepth`). */
  readonly maxDepth?: number;
  /** How long `stop` waits for what this process runs before it gives that back, in milliseconds (default 20,000). */
  readonly stopMs?: number;
  /** Receives errors of the queue. It goes on by itself: the server is asked again. Default: they are left out. */
  readonly onError?: (error: Error) => void;
}

/** After how many seconds without a sign of life a process counts as dead. The least that pg-boss takes. */
const heartbeatSeconds = 10;
/** The longest run of a child: the most that pg-boss takes. It is then started again, and goes on from its tape. */
const expireInSeconds = 24 * 60 * 60;

/** A job: a run without what only its order among others needs. */
type Job = Pick<RunSpec, 'id' | 'depth' | 'parent' | 'order'>;

/**
 * An engine whose children run in any process that works on the same database: `tape worker`, or a program whose engine has
 * a `concurrency`. The address is that of the home.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { pgBoss } from '@tapedeck/runtime/pg-boss';
 * import { postgres } from '@tapedeck/tape/postgres';
 *
 * const url = 'postgres://deck@db.example.org/deck';
 * await using deck = await openDeck({ store: postgres(url), engine: pgBoss(url) });
 * const main = await deck.session('main');
 * console.log((await main.delegate('Check the tests.'))[0].status); // completed
 * ```
 */
export function pgBoss(url: string, options: PgBossOptions = {}): RunEngine {
  const { concurrency = 0, maxDepth = defaultLimits.maxDepth, stopMs = 20_000 } = options;
  const place = placeOf(url);
  const { address, schema } = place;
  const queues = new Map<number, Promise<string>>();
  const running = new Map<string, Set<AbortController>>();
  let started: Promise<PgBoss> | undefined;
  let line: WorkerLine | undefined;
  let looking: Disposable | undefined;
  const boss = () => {
    started ??= asking(place, async () => await start(address, schema, { ...options, concurrency }));
    started.catch(() => {
      started = undefined;
    });
    return started;
  };
  const queueOf = (depth: number) => {
    const known = queues.get(depth);
    if (known !== undefined) return known;
    const made = boss().then((queue) => createQueue(queue, `depth${depth}`));
    made.catch(() => queues.delete(depth));
    queues.set(depth, made);
    return made;
  };
  const connect = async (): Promise<Client> => {
    const { default: pg } = await import('pg');
    const client = new pg.Client({ connectionString: await withPassword(address) });
    await client.connect();
    return client;
  };
  return {
    isElsewhere: true,
    async start(run) {
      await asking(place, async () => {
        const queue = await queueOf(run.depth);
        await (await boss()).send(queue, jobOf(run), sendOptions(run));
      });
    },
    async startBeside(depth) {
      const { sql, values } = await asking(place, async () => {
        const queue = await queueOf(depth);
        return await insertOf(await boss(), queue);
      });
      return (run) => {
        const [text] = values;
        const [template] = JSON.parse(String(text)) as [object];
        const { priority, singletonKey } = sendOptions(run);
        const job = {
          ...template,
          data: jobOf(run),
          singletonKey,
          ...(priority !== undefined && { priority }),
        };
        return { sql, values: [JSON.stringify([job])] };
      };
    },
    async work(handler) {
      // A package that is missing is reported when the deck opens, and not by what it delegates first.
      await import('pg-boss');
      if (concurrency === 0) return;
      const ours = new WorkerLine(connect, {
        schema,
        onCancel: (key) => {
          for (const controller of running.get(key) ?? []) controller.abort(new Error('aborted by parent'));
        },
      });
      line = ours;
      await asking(place, async () => {
        const queue = await boss();
        looking = giveOnAbandoned(queue, schema);
        for (let depth = 1; depth <= maxDepth; depth += 1)
          await queue.work<Job | null>(
            await queueOf(depth),
            { localConcurrency: concurrency, ...polling, heartbeatRefreshSeconds: 2 },
            async ([job]) => {
              const run = job?.data;
              // What others have put there is no run: repeated, it would never end.
              if (job === undefined || typeof run?.id !== 'string') return;
              const key = keyOf(run.order?.session ?? run.id, run.order?.message?.key);
              const controller = new AbortController();
              // One that was begun again here, when its first run had no heartbeat, has two for a while.
              const ofKey = running.get(key) ?? new Set();
              running.set(key, ofKey.add(controller));
              const drop = ours.hold(job.id);
              try {
                await handler(run, controller.signal);
              } finally {
                ofKey.delete(controller);
                if (ofKey.size === 0) running.delete(key);
                drop();
              }
            },
          );
      });
    },
    async cancel(session, message) {
      const sql = `SELECT pg_notify('${cancelChannel(schema)}', $1)`;
      await asking(
        place,
        async () => await (await boss()).getDb().executeSql(sql, [keyOf(session, message)]),
      );
    },
    async stop({ drain = false } = {}) {
      const queue = await started?.catch(() => undefined);
      // What is not done by then fails there, and is tried again by others at once.
      looking?.[Symbol.dispose]();
      await queue?.stop({ graceful: drain, timeout: stopMs });
      await line?.[Symbol.asyncDispose]();
    },
  };
}

/**
 * How each place of a worker asks for a run: a notification starts the first of them at once; the worker then takes what
 * waits behind it, one after the other, and looks again once a second.
 */
const polling = { pollingIntervalSeconds: 1, notifyPollingIntervalSeconds: 1, burstWhenReadyExceeds: 1 };

async function start(
  address: string,
  schema: string,
  { concurrency = 0, onError }: PgBossOptions,
): Promise<PgBoss> {
  const { PgBoss: Boss } = await import('pg-boss');
  const isWorker = concurrency > 0;
  const boss = new Boss({
    connectionString: await withPassword(address),
    schema,
    max: 3,
    useListenNotify: isWorker,
    // Who only starts children leaves it to workers to find out who has died.
    supervise: isWorker,
    schedule: false,
    superviseIntervalSeconds: 1,
    monitorIntervalSeconds: 1,
    registerInstance: isWorker,
    instanceHeartbeatSeconds: heartbeatSeconds / 2,
    // The run of a child has a span of its own, below the call that has started it.
    openTelemetry: { enabled: false },
  });
  boss.on('error', (error) => onError?.(error));
  return await boss.start();
}

/** Makes the queue of a depth: a child that waits for its own children has no place that these need. */
async function createQueue(boss: PgBoss, name: string): Promise<string> {
  await boss.createQueue(name, {
    policy: 'exclusive',
    notify: true,
    heartbeatSeconds,
    expireInSeconds,
    retryLimit: 10_000,
    retryDelay: 1,
    deleteAfterSeconds: 60 * 60,
  });
  return name;
}

function jobOf({ id, depth, parent, order }: RunSpec): Job {
  return {
    id,
    depth,
    ...(parent !== undefined && { parent }),
    ...(order !== undefined && { order }),
  };
}

function sendOptions({ id, priority, order }: RunSpec): {
  readonly singletonKey: string;
  readonly priority?: number;
} {
  const singletonKey = keyOf(order?.session ?? id, order?.message?.key);
  return { singletonKey, ...(priority !== undefined && { priority }) };
}

/** What jobs and notices call a run: one of a child at a time; one for each message of a child that is resumed. */
function keyOf(session: string, message: string | undefined): string {
  return message === undefined ? session : `${session} ${digest(message)}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** The statement by which pg-boss queues a job, as it would send it now. */
async function insertOf(boss: PgBoss, queue: string): Promise<Beside> {
  let insert: Beside | undefined;
  const db = {
    executeSql: async (sql: string, values: unknown[] = []) => {
      insert = { sql, values: values.map(String) };
      return { rows: [{ id: '' }] };
    },
  };
  await boss.send(queue, {}, { db });
  if (insert === undefined) throw new TypeError('pg-boss queues a job with one statement');
  return insert;
}
