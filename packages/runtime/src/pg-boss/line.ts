import { createHash } from 'node:crypto';
import type { Client } from 'pg';

/** How soon a worker whose connection was lost connects again, in milliseconds. */
const againMs = 500;

/** The channel on which a process tells workers to stop the run of a child. */
export function cancelChannel(schema: string): string {
  return `cancel_${schema}`;
}

/** The two numbers of the lock that a worker has while it does a job. */
export function lockOf(schema: string, job: string): readonly [number, number] {
  const number = (text: string) => createHash('sha256').update(text).digest().readInt32BE();
  return [number(`jobs of ${schema}`), number(job)];
}

/**
 * The connection that a worker has as long as it lives. It listens for children whose runs are to stop: who wants that says
 * so until the tape of the child has ended, so that what is missed while the connection is lost comes again. And it locks
 * the jobs that the worker does. The server unlocks them when the process ends, however that comes, and the others see it.
 */
export class WorkerLine implements AsyncDisposable {
  readonly #connect: () => Promise<Client>;
  readonly #schema: string;
  readonly #onCancel: (session: string) => void;
  readonly #jobs: string[] = [];
  #isOver = false;
  #client: Client | undefined;
  /** A connection takes one statement after another. */
  #told: Promise<unknown> = Promise.resolve();
  #waiting: NodeJS.Timeout | undefined;
  #connecting: Promise<void>;

  constructor(
    connect: () => Promise<Client>,
    { schema, onCancel }: { readonly schema: string; readonly onCancel: (session: string) => void },
  ) {
    this.#connect = connect;
    this.#schema = schema;
    this.#onCancel = onCancel;
    this.#connecting = this.#open();
  }

  /** Locks a job until what this returns is called. */
  hold(job: string): () => void {
    this.#jobs.push(job);
    this.#tell('lock', job);
    return () => {
      this.#jobs.splice(this.#jobs.indexOf(job), 1);
      this.#tell('unlock', job);
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    clearTimeout(this.#waiting);
    await this.#connecting;
    await this.#client?.end().catch(() => {});
  }

  #tell(what: 'lock' | 'unlock', job: string): void {
    const name = what === 'lock' ? 'pg_try_advisory_lock' : 'pg_advisory_unlock';
    const client = this.#client;
    // A connection that is lost has unlocked all, and the next one locks what is done then.
    this.#told = this.#told
      .then(() => client?.query(`SELECT ${name}($1, $2)`, [...lockOf(this.#schema, job)]))
      .catch(() => {});
  }

  async #open(): Promise<void> {
    try {
      const client = await this.#connect();
      client.on('error', () => this.#again(client));
      client.on('end', () => this.#again(client));
      client.on('notification', ({ payload = '' }) => this.#onCancel(payload));
      this.#client = client;
      for (const job of this.#jobs) this.#tell('lock', job);
      await this.#told;
      await client.query(`LISTEN ${cancelChannel(this.#schema)}`);
    } catch {
      this.#again(this.#client);
    }
  }

  #again(lost: Client | undefined): void {
    if (lost !== this.#client || this.#isOver || this.#waiting !== undefined) return;
    this.#client = undefined;
    this.#waiting = setTimeout(() => {
      this.#waiting = undefined;
      this.#connecting = this.#open();
    }, againMs).unref();
  }
}
