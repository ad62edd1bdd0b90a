import { createHash } from 'node:crypto';
import type { Sources } from '../clock.ts';
import {
  type Beside,
  type ChainedLine,
  type Db,
  type Params,
  Suspended,
  type Values,
  type Words,
} from '../db/db.ts';
import { doingFirst, type Watching, WriteCheck } from '../db/write-check.ts';
import { type Elsewhere, nothingElsewhere } from '../origin/elsewhere.ts';
import { Attempt, type SendNow } from './attempt.ts';
import { type Answered, type ServerClock, timeQuestion } from './clock.ts';
import { toStatement } from './dialect.ts';
import { mayRepeat, typed } from './errors.ts';
import type { Locks } from './locks.ts';
import type { Answer, Statement } from './pipeline.ts';

const plain = (sql: string): Statement => toStatement(sql);
const begin = plain('BEGIN');
const beginRead = plain('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
const commit = plain('COMMIT');
const rollback = plain('ROLLBACK');
const time = plain(timeQuestion);

/** How often a transaction that others stopped starts anew. */
const triesMax = 10;

const itemsOfAct = 1;

/** How a thread waits for answers: by `send`, under `locks`. */
export interface Blocking {
  readonly send: SendNow;
  readonly locks: Locks;
  readonly clock: ServerClock;
  told(): number;
  close(): void;
}

/**
 * The database of a home on a server, for the acts: they run in an attempt, which `during` sets. With `blocking` each
 * question and each transaction is an attempt of its own, whose answers the thread waits for.
 */
export class PostgresDb implements Db {
  readonly file: string;
  readonly elsewhere: Elsewhere = nothingElsewhere;
  /** Each page is a trip. */
  readonly pageRows: Db['pageRows'] = { first: 512, most: 512 };
  readonly hasFile = false;
  lockWaitMs = 0;
  commits = 0;
  #attempt: Attempt | undefined;
  #locks: Locks | undefined;
  readonly #writeCheck = new WriteCheck();
  /** What an act has done is done again in memory for each answer: with many items, many times. */
  readonly itemsOfAct: number | undefined;
  readonly #blocking: Blocking | undefined;

  constructor(address: string, blocking?: Blocking) {
    this.file = address;
    this.#blocking = blocking;
    this.itemsOfAct = blocking === undefined ? itemsOfAct : undefined;
  }

  /** Runs an act in an attempt, which writes under some locks. The act does not wait, so no other one runs meanwhile. */
  during<T>(attempt: Attempt, locks: Locks, act: () => T): T {
    this.#attempt = attempt;
    this.#locks = locks;
    attempt.run();
    try {
      return act();
    } finally {
      this.#attempt = undefined;
    }
  }

  /** The sources of an act: what it draws from them is part of its attempt. */
  sourcesOf({ now, uptime, newId, salt }: Sources): Sources {
    const drawn =
      <T>(draw: () => T) =>
      (): T =>
        this.#attempt === undefined ? draw() : this.#attempt.value(draw);
    return { now: drawn(now), uptime: drawn(uptime), newId: drawn(newId), salt: drawn(salt) };
  }

  get<Row>(sql: string, params?: Params | Values): Row | undefined {
    return this.#ask(toStatement(sql, params)).rows[0] as Row | undefined;
  }

  all<Row>(sql: string, params?: Params | Values): Row[] {
    return [...this.#ask(toStatement(sql, params)).rows] as Row[];
  }

  run(sql: string, params?: Params | Values): void {
    this.#write(toStatement(sql, params));
  }

  must(sql: string, params: Params | Values, orElse: () => Error): void {
    this.#write(toStatement(sql, params, 'must'), orElse);
  }

  insert(sql: string, params: Params | Values): number {
    // The id is drawn first: that question can be asked ahead, and the insert waits for the next trip.
    const table = /^INSERT INTO (\w+)/.exec(sql)?.[1] ?? '';
    const drawn = this.#ask(toStatement(`SELECT nextval('${table}_id_seq') AS id`));
    const { id } = drawn.rows[0] as { id: number };
    const isByPlace = Array.isArray(params);
    const withId = sql
      .replace(`INSERT INTO ${table} (`, `INSERT INTO ${table} (id, `)
      .replace('VALUES (', isByPlace ? 'VALUES (?, ' : 'VALUES (@drawnId, ');
    this.#write(toStatement(withId, isByPlace ? [id, ...(params as Values)] : { ...params, drawnId: id }));
    return id;
  }

  exec(sql: string): void {
    this.#write(toStatement(sql));
  }

  get words(): Words {
    return {
      add: ({ tapeId, seq }, words) => {
        if (words.length > 0)
          this.run(
            `INSERT INTO entry_text (id, words)
               SELECT id, array_to_tsvector(ARRAY(SELECT value FROM json_each(@words))) FROM entry
                 WHERE tape_id = @tapeId AND seq = @seq`,
            { tapeId, seq, words: JSON.stringify(words) },
          );
      },
      find: (words, { before, limit }) =>
        this.all(
          `SELECT e.id, e.tape_id, e.seq, e.kind, e.name, e.at, e.payload FROM entry_text t JOIN entry e ON e.id = t.id
             WHERE t.words @@ CAST(@query AS tsquery) AND e.id < @before ORDER BY e.id DESC LIMIT @limit`,
          { query: words.map((word) => `'${word}'`).join(' & '), before, limit },
        ),
    };
  }

  chainLine(row: ChainedLine, line: string): void {
    this.run(
      'SELECT add_line(@eventId, @type, @tape, @peer, CAST(@seq AS BIGINT), CAST(@to AS BIGINT), @before, @after)',
      { ...row, before: '{"v":1,"g":', after: line.slice('{"v":1,"g":0'.length, -'"}'.length) },
    );
  }

  runBeside({ sql, values }: Beside): void {
    const name = `beside_${createHash('sha256').update(sql).digest('hex').slice(0, 32)}`;
    this.#write({ text: sql, base: name, name, types: values.map(() => 0), values });
  }

  forgetWords(entries: readonly number[]): void {
    if (entries.length > 0)
      this.run('DELETE FROM entry_text WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))', [
        JSON.stringify(entries),
      ]);
  }

  write<T>(act: () => T): T {
    const { statements } = this.#blocking?.locks ?? this.#locks ?? { statements: [] };
    const watched = () => this.#writeCheck.run(act);
    const result = doingFirst(() => this.#transaction([begin, ...statements], act, watched));
    this.#writeCheck.committed();
    return result;
  }

  tryWrite<T>(act: () => T): T {
    return this.write(act);
  }

  writeThrough<T>(act: () => T): T {
    return this.write(act);
  }

  writeBehind<T>(act: () => T): T {
    return this.write(act);
  }

  writeAndWipe<T>(act: () => T): T {
    return this.write(act);
  }

  watched<T>(watching: Watching, act: () => T): T {
    return this.#writeCheck.during(watching, act);
  }

  read<T>(act: () => T): T {
    return this.#transaction([beginRead], act);
  }

  savepoint<T>(act: () => T): T {
    this.#write(plain('SAVEPOINT act'));
    try {
      const value = act();
      this.#write(plain('RELEASE SAVEPOINT act'));
      return value;
    } catch (error) {
      if (error instanceof Suspended) throw error;
      this.#write(plain('ROLLBACK TO SAVEPOINT act'));
      throw error;
    }
  }

  rewriteFile(): boolean {
    return false;
  }

  checkpoint(): boolean {
    return false;
  }

  dataVersion(): number {
    return this.#blocking?.told() ?? 0;
  }

  keepFewPages(): void {}

  close(): void {
    this.#blocking?.close();
  }

  #ask(statement: Statement): Answer {
    return this.#within((attempt) => attempt.ask(statement));
  }

  #write(statement: Statement, orElse?: () => Error): void {
    this.#within((attempt) => attempt.write(statement, orElse));
  }

  #transaction<T>(first: readonly Statement[], act: () => T, whole = act): T {
    return this.#within((attempt) => {
      if (attempt.isOpen) return act();
      attempt.begin(first);
      try {
        const value = whole();
        attempt.commit(commit);
        return value;
      } catch (error) {
        if (!(error instanceof Suspended)) attempt.rollback(rollback);
        throw error;
      }
    });
  }

  /** Does something in the attempt of the act, or in one of its own. */
  #within<T>(does: (attempt: Attempt) => T): T {
    if (this.#attempt !== undefined) return does(this.#attempt);
    const blocking = this.#blocking;
    if (blocking === undefined) throw new TypeError('a database on a server is used outside of an act');
    this.#measure(blocking);
    for (let tries = 1; ; tries += 1) {
      const attempt = new Attempt(undefined, blocking.send);
      try {
        const value = this.during(attempt, blocking.locks, () => does(attempt));
        attempt.flush();
        if (attempt.hasCommitted) this.commits += 1;
        return value;
      } catch (error) {
        this.#settle(attempt);
        if (attempt.hasCommitted || tries >= triesMax || !mayRepeat(error)) throw typed(this.file, error);
      }
    }
  }

  #measure({ clock, send }: Blocking): void {
    if (!clock.isDue) return;
    try {
      clock.measureNow(() => send([time])[0]?.rows[0] as Answered);
    } catch {
      // The act that follows finds out why, and says it.
    }
  }

  /** Sends the end of a transaction that failed. A connection that is lost has ended it. */
  #settle(attempt: Attempt): void {
    try {
      attempt.flush();
    } catch {}
  }
}
