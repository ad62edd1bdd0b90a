import type { Clock } from '../clock.ts';
import type { Db } from '../db/db.ts';
import { parseBase } from '../entry/name.ts';
import type { GraphReceipt, Journal } from '../lineage/line.ts';
import { drainOutbox, type GraphUpdate } from '../lineage/outbox.ts';
import type { Writer } from '../tape/append.ts';
import { findTape, getTape } from '../tape/find.ts';
import { type AppendHead, getHead, type TapeHead } from '../tape/head.ts';
import { type Lease, writeEpoch } from '../tape/lease.ts';
import type { Ref, TapeRow } from '../tape/tape.ts';

/** The graph file, as the updates of one connection left it. */
export interface GraphFileState {
  /** It lacks lines, because it cannot be written. */
  readonly lagging: boolean;
  /** It has other lines than the database, and cannot be set aside. */
  readonly blocked: boolean;
  /** Names that files with other lines were moved to. */
  readonly aside: readonly string[];
}

/** What the connections of all realms know of the graph file. */
interface GraphState {
  file: GraphFileState;
  /** A file was set aside, and no receipt has said so. */
  asideUnreported: boolean;
}

/** An open database with what all groups of a store use. */
export class Connection {
  readonly db: Db;
  readonly writer: Writer;
  /** Prefix of the names of the tapes. */
  readonly realm: string;
  readonly readonly: boolean;
  readonly #journal: Journal | undefined;
  /** Shared by the connections of all realms. */
  readonly #graph: GraphState;

  constructor(
    writer: Writer,
    o: { readonly base: string; readonly journal: Journal | undefined; readonly readonly: boolean },
    graph: GraphState = { file: { lagging: false, blocked: false, aside: [] }, asideUnreported: false },
  ) {
    this.#graph = graph;
    this.db = writer.db;
    this.writer = writer;
    this.realm = parseBase(o.base);
    this.readonly = o.readonly;
    this.#journal = o.journal;
  }

  /** The same connection for the sessions of another realm. */
  inRealm(base: string): Connection {
    return new Connection(
      this.writer,
      { base, journal: this.#journal, readonly: this.readonly },
      this.#graph,
    );
  }

  now(): number {
    return this.writer.sources.now();
  }

  /** The clocks that leases expire by. */
  get clock(): Clock {
    return this.writer.sources;
  }

  /** @throws TAPE_NO_SESSION */
  need(ref: Ref): TapeRow {
    return getTape(this.db, this.realm, ref);
  }

  /** @throws TAPE_NO_SESSION */
  head(ref: Ref): AppendHead {
    return getHead(this.db, this.realm, ref);
  }

  /** Returns the name of a session when an error message needs it; the caller's word, if there is no such session. */
  named(ref: Ref): () => string {
    return () => findTape(this.db, this.realm, ref)?.name ?? String(ref);
  }

  /**
   * Returns the epoch to write a tape under.
   * @throws TAPE_BUSY, TAPE_FENCED
   */
  epoch(tape: TapeHead, lease: Lease | undefined): number {
    return writeEpoch(this.db, tape, { lease, clock: this.clock });
  }

  /** What this connection has found and done to the graph file since it was opened. */
  get graphFile(): GraphFileState {
    return this.#graph.file;
  }

  /**
   * Brings the graph file up to date: appends missing lines, and sets aside a file with other lines. A file that
   * cannot be written now only lags.
   * @throws GRAPH_DIVERGED
   */
  updateGraph(): void {
    this.#update(/^GRAPH_IO$/);
  }

  /**
   * Updates the graph file after an act, and returns what the act's receipt says about it. The act is committed,
   * so a failure of the database only reports that the file lags, too.
   */
  drainOutbox(): GraphReceipt {
    this.#update(/^(?:TAPE|GRAPH)_/);
    return this.graphReceipt();
  }

  /** What a receipt says about the graph file: that it lags, and, once, that it was found to differ. */
  graphReceipt(): GraphReceipt {
    const { lagging, blocked } = this.#graph.file;
    const diverged = this.#graph.asideUnreported || blocked;
    this.#graph.asideUnreported = false;
    return {
      ...(lagging && ({ graphLagging: true } as const)),
      ...(diverged && ({ graphDiverged: true } as const)),
    };
  }

  /** Updates the graph file. An error whose code matches `lagging` says only that it lags. */
  #update(lagging: RegExp): void {
    if (this.#journal === undefined) return;
    try {
      this.#note(drainOutbox(this.db, this.#journal));
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (typeof code !== 'string' || !lagging.test(code)) throw error;
      this.#graph.file = { ...this.#graph.file, lagging: true };
    }
  }

  #note({ aside, ...update }: GraphUpdate): void {
    const blocked = update.blocked === true;
    const before = this.#graph.file;
    if (aside !== undefined) this.#graph.asideUnreported = true;
    this.#graph.file = {
      lagging: blocked || update.lagging === true,
      blocked,
      aside: aside === undefined ? before.aside : [...before.aside, aside],
    };
  }
}
