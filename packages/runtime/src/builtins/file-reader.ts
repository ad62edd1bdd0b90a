import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import type { FilePlace } from '../tools/file-place.ts';

/** A file that is open, and its content. */
export interface ReadFile {
  /** Its path from the top of the workspace. */
  readonly file: string;
  readonly bytes: Buffer;
  readonly fd: number;
}

/** Reads files below a directory, one after another, with few calls of the system. */
export class FileReader {
  /** How many files were not read. */
  large = 0;
  unreadable = 0;
  readonly #top: string;
  readonly #fileBytes: number;
  readonly #place: FilePlace;
  readonly #buffer = Buffer.allocUnsafeSlow(256 * 1024);

  constructor(top: string, { fileBytes, place }: { readonly fileBytes: number; readonly place: FilePlace }) {
    this.#top = top;
    this.#fileBytes = fileBytes;
    this.#place = place;
  }

  /**
   * Opens a file and reads it; undefined for one that cannot be read or is too large. The caller closes it.
   * @param isKept whether its bytes are used after the next file was read
   */
  read(file: string, isKept: boolean): ReadFile | undefined {
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    let fd: number | undefined;
    try {
      fd = openSync(this.#pathOf(file), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      const bytes = this.#contentOf(fd, isKept);
      if (bytes !== undefined) return { file, bytes, fd };
      this.large += 1;
    } catch {
      this.unreadable += 1;
    }
    if (fd !== undefined) closeSync(fd);
    return undefined;
  }

  close({ fd }: ReadFile): void {
    closeSync(fd);
  }

  /**
   * Whether what was read is a regular file at that path, so that no directory on its way was a link, and the rules let the
   * call read it.
   */
  isAllowed({ file, fd }: ReadFile): boolean {
    const path = this.#pathOf(file);
    const { mayReach } = this.#place;
    try {
      return fstatSync(fd).isFile() && isAt(fd, path) && (mayReach === undefined || mayReach('read', path));
    } catch {
      return false;
    }
  }

  #pathOf(file: string): string {
    return `${this.#top === '/' ? '' : this.#top}/${file}`;
  }

  /** Undefined for a file that is too large. */
  #contentOf(fd: number, isKept: boolean): Buffer | undefined {
    const count = readSync(fd, this.#buffer, 0, this.#buffer.length, null);
    const first = this.#buffer.subarray(0, count);
    if (count < this.#buffer.length) return isKept ? Buffer.from(first) : first;
    const { size } = fstatSync(fd);
    if (size > this.#fileBytes) return undefined;
    const whole = Buffer.alloc(Math.max(size, count));
    let at = first.copy(whole);
    for (let more = 1; more > 0 && at < whole.length; at += more)
      more = readSync(fd, whole, at, whole.length - at, null);
    return whole.subarray(0, at);
  }
}

/** Whether an open file has this real path. */
function isAt(fd: number, path: string): boolean {
  if (process.platform === 'linux') return readlinkSync(`/proc/self/fd/${fd}`) === path;
  const [opened, there] = [fstatSync(fd), statSync(path)];
  return opened.ino === there.ino && opened.dev === there.dev && realpathSync.native(path) === path;
}
