import { type BigIntStats, closeSync, constants, fstatSync, openSync } from 'node:fs';

/** How many files are open at once: a system may give a process no more than 256, and a session can have thousands of files. */
const openMax = 64;

/** Those that are open, the one first that was used longest ago. */
const inUse = new Set<Descriptor>();

/** A file that is open while it is read, and may be closed while many others are. */
export class Descriptor {
  readonly path: string;
  /** What the system said of it when it was opened first. */
  readonly stat: BigIntStats;
  #fd: number | undefined;

  /** Opens a file, and follows links to it; a pipe is not waited for. */
  constructor(path: string) {
    this.path = path;
    this.#fd = opened(path);
    try {
      this.stat = fstatSync(this.#fd, { bigint: true });
    } catch (error) {
      closeSync(this.#fd);
      throw error;
    }
    this.#use();
  }

  /** @throws Error where another file has its path since it was closed */
  get fd(): number {
    const fd = this.#fd ?? this.#again();
    this.#fd = fd;
    this.#use();
    return fd;
  }

  close(): void {
    inUse.delete(this);
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #use(): void {
    inUse.delete(this);
    inUse.add(this);
    const [first] = inUse;
    if (inUse.size > openMax) first?.close();
  }

  #again(): number {
    const fd = opened(this.path);
    const { dev, ino, birthtimeNs } = fstatSync(fd, { bigint: true });
    if (dev === this.stat.dev && ino === this.stat.ino && birthtimeNs === this.stat.birthtimeNs) return fd;
    closeSync(fd);
    throw new Error('it was replaced while it was read');
  }
}

function opened(path: string): number {
  // Without a writer, opening a pipe would wait for one; Windows has neither flag.
  return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0));
}
