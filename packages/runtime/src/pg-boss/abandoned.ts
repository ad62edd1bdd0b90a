import type { PgBoss } from 'pg-boss';
import { lockOf } from './line.ts';

/** How often workers look for jobs of others that have ended, in milliseconds. */
const lookMs = 1_000;
/** How often in a row a job is seen without a lock: its worker may be about to lock it, or to connect again. */
const looks = 3;

/** A job that a worker does, and how often it was begun. */
interface ActiveJob {
  readonly id: string;
  readonly name: string;
  readonly retryCount: number;
}

/**
 * Gives the jobs of workers that have ended to others, until it is closed: long before they have had no heartbeat for the time
 * that pg-boss waits. A worker that hangs still has its locks; the heartbeat is for such.
 */
export function giveOnAbandoned(boss: PgBoss, schema: string): Disposable {
  let seen = new Map<string, number>();
  const look = async () => {
    const jobs = await jobsWithoutLock(boss, schema);
    seen = new Map(
      jobs.map((job) => [`${job.id} ${job.retryCount}`, (seen.get(`${job.id} ${job.retryCount}`) ?? 0) + 1]),
    );
    // One that was begun again meanwhile is another attempt, which this does not end.
    for (const { id, name, retryCount } of jobs)
      if ((seen.get(`${id} ${retryCount}`) ?? 0) >= looks)
        await boss.fail(name, { id, retryCount }, { message: 'its worker has ended' });
  };
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    look()
      .catch(() => {
        // The locks were lost with the connections: they come again with these.
        seen.clear();
      })
      .finally(() => {
        isLooking = false;
      });
  }, lookMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function jobsWithoutLock(boss: PgBoss, schema: string): Promise<readonly ActiveJob[]> {
  const db = boss.getDb();
  const [home] = lockOf(schema, '');
  const { rows: jobs } = await db.executeSql(
    `SELECT id, name, retry_count AS "retryCount" FROM ${schema}.job
       WHERE state = 'active' AND name ~ '^depth[0-9]+$'`,
  );
  if (jobs.length === 0) return [];
  const { rows: locks } = await db.executeSql(
    `SELECT objid::bigint::text AS job FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
       AND classid = ($1::bigint & 4294967295)::oid
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [home],
  );
  const locked = new Set((locks as { readonly job: string }[]).map(({ job }) => Number(job)));
  return (jobs as ActiveJob[]).filter(({ id }) => !locked.has(lockOf(schema, id)[1] >>> 0));
}
