import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { Journal } from '@tapedeck/tape';
import { readLink } from './chain.ts';
import { quote } from './display.ts';
import { GraphError, reason, systemCode } from './errors.ts';
import { findTail, type Tail } from './tail.ts';

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

/** The file as it was when its tail was read or written; any difference means that somebody else was there. */
interface Seen {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly tail: Tail;
}

/**
 * `session_graph.jsonl` as the store's journal (B13, R6). Bytes that are in the file stay as they are: a tail
 * that a crash tore is ended with LF, never cut off. The store calls it under its write lock, so that one
 * process at a time writes; after an error, ask for the tail again before appending again.
 */
export class FileJournal implements Journal, Disposable {
  readonly #path: string;
  #fd: number | undefined;
  #seen: Seen | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * The end of the file: number and hash of the last record, 0 and 64 zeros when there is none. Costs one
   * `lstat` while nobody else touches the file; notices one that was removed, replaced or changed.
   * @throws GRAPH_IO
   */
  tail(): Tail {
    return this.#try('read', () => this.#look().tail);
  }

  /**
   * Appends lines, given without their LFs, and returns once they are on disk. A torn tail is sealed first,
   * also when there are no lines.
   * @throws GRAPH_IO when not all of it is known to be on disk, or when the file is no longer the one whose tail was read.
   */
  append(lines: readonly string[]): void {
    if (lines.some((line) => line.includes('\n'))) throw new TypeError('a line of the journal holds no LF');
    this.#try('append to', () => {
      const before = this.#seen;
      const now = this.#look();
      // Lines chosen for the old tail do not continue another file.
      if (before !== undefined && !continues(before, now)) throw new Error('it was changed by somebody else');
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

  /** Closes the file. Using the journal again opens it again. */
  close(): void {
    const fd = this.#fd;
    this.#fd = undefined;
    this.#seen = undefined;
    if (fd !== undefined) closeSync(fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** What is at the path now: as it was seen, or looked at anew. */
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

  /** After an append the last line written is the tail, if it is a record. */
  #remember(stat: Stats, line: string | undefined): void {
    const linked = line === undefined ? undefined : readLink(line);
    if (linked?.kind !== 'record') return;
    this.#keep(stat, { g: linked.link.g, hash: linked.link.hash, torn: false });
  }

  #keep({ dev, ino, size, mtimeMs }: Stats, tail: Tail): Seen {
    this.#seen = { dev, ino, size, mtimeMs, tail };
    return this.#seen;
  }

  #open(): number {
    if (this.#fd !== undefined) return this.#fd;
    const fd = openOwn(this.#path);
    this.#fd = fd;
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error('it is not a regular file');
    if (stat.nlink !== 1) throw new Error(`it has ${stat.nlink} names`);
    // A file that has no line yet may be new to its directory too.
    if (stat.size === 0) syncDirectory(dirname(this.#path));
    return fd;
  }

  /** After any failure nothing that is remembered of the file can be trusted. */
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
 * A journal for the graph file at a path. Nothing is opened or created before its first use, so this does
 * not fail.
 */
export function openJournal(path: string): FileJournal {
  return new FileJournal(path);
}

/** Opens the file, made with mode 0600 if need be. libuv adds CLOEXEC; NONBLOCK keeps a FIFO from holding us. */
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
      fchmodSync(fd, 0o600); // the umask may have taken bits away
      return fd;
    } catch (cause) {
      // Another process made it in between: open that one.
      if (systemCode(cause) !== 'EEXIST') throw cause;
    }
  }
}

/** One write may take less than all without an error, as on a disk that is almost full. */
function writeAll(fd: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) {
    const n = writeSync(fd, bytes, done, bytes.length - done, null);
    if (n === 0) throw new Error('nothing more could be written');
    done += n;
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

/** Whether the file ends as it did: the same file, with the same last record. */
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
    seen.mtimeMs === there.mtimeMs
  );
}
