import { readFileSync } from 'node:fs';
import { type FileJournal, openJournal } from '@tapedeck/graph/journal';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { graphDifferences } from '../graph-agrees.ts';
import { rawDb } from '../raw-db.ts';
import { tempDir } from '../temp-dir.ts';

interface Handle {
  readonly store: SqliteTapeStore;
  readonly journal: FileJournal;
}

/** Several open handles on one home, each with a journal of its own. */
export class Handles implements Disposable {
  readonly #dir = tempDir();
  readonly #open: Handle[];

  constructor(count: number) {
    this.#open = Array.from({ length: count }, () => this.#openOne());
    this.at(0).sessions.open('main');
  }

  /** The handle at an index, which is taken modulo how many there are. */
  at(index: number): SqliteTapeStore {
    const handle = this.#open[index % this.#open.length];
    if (handle === undefined) throw new TypeError('there are no handles');
    return handle.store;
  }

  reopen(index: number): void {
    const at = index % this.#open.length;
    const [old] = this.#open.splice(at, 1, this.#openOne());
    if (old !== undefined) close(old);
  }

  /** The faults of the whole home. */
  faults(): string[] {
    using db = rawDb(this.#dir.file('tape.db'));
    return [
      ...[...this.at(0).verify()].map(({ code, message }) => `${code}: ${message}`),
      ...[...this.at(0).examine()].map(({ code, message }) => `${code}: ${message}`),
      ...graphDifferences(readFileSync(this.#dir.file('graph.jsonl'), 'utf8'), db),
    ];
  }

  [Symbol.dispose](): void {
    for (const handle of this.#open) close(handle);
    this.#dir[Symbol.dispose]();
  }

  #openOne(): Handle {
    const journal = openJournal(this.#dir.file('graph.jsonl'));
    return { journal, store: openTapeStore(this.#dir.file('tape.db'), { journal, durability: 'fast' }) };
  }
}

function close({ store, journal }: Handle): void {
  store.close();
  journal.close();
}
