import { parseName } from '../entry/name.ts';
import type { Journal } from '../lineage/line.ts';
import { drainOutbox } from '../lineage/outbox.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { Writer } from '../tape/append.ts';
import { getTape } from '../tape/find.ts';
import { type Lease, writeEpoch } from '../tape/lease.ts';
import type { Ref, TapeRow } from '../tape/tape.ts';

/** An open database with what all groups of a store use. */
export class Connection {
  readonly db: Db;
  readonly writer: Writer;
  /** Prefix of the names of the tapes. */
  readonly realm: string;
  readonly readonly: boolean;
  readonly #journal: Journal | undefined;

  constructor(
    writer: Writer,
    o: { readonly base: string; readonly journal: Journal | undefined; readonly readonly: boolean },
  ) {
    this.db = writer.db;
    this.writer = writer;
    this.realm = parseName(o.base);
    this.readonly = o.readonly;
    this.#journal = o.journal;
  }

  now(): number {
    return this.writer.sources.now();
  }

  /** @throws TAPE_NO_SESSION */
  need(ref: Ref): TapeRow {
    return getTape(this.db, this.realm, ref);
  }

  /**
   * Returns the epoch to write a tape under.
   * @throws TAPE_BUSY, TAPE_FENCED
   */
  epoch(tape: TapeRow, lease: Lease | undefined): number {
    return writeEpoch(this.db, tape, { lease, now: this.now() });
  }

  /** Appends missing lines to the graph file. */
  updateGraph(): void {
    if (this.#journal !== undefined) drainOutbox(this.db, this.#journal);
  }

  /**
   * Appends missing lines to the graph file after an act. The act is committed, so a failure only reports
   * `graphLagging`; the next open updates the file, or throws GRAPH_DIVERGED.
   */
  drainOutbox(): { readonly graphLagging?: true } {
    try {
      this.updateGraph();
      return {};
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (typeof code === 'string' && /^(?:TAPE|GRAPH)_/.test(code)) return { graphLagging: true };
      throw error;
    }
  }
}
