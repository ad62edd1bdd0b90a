/**
 * The writer of the graph file, for a store: each commit of the store appends the lines of its lineage. And the end
 * of the file, for readers.
 *
 * @module @tapedeck/graph/journal
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { Journal } from '@tapedeck/tape/store';
import { readLink } from './chain.ts';
import { FileComparison } from './compare.ts';
import { quote } from './display.ts';
import { GraphError, reason, systemCode } from './errors.ts';
import { findTail, type Tail } from './tail.ts';

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

export { tailOf } from './tail.ts';

/** The file when its tail was last read or written; any difference means that another process changed it. */
interface Seen {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly tail: Tail;
}

/**
 * `session_graph.jsonl` as the journal of the store. Never changes existing bytes: a tail torn by a crash is
 * ended with LF, not cut off. The store calls it under its write lock, so that one process writes at a time.
 * After an error, call `tail` before the next `append`.
 *
 * @example
 * ```ts
 * import { FileJournal } from '@tapedeck/graph/journal';
 *
 * using journal = new FileJournal('session_graph.jsonl');
 * console.log(journal.tail().g); // 0
 * ```
 */
export class FileJournal implements Journal, Disposable {
  readonly #path: string;
  #fd: number | undefined;
  #seen: Seen | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Number and hash of the last record; 0 and 64 zeros for an empty file. Costs one `lstat` while no other
   * process changes the file; detects a removed, replaced or changed file.
   * @throws GRAPH_IO
   */
  tail(): Tail {
    return this.#try('read', () => this.#look().tail);
  }

