/**
 * A database of tapes, as the acts of this package know it. Each act is a function of it and reads like a program over
 * SQLite: it asks, decides and writes. `sqlite` has the one that every home has by default. The statements keep to what
 * SQLite and PostgreSQL both understand, but for those of a file, which are in `sqlite`, `store` and `check`. Imports
 * `errors` and `origin`.
 */
import type { Elsewhere } from '../origin/elsewhere.ts';
import type { Watching } from './write-check.ts';

/** A value that a database stores. */
export type SqlValue = string | number | null | Uint8Array;
export type Params = Readonly<Record<string, SqlValue>>;
/** Parameters by position, as `?` in a statement: each costs half of what one by name does. For the hot paths. */
export type Values = readonly SqlValue[];

/**
 * Thrown through an act by a database that is elsewhere, when its answer is not there yet: the act runs again with it. What
 * catches errors of an act lets it pass.
 */
export class Suspended {
  /** `again`: with the answer. `anew`: the act did something else than the last time, and starts from its beginning. */
  readonly how: 'again' | 'anew';

  constructor(how: 'again' | 'anew') {
    this.how = how;
  }
}

/** The words of entries, in a database that keeps them with each entry. */
export interface Words {
  /** Keeps the words of the entry at a position. */
  add(entry: { readonly tapeId: number; readonly seq: number }, words: readonly string[]): void;
  /** Finds entries that have all of some words, newest first. */
  find(
    words: readonly string[],
    page: { readonly before: number; readonly limit: number },
  ): readonly { readonly id: number }[];
}

/** The columns of a lineage line. */
export type ChainedLine = Readonly<
  Record<'eventId' | 'type' | 'tape' | 'peer' | 'seq' | 'to', string | number | null>
>;

/** A statement on other tables of the same database, in the words of the database: its parameters are `$1`, `$2`, … */
export interface Beside {
  readonly sql: string;
  readonly values: readonly (string | null)[];
}

/** One connection of a store. */
export interface Db {
  /** Where it is, for errors: the path of a file. */
  readonly file: string;
  /** What it contained when it came to this user and machine. */
  readonly elsewhere: Elsewhere;
  /** How many entries a reader gets with one statement: with the first one, and at most. */
  readonly pageRows: { readonly first: number; readonly most: number };
  /**
   * How many items of an inbox one act takes, where an act runs again for each answer: the next act takes the others. Absent:
   * all.
   */
  readonly itemsOfAct?: number | undefined;
  /** How long an act blocks the thread to wait for a lock, in milliseconds. */
  lockWaitMs: number;
  /** Number of transactions that this connection has committed. */
  readonly commits: number;
  /** Returns the first row of an answer. */
  get<Row>(sql: string, params?: Params | Values): Row | undefined;
  all<Row>(sql: string, params?: Params | Values): Row[];
  run(sql: string, params?: Params | Values): void;
  /** Runs a statement that changes at least one row. If it changes none, the transaction fails with the error. */
  must(sql: string, params: Params | Values, orElse: () => Error): void;
  /** Runs an insert and returns the id of the row. */
  insert(sql: string, params: Params | Values): number;
  /** Runs statements that return nothing and have no parameters. */
  exec(sql: string): void;
  /** Absent where an index is filled later, by searches and ends of runs. */
  readonly words?: Words;
  /**
   * Adds a lineage line whose number and previous hash the database puts in, where it knows them better than the act:
   * `line` has the number 0 and an empty hash. Absent where the act looks them up.
   */
  chainLine?(row: ChainedLine, line: string): void;
  /** Runs a statement on other tables in the open transaction. Absent where there are none. */
  runBeside?(statement: Beside): void;
  /** Removes entries from the search index, which keeps bytes of their words until the file is wiped. */
  forgetWords(entries: readonly number[]): void;
  /** Runs `act` in one transaction, all or nothing, in which no other process writes what it reads. `act` awaits nothing. */
  write<T>(act: () => T): T;
  /** Like `write`, but throws TAPE_LOCKED when another connection holds the write lock for more than a moment. */
  tryWrite<T>(act: () => T): T;
  /**
   * Like `write`, and on the disk when it returns, with durability `fast` too: the caller writes to the graph file next,
   * and a power loss must not leave a line there that the database lost.
   */
  writeThrough<T>(act: () => T): T;
  /** Like `write`, without waiting for the disk: it survives a kill, but not a power loss. */
  writeBehind<T>(act: () => T): T;
  /** Like `write`, for what erases content: nothing is left of the bytes that it frees, as far as the database can. */
  writeAndWipe<T>(act: () => T): T;
  /**
   * Runs `act`, and calls `watching` for each of its transactions that write. One for which `before` throws `ToDoFirst` begins
   * anew.
   */
  watched<T>(watching: Watching, act: () => T): T;
  /** Runs `act`, whose reads all see one moment. */
  read<T>(act: () => T): T;
  /** Runs `act` inside the open transaction, in a savepoint: if it fails, only its own writes are undone. */
  savepoint<T>(act: () => T): T;
  /** Whether `rewriteFile` and `checkpoint` can do something: a server has files of its own. */
  readonly hasFile: boolean;
  /** Writes all content anew, so that nothing is left of what was erased; false where that cannot be done now. */
  rewriteFile(): boolean;
  /** Empties the log of writes; false when others need it. */
  checkpoint(): boolean;
  /** Keeps few pages in memory from now on: what is written next is large, and written once. */
  keepFewPages(): void;
  /** Returns a number that changes when another connection commits. */
  dataVersion(): number;
  close(): void;
}
