import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, lstat, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crashPoint } from '../crash-point.ts';
import { TapeError } from '../errors.ts';
import { type Pack, type Packs, packName, packNumber, remoteError } from './packs.ts';

/** A pack that is being written, or was when its program was killed; and a number that is being given. */
const draftName = /^\.\d{8}\.[0-9a-f]{12}\.part$/;
/** After this time what a killed push left is removed. */
const draftMs = 24 * 3_600_000;
/** More files than a remote ever has: to read the names of endless ones would take all memory. */
const namesMax = 200_000;
const chunkBytes = 256 * 1024;

/** Packs as files of a directory, which may be mounted from elsewhere, or synced. */
export function directoryPacks(dir: string): Packs {
  return new DirectoryPacks(dir);
}

class DirectoryPacks implements Packs {
  readonly url: string;

  constructor(dir: string) {
    this.url = dir;
  }

  async list(): Promise<readonly Pack[]> {
    const names = await this.#reached('read', () => readdir(this.url));
    if (names.length > namesMax) throw this.#bad('read', `it has over ${namesMax} files`);
    if (names.includes('tape.db')) throw this.#bad('use', 'it is a tape home, and not a directory for packs');
    const packs: Pack[] = [];
    for (const name of names) {
      const number = packNumber(name);
      if (number === undefined) continue;
      const found = await this.#reached('read', () => lstat(join(this.url, name)), name);
      if (!found.isFile()) throw this.#bad('read', `'${name}' is ${wordFor(found)}, and no pack`, name);
      packs.push({ number, name, bytes: found.size });
    }
    return packs.sort((a, b) => a.number - b.number || (a.name < b.name ? -1 : 1));
  }

  async read({ name, bytes }: Pack, into: string): Promise<void> {
    const path = join(this.url, name);
    // A FIFO that took the place of the pack would block, and a link lead elsewhere.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    await using from = await this.#reached('read', () => open(path, flags), name);
    const found = await this.#reached('read', () => from.stat(), name);
    if (!found.isFile()) throw this.#bad('read', `'${name}' is ${wordFor(found)}, and no pack`, name);
    await using to = await local(into, () => open(into, 'wx', 0o600));
    let read = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes);
      const { bytesRead } = await this.#reached('read', () => from.read(chunk, 0, chunkBytes, read), name);
      if (bytesRead === 0) break;
      await local(into, () => writeAll(to, chunk.subarray(0, bytesRead)));
      read += bytesRead;
      if (read > bytes) break;
    }
    if (read !== bytes)
      throw this.#bad('read', `'${name}' has another size than before: ${bytes} bytes`, name);
  }

  async add(number: number, file: string): Promise<boolean> {
    const name = packName(number);
    const mode = await this.#made();
    const draft = join(this.url, `.${name.slice(0, 8)}.${randomBytes(6).toString('hex')}.part`);
    try {
      await this.#reached('write to', () => copied(file, draft, mode));
      crashPoint('directory/copied');
      const isAdded = await this.#reached('write to', () => named(draft, join(this.url, name)));
      crashPoint('directory/named');
      return isAdded;
    } finally {
      await unlink(draft).catch(() => undefined);
      await this.#swept();
    }
  }

  /** Makes the directory if it is missing. Returns the mode of its packs: who can read the directory can read them. */
  async #made(): Promise<number> {
    try {
      await mkdir(this.url, { mode: 0o700 });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // A push does not make the place of a disk that is not mounted.
      const why = `there is no directory '${dirname(this.url)}'`;
      if (code === 'ENOENT')
        throw remoteError('TAPE_REMOTE_FAILED', { act: 'write to', url: this.url, why }, { cause: error });
      if (code !== 'EEXIST') throw this.#failed('write to', error);
    }
    const { mode } = await this.#reached('write to', () => stat(this.url));
    return (mode & 0o444) | 0o600;
  }

  /** Removes what pushes left that were killed long ago. */
  async #swept(): Promise<void> {
    for (const name of await readdir(this.url).catch(() => []))
      if (draftName.test(name)) {
        const path = join(this.url, name);
        const found = await lstat(path).catch(() => undefined);
        if (found?.isFile() === true && Date.now() - found.mtimeMs > draftMs)
          await unlink(path).catch(() => undefined);
      }
  }

  async #reached<T>(act: string, of: () => Promise<T>, pack?: string): Promise<T> {
    try {
      return await of();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (pack !== undefined && code === 'ENOENT') throw this.#bad(act, `'${pack}' is gone`, pack);
      if (pack !== undefined && code === 'ELOOP')
        throw this.#bad(act, `'${pack}' is a symbolic link, and no pack`, pack);
      throw this.#failed(act, error);
    }
  }

  #failed(act: string, cause: unknown): TapeError {
    if (cause instanceof TapeError) return cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = { ENOENT: 'it does not exist', ENOTDIR: 'it is not a directory' }[code ?? ''] ?? message;
    return remoteError(
      'TAPE_REMOTE_FAILED',
      { act, url: this.url, why },
      { cause, ...(code === 'ENOENT' && { missing: true }) },
    );
  }

  #bad(act: string, why: string, pack?: string): TapeError {
    return remoteError(
      'TAPE_BAD_REMOTE',
      { act, url: this.url, why },
      { ...(pack !== undefined && { pack }) },
    );
  }
}

function wordFor(found: { isSymbolicLink(): boolean; isDirectory(): boolean; isFIFO(): boolean }): string {
  if (found.isSymbolicLink()) return 'a symbolic link';
  if (found.isDirectory()) return 'a directory';
  return found.isFIFO() ? 'a FIFO' : 'a device or socket';
}

/** An error of the file on this machine is not one of the remote. */
async function local<T>(file: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (cause) {
    throw new TapeError('TAPE_IO', `cannot write '${file}': ${(cause as Error).message}`, {
      data: { file },
      cause,
    });
  }
}

async function writeAll(to: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.byteLength; )
    at += (await to.write(chunk, at, chunk.byteLength - at)).bytesWritten;
}

/** Copies a file to a new one, which is on disk when this returns. */
async function copied(file: string, draft: string, mode: number): Promise<void> {
  await using from = await open(file, 'r');
  await using to = await open(draft, 'wx', mode);
  for (;;) {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const { bytesRead } = await from.read(chunk, 0, chunkBytes);
    if (bytesRead === 0) break;
    await writeAll(to, chunk.subarray(0, bytesRead));
  }
  await to.sync();
}

/** File systems without links say so in these ways. */
const hasNoLinks: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Gives a file the name of a pack; false when there is one of that name. */
async function named(draft: string, path: string): Promise<boolean> {
  try {
    // Unlike a rename, it never replaces a file.
    await link(draft, path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (!hasNoLinks.has(code)) throw error;
    if (!(await reserved(path))) return false;
    await rename(draft, path);
  }
  await synced(dirname(path));
  return true;
}

/**
 * Takes a name where there are no links: an empty file of another name is made by one alone. It stays where its push was
 * killed, and the number is then left out.
 */
async function reserved(path: string): Promise<boolean> {
  if ((await lstat(path).catch(() => undefined)) !== undefined) return false;
  try {
    await using _made = await open(`${path}.taken`, 'wx', 0o600);
    return (await lstat(path).catch(() => undefined)) === undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Has a listing written to disk, where the file system can. */
async function synced(dir: string): Promise<void> {
  try {
    await using listing = await open(dir, 'r');
    await listing.sync();
  } catch {
    // The pack is whole, and has its name: a loss of power may take the name away.
  }
}