  /**
   * Appends lines, given without their LFs, and returns once they are on disk. Seals a torn tail first, even
   * without lines.
   * @throws GRAPH_IO when a line may not be on disk, or the file changed since its tail was read
   */
  append(lines: readonly string[]): void {
    if (lines.some((line) => line.includes('\n')))
      throw new TypeError('a line of the journal must not contain LF');
    this.#try('append to', () => {
      const before = this.#seen;
      const now = this.#look();
      // The lines continue the old tail, not that of a changed file.
      if (before !== undefined && !continues(before, now)) throw new Error('another process changed it');
      const text = (now.tail.torn ? '\n' : '') + lines.map((line) => `${line}\n`).join('');
      if (text === '') return;
      const fd = this.#open();
      this.#seen = undefined;
      const bytes = Buffer.from(text);
      writeAll(fd, bytes);
      fdatasyncSync(fd);
      const stat = fstatSync(fd);
      if (stat.size === now.size + bytes.length) this.#remember(stat, lines.at(-1));
    });
  }

  /**
   * Renames the file to `NAME.aside-` and the first eight digits of its SHA-256, so that the next `append` begins
   * a new file. Never replaces a file: the same bytes a second time get the ending `.2`.
   * @returns the new path
   * @throws GRAPH_IO
   */
  setAside(): string {
    return this.#try('set aside', () => {
      const aside = freeName(`${this.#path}.aside-${digestOf(this.#open()).slice(0, 8)}`);
      this.close();
      renameSync(this.#path, aside);
      syncDirectory(dirname(this.#path));
      return aside;
    });
  }

  /**
   * A text that changes whenever the file does: its device, inode number, size, and times of the last change.
   * @throws GRAPH_IO
   */
  stamp(): string {
    return this.#try('read', () => {
      const { dev, ino, size, mtimeMs, ctimeMs } = this.#look();
      return [dev, ino, size, mtimeMs, ctimeMs].join(' ');
    });
  }

  /**
   * Whether the records of the file are the first of these lines, or all of them.
   * @throws GRAPH_IO when the file cannot be read, which says nothing of its records
   */
  holds(lines: Iterable<string>): boolean {
    using comparison = new FileComparison(this.#path);
    for (const line of lines) comparison.expect(line);
    const { standing, fault } = comparison;
    if (standing === 'unreadable') throw new GraphError('GRAPH_IO', fault ?? '');
    return standing === 'same' || standing === 'behind';
  }

  /** Closes the file. The next use of the journal opens it again. */
  close(): void {
    const fd = this.#fd;
    this.#fd = undefined;
    this.#seen = undefined;
    if (fd !== undefined) closeSync(fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** The current file: as remembered if it did not change, else with its tail read again. */
  #look(): Seen {
    const there = lstatSync(this.#path, { throwIfNoEntry: false });
    if (this.#seen !== undefined && there !== undefined && same(this.#seen, there)) return this.#seen;
    if (this.#fd !== undefined) {
      const open = fstatSync(this.#fd);
      if (there === undefined || open.dev !== there.dev || open.ino !== there.ino) this.close();
    }
    const fd = this.#open();
    const stat = fstatSync(fd);
    return this.#keep(stat, findTail(fd, stat.size));
  }

  /** Remembers the last appended line as the tail, if it is a record. */
  #remember(stat: Stats, line: string | undefined): void {
    const linked = line === undefined ? undefined : readLink(line);
    if (linked?.kind !== 'record') return;
    this.#keep(stat, { g: linked.link.g, hash: linked.link.hash, torn: false });
  }

  #keep({ dev, ino, size, mtimeMs, ctimeMs }: Stats, tail: Tail): Seen {
    this.#seen = { dev, ino, size, mtimeMs, ctimeMs, tail };
    return this.#seen;
  }

  #open(): number {
    if (this.#fd !== undefined) return this.#fd;
    const fd = openOwn(this.#path);
    this.#fd = fd;
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error('it is not a regular file');
    if (stat.nlink !== 1) throw new Error(`it has ${stat.nlink} names`);
    // The directory entry of an empty file may not be on disk yet.
    if (stat.size === 0) syncDirectory(dirname(this.#path));
    return fd;
  }

  /**
   * Calls `act`. After a failure closes the file, as the remembered state may be wrong, and throws GRAPH_IO.
   */
  #try<T>(what: string, act: () => T): T {
    try {
      return act();
    } catch (cause) {
      this.close();
      throw new GraphError('GRAPH_IO', `cannot ${what} graph ${quote(this.#path)}: ${reason(cause)}`, {
        cause,
      });
    }
  }
}

/**
 * Makes a journal for the graph file at a path. Opens or creates the file on first use, so this does not
 * throw.
 *
 * @example
 * ```ts
 * import { openJournal } from '@tapedeck/graph/journal';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore('.tape/tape.db', { journal: openJournal('.tape/session_graph.jsonl') });
 * store.sessions.open('main');
 * ```
 */
export function openJournal(path: string): FileJournal {
  return new FileJournal(path);
}

/** Opens the file, or creates it with mode 0600. libuv adds CLOEXEC; NONBLOCK avoids blocking on a FIFO. */
function openOwn(path: string): number {
  const flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK;
  for (;;) {
    try {
      return openSync(path, flags);
    } catch (cause) {
      if (systemCode(cause) !== 'ENOENT') throw cause;
    }
    try {
      const fd = openSync(path, flags | O_CREAT | O_EXCL, 0o600);
      fchmodSync(fd, 0o600); // the umask may have removed bits
      return fd;
    } catch (cause) {
      // Another process created it in between: open that file.
      if (systemCode(cause) !== 'EEXIST') throw cause;
    }
  }
}

/** Writes all bytes. One write may write fewer without an error, as on an almost full disk. */
function writeAll(fd: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) {
    const n = writeSync(fd, bytes, done, bytes.length - done, null);
    if (n === 0) throw new Error('the write made no progress');
    done += n;
  }
}

/** The SHA-256 of an open file, in hex. */
function digestOf(fd: number): string {
  const sum = createHash('sha256');
  const buffer = Buffer.allocUnsafe(1 << 20);
  for (let at = 0; ; ) {
    const n = readSync(fd, buffer, 0, buffer.length, at);
    if (n === 0) return sum.digest('hex');
    sum.update(buffer.subarray(0, n));
    at += n;
  }
}

function freeName(name: string): string {
  for (let n = 1; ; n += 1) {
    const free = n === 1 ? name : `${name}.${n}`;
    if (lstatSync(free, { throwIfNoEntry: false }) === undefined) return free;
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, O_RDONLY | O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Whether it is the same file with the same last record. */
function continues(before: Seen, now: Seen): boolean {
  return (
    before.dev === now.dev &&
    before.ino === now.ino &&
    before.tail.hash === now.tail.hash &&
    before.tail.torn === now.tail.torn
  );
}

function same(seen: Seen, there: Stats): boolean {
  return (
    seen.dev === there.dev &&
    seen.ino === there.ino &&
    seen.size === there.size &&
    seen.mtimeMs === there.mtimeMs &&
    seen.ctimeMs === there.ctimeMs
  );
}
