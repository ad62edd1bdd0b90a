import { randomBytes } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, unlink } from 'node:fs/promises';
import type { FilePlace } from '../tools/file-place.ts';
import { asBuiltin, BuiltinError } from './errors.ts';
import { type HeldDirectory, holdName } from './held-directory.ts';
import { fileAt, isSame } from './open-file.ts';

/** How a file gets a new content. */
export interface Replacement {
  readonly path: string;
  /** As errors name it: `write 'a.txt'`. */
  readonly act: string;
  /** Writes the content to a new file. */
  readonly write: (handle: FileHandle) => Promise<void>;
  /** Refuses the file that is there before anything is written. */
  readonly accept?: (found: BigIntStats | undefined) => void;
  /** The mode of a new file. One that exists keeps its own. */
  readonly mode?: number;
}

/**
 * Writes a new file beside the old one and puts it in its place, so that a reader, and a process that dies, sees the
 * old content or the new one. Makes missing directories.
 * @returns whether there was a file before
 * @throws TOOL_FILE_CHANGED when the file was changed meanwhile; TOOL_NOT_A_FILE, TOOL_NOT_ALLOWED, TOOL_FILE_FAILED
 */
export async function replaceFile(
  place: FilePlace,
  { path, act, write, accept = () => {}, mode = 0o666 }: Replacement,
): Promise<boolean> {
  try {
    await using held = await holdName(place, { path, kind: 'write', act }, { make: true });
    const { directory, name } = held;
    const before = await fileAt(held, act);
    accept(before);
    await removeLeftovers(directory);
    const temporary = directory.at(`${temporaryPrefix}${process.pid}-${randomBytes(6).toString('hex')}`);
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const handle = await open(
      temporary,
      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
      before === undefined ? mode : 0o600,
    );
    try {
      try {
        await write(handle);
        if (before !== undefined) await handle.chmod(Number(before.mode) & 0o777);
        await handle.sync();
      } finally {
        await handle.close();
      }
      if (!isSame(before, await fileAt(held, act)))
        throw new BuiltinError('TOOL_FILE_CHANGED', `cannot ${act}: it was changed meanwhile; read it again`);
      await held.check();
      await rename(temporary, directory.at(name));
    } catch (error) {
      await unlink(temporary).catch(() => {});
      throw error;
    }
    return before !== undefined;
  } catch (error) {
    throw asBuiltin(error, act);
  }
}

/** How the names of files begin that have no place yet. The process that writes one follows. */
const temporaryPrefix = '.tapedeck-new-';

/** A file without a place is removed when its process is gone, and it is as old as this, in milliseconds. */
const leftMs = 60_000;

/** Removes what processes left that were killed while they wrote in the directory. */
async function removeLeftovers(directory: HeldDirectory): Promise<void> {
  for (const name of await readdir(directory.path)) {
    const [, pid] = name.startsWith(temporaryPrefix)
      ? (name.slice(temporaryPrefix.length).match(/^(\d+)-/) ?? [])
      : [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const found = await lstat(directory.at(name)).catch(() => undefined);
    if (found?.isFile() === true && Date.now() - found.mtimeMs > leftMs)
      await unlink(directory.at(name)).catch(() => {});
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
