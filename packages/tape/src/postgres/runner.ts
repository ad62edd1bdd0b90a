import type { Client, Pool, PoolClient } from 'pg';
import { Suspended } from '../db/db.ts';
import { Leftovers, nothing } from './assume.ts';
import { Attempt } from './attempt.ts';
import { type Answered, type ServerClock, timeQuestion } from './clock.ts';
import type { PostgresDb } from './db.ts';
import { isLost, isStale, mayRepeat, typed } from './errors.ts';
import { Habits } from './habits.ts';
import { type HomeLocks, type Locks, notFound } from './locks.ts';
import { idOf, type Stopped, sendAll, type Value } from './pipeline.ts';

/** How often an act starts anew that others stopped, before it gives up. */
const triesMax = 10;

/** Thrown when the server has stopped at a guess: the act runs anew without any. */
const misguessed = Symbol('a guess was no question that the server can answer');

/** Thrown when an assumed answer was another one: the act runs anew and asks. */
const misassumed = Symbol('an assumed answer was another one');

interface RunOptions {
  /** The kind of the act: its method. Acts of one kind ask nearly the same each time. */
  readonly kind?: string;
  /** The session that it is about, as the call names it. */
  readonly about?: string;
  readonly given?: readonly Value[];
  /** Default: it is alone in the home. */
  readonly locks?: Locks;
  /** The caller owns the session: what an act leaves is what the next one finds. */
  readonly isOwner?: boolean;
}

/** Runs acts on the connections of a pool. */
export class Runner {
  readonly #pool: Pool;
  readonly #db: PostgresDb;
  readonly #locks: HomeLocks;
  readonly #clock: ServerClock;
  readonly #habits = new Habits();
  readonly #leftovers = new Leftovers();

  constructor({
    pool,
    db,
    locks,
    clock,
  }: {
    readonly pool: Pool;
    readonly db: PostgresDb;
    readonly locks: HomeLocks;
    readonly clock: ServerClock;
  }) {
    this.#pool = pool;
    this.#db = db;
    this.#locks = locks;
    this.#clock = clock;
  }

  /** Runs an act, again with each answer that it needs, until it ends. */
  async run<T>(
    act: () => T,
    { kind = '', about, given, locks: wanted = this.#locks.alone, isOwner = false }: RunOptions = {},
  ): Promise<T> {
    const called = { kind, about, given };
    let locks = wanted;
    let assumes = true;
    for (let tries = 1; ; tries += 1) {
      const left = isOwner ? this.#leftovers.of(about) : undefined;
      const attempt = new Attempt({
        guess: (progress) => this.#habits.ahead(called, progress),
        ...(assumes && {
          assume: (statement, progress) =>
            left?.get(idOf(statement))?.answer ??
            (this.#habits.misses(called, statement, progress) ? nothing : undefined),
        }),
        ...(isOwner && assumes && { leaves: [...(left?.values() ?? [])].map(({ question }) => question) }),
      });
      try {
        const value = await this.#alone(attempt, locks, act);
        if (kind !== '') this.#habits.learn(called, attempt.asked);
        if (attempt.hasCommitted) {
          this.#db.commits += 1;
          if (about !== undefined) this.#leftovers.keep(about, attempt.left);
        } else this.#leave(about, attempt);
        return value;
      } catch (error) {
        if (error === misguessed && !attempt.hasCommitted) {
          this.#habits.forget({ kind });
          continue;
        }
        // A newer build has added to the schema, and the connection is gone.
        if (isStale(error) && !attempt.hasCommitted) continue;
        // Where the connection was lost, the act may have been committed.
        const isRefused = assumes && attempt.isDoubtful && !isLost(error);
        if ((error === misassumed || isRefused) && !attempt.hasCommitted) {
          this.#leftovers.forget(about);
          assumes = false;
          continue;
        }
        if ((error as { code?: unknown }).code === notFound && !attempt.hasCommitted) {
          // The session has another name than the one that it was asked by: an alias, or the beginning of its id.
          locks = this.#locks.alone;
          continue;
        }
        if (attempt.hasCommitted || tries >= triesMax || !(error instanceof Suspended || mayRepeat(error)))
          throw typed(this.#db.file, error);
      }
    }
  }

  /**
   * Yields what an act yields that only reads. It runs again for each answer, and what it has yielded before is left out: for
   * acts with few questions.
   */
  async *iterate<T>(act: () => Iterable<T>): AsyncGenerator<T, void> {
    let attempt = new Attempt();
    let yielded = 0;
    for (let isOver = false; !isOver; ) {
      const found: T[] = [];
      const client = await this.#connect();
      let failed: unknown;
      try {
        isOver = await this.#step(client, { attempt, locks: this.#locks.alone }, () => {
          let at = 0;
          found.length = 0;
          for (const item of act()) {
            if (at >= yielded) found.push(item);
            at += 1;
          }
        });
      } catch (error) {
        failed = error;
        if (!isStale(error)) throw typed(this.#db.file, error);
        attempt = new Attempt();
      } finally {
        client.release(isLost(failed) || isStale(failed));
      }
      yielded += found.length;
      yield* found;
    }
  }

  /** Leaves what an act that only read has found. */
  #leave(about: string | undefined, { asked }: Attempt): void {
    if (about === undefined) return;
    this.#leftovers.add(
      about,
      asked.map(({ statement: question, answer }) => ({ question, answer })),
    );
  }

  async #alone<T>(attempt: Attempt, locks: Locks, act: () => T): Promise<T> {
    const client = await this.#connect();
    let failed: unknown;
    try {
      let value: T | undefined;
      while (
        !(await this.#step(client, { attempt, locks }, () => {
          value = act();
        }))
      );
      return value as T;
    } catch (error) {
      failed = error;
      throw error;
    } finally {
      client.release(isLost(failed) || isStale(failed));
    }
  }

  /** Runs an act once, and sends what it needs. True: it has ended. */
  async #step(
    client: PoolClient,
    { attempt, locks }: { readonly attempt: Attempt; readonly locks: Locks },
    act: () => void,
  ): Promise<boolean> {
    let failed: { readonly error: unknown } | undefined;
    try {
      this.#db.during(attempt, locks, act);
    } catch (error) {
      if (!(error instanceof Suspended && error.how === 'again')) failed = { error };
    }
    const statements = attempt.take();
    if (statements.length > 0)
      try {
        attempt.answered(await sendAll(client as unknown as Client, statements));
      } catch (stopped) {
        await client.query('ROLLBACK').catch(() => {});
        if (attempt.isBeside(stopped as Stopped) && !isLost((stopped as Stopped).error)) throw misassumed;
        throw attempt.isGuess(stopped as Stopped) ? misguessed : attempt.stopped(stopped as Stopped);
      }
    if (attempt.waits) return false;
    if (failed !== undefined) {
      if (attempt.isOpen) await client.query('ROLLBACK').catch(() => {});
      throw failed.error;
    }
    return true;
  }

  async #connect(): Promise<PoolClient> {
    let client: PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      if (this.#clock.isDue) await this.#measure(client);
      return client;
    } catch (error) {
      client?.release(isLost(error));
      throw typed(this.#db.file, error);
    }
  }

  async #measure(client: PoolClient): Promise<void> {
    await this.#clock.measure(async () => {
      const { rows } = await client.query<Answered>(timeQuestion);
      return rows[0] as Answered;
    });
  }
}
