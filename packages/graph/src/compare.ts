import type { LineageLine } from '@tapedeck/tape/store';
import { beginsAsRecord, readLink } from './chain.ts';
import { GraphError } from './errors.ts';
import { type Line, readLines } from './lines.ts';

/**
 * How a graph file compares with its database: it has every line; it lacks the last ones, or all; one of its lines is
 * another; or it cannot be read.
 */
export type Standing = 'same' | 'behind' | 'differs' | 'unreadable';

/**
 * Compares a graph file, line by line, with the lines of its database, which it receives in order. Fragments that a
 * crash left in the file do not count. Reads the file as it goes, and stops at the first difference.
 *
 * @example
 * ```ts
 * import { FileComparison } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 * import { encodeLine } from '@tapedeck/tape/store';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const comparison = new FileComparison('session_graph.jsonl');
 * for (const line of store.lineage.read()) comparison.expect(encodeLine(line));
 * console.log(comparison.standing); // behind
 * ```
 */
export class FileComparison implements Disposable {
  readonly #lines: Generator<Line, void, undefined>;
  #next: Line | undefined;
  #standing: Standing = 'same';
  #line: number | undefined;
  #fault: string | undefined;

  /** A missing file compares as an empty one. */
  constructor(path: string) {
    this.#lines = readLines(path);
  }

  /** Compares the next line of the database, without its LF, with the next record of the file. */
  expect(text: string): void {
    if (this.#standing !== 'same') return;
    const found = this.#take(text);
    if (found === undefined) this.#standing = this.#fault === undefined ? 'behind' : 'unreadable';
    else if (textOf(found) !== text) this.#differ(found);
  }

  /** Whether the file has a record after those that were compared: one that was written meanwhile, or a foreign one. */
  get hasMore(): boolean {
    if (this.#standing !== 'same') return false;
    this.#next = this.#take();
    if (this.#fault !== undefined) this.#standing = 'unreadable';
    return this.#next !== undefined;
  }

  /** The result, once every line of the database was received. */
  get standing(): Standing {
    if (this.hasMore && this.#next !== undefined) this.#differ(this.#next);
    return this.#standing;
  }

  /** Number of the line of the file that is another, from 1; undefined while none was found. */
  get line(): number | undefined {
    return this.#line;
  }

  /** Why the file cannot be read; undefined while it can. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Closes the file. */
  [Symbol.dispose](): void {
    this.#lines.return();
  }

  #differ({ number }: Line): void {
    this.#standing = 'differs';
    this.#line = number;
  }

  /** The next line that is no fragment; a line with the expected text is not a fragment, so most lines are not parsed. */
  #take(expected?: string): Line | undefined {
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined) return next;
    try {
      for (const line of remaining(this.#lines))
        if ((expected !== undefined && textOf(line) === expected) || !isFragment(line)) return line;
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      this.#fault = error.message;
    }
    return undefined;
  }
}

/**
 * Yields the lines of a database, and compares each with the file. `read` reads them from a number on; it is called
 * again while another process adds lines to both. `encode` makes the text of a line, without its LF.
 *
 * @example
 * ```ts
 * import { comparing, FileComparison, SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 * import { encodeLine } from '@tapedeck/tape/store';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const comparison = new FileComparison('session_graph.jsonl');
 * const read = (from: number) => store.lineage.read({ from });
 * const graph = SessionGraph.fromRecords(comparing(comparison, { read, encode: encodeLine }));
 * console.log(graph.list().length, comparison.standing); // 1 behind
 * ```
 */
export function* comparing(
  comparison: FileComparison,
  {
    read,
    encode,
  }: {
    readonly read: (from: number) => Iterable<LineageLine>;
    readonly encode: (line: LineageLine) => string;
  },
): Generator<LineageLine, void, undefined> {
  let next = 1;
  for (let from = 0; from !== next && (next === 1 || comparison.hasMore); ) {
    from = next;
    for (const line of read(from)) {
      comparison.expect(encode(line));
      next = line.g + 1;
      yield line;
    }
  }
}

/** The lines that a generator has left. Unlike a loop over the generator itself, it can be left and continued. */
function* remaining(lines: Generator<Line, void, undefined>): Generator<Line, void, undefined> {
  for (
    let { value, done } = lines.next();
    done !== true && value !== undefined;
    { value, done } = lines.next()
  )
    yield value;
}

function textOf(line: Line): string | undefined {
  return line.kind === 'bad' ? undefined : line.text;
}

/** Whether a line is what a crash may have left: less than a record, NULs in its place, or nothing. */
function isFragment(line: Line): boolean {
  if (line.kind === 'bad' || (line.kind === 'torn' && line.text?.endsWith('}') !== true))
    return line.isFragment;
  if (line.text === undefined) return false;
  return readLink(line.text).kind === 'fragment' && beginsAsRecord(Buffer.from(line.text));
}
