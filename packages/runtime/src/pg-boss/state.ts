import { asking } from './asking.ts';
import { withPassword } from './password.ts';
import { type Place, placeOf } from './place.ts';

/** What the queues of a home have to do, and who does it. */
export interface QueueState {
  /** Their names; none before the home has had a worker, or a child for one. */
  readonly queues: readonly string[];
  /** The processes that run children and were heard from lately. */
  readonly workers: readonly {
    readonly host: string;
    readonly pid: number;
    readonly seenAt: Date;
  }[];
  /** How many children wait for a worker. */
  readonly waiting: number;
  /** How many children workers run. */
  readonly running: number;
}

/**
 * Reads what the queues of a home have to do, for a probe. A home that has never had a worker has none.
 * @throws TAPE_CANNOT_OPEN when the server lets no one in; TAPE_IO when the queues cannot be read
 *
 * @example
 * ```ts
 * import { queueState } from '@tapedeck/runtime/pg-boss';
 *
 * const { workers, waiting } = await queueState('postgres://deck@db.example.org/deck');
 * console.log(`${workers.length} workers, ${waiting} children wait`);
 * ```
 */
export async function queueState(url: string): Promise<QueueState> {
  const place = placeOf(url);
  return await asking(place, async () => await stateAt(place));
}

async function stateAt({ address, schema }: Place): Promise<QueueState> {
  const connectionString = await withPassword(address);
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString });
  await client.connect();
  let made: number;
  try {
    const found = await client.query(`SELECT 1 FROM pg_namespace WHERE nspname = $1`, [schema]);
    if (found.rowCount === 0) return { queues: [], workers: [], waiting: 0, running: 0 };
    const { rows } = await client.query<{ version: number }>(`SELECT version FROM ${schema}.version`);
    made = rows[0]?.version ?? 0;
  } finally {
    await client.end();
  }
  const { PgBoss, getConstructionPlans } = await import('pg-boss');
  const boss = new PgBoss({
    connectionString,
    schema,
    max: 1,
    // Workers of an older version go on in a schema that a newer one has changed, where this would refuse to look.
    migrate: made > versionIn(getConstructionPlans(schema)),
    supervise: false,
    schedule: false,
    registerInstance: false,
    openTelemetry: { enabled: false },
  });
  // What cannot be read rejects.
  boss.on('error', () => {});
  await boss.start();
  try {
    const counts = await boss.getDb().executeSql(
      `SELECT count(*) FILTER (WHERE state IN ('created', 'retry'))::int AS waiting,
              count(*) FILTER (WHERE state = 'active')::int AS running FROM ${schema}.job`,
    );
    const [{ waiting, running }] = counts.rows as [{ waiting: number; running: number }];
    const instances = await boss.getInstances();
    const queues = (await boss.getQueues()).map(({ name }) => name);
    return {
      queues,
      workers: instances
        .filter(({ live }) => live)
        .map(({ host, pid, heartbeatOn }) => ({ host, pid, seenAt: heartbeatOn })),
      waiting,
      running,
    };
  } finally {
    await boss.stop({ graceful: false });
  }
}

/** The version of the schema that pg-boss makes by some statements: only they have it. */
function versionIn(statements: string): number {
  const [, version] = /\.version\(version\) VALUES \('(\d+)'\)/.exec(statements) ?? [];
  return Number(version ?? Number.POSITIVE_INFINITY);
}
