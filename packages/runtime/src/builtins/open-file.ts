import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import type { FilePlace } from '../tools/file-place.ts';
import { asBuiltin, BuiltinError } from './errors.ts';
import { type HeldDirectory, holdName } from './held-directory.ts';

/**
 * Opens a regular file for reading, and decides again once its directory is open. What is no regular file is refused
 * before it is opened, and again after: opening a pipe or a device neither waits nor does anything.
 * @throws TOOL_NO_FILE, TOOL_NOT_A_FILE, TOOL_NOT_ALLOWED, TOOL_FILE_CHANGED
 */
export async function openFile(place: FilePlace, path: string, act: string): Promise<FileHandle> {
  try {
    await using held = await holdName(place, { path, kind: 'read', act });
    await regularFile(held, act);
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    const handle = await open(held.directory.at(held.name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      assertRegular(await handle.stat({ bigint: true }), act);
      await held.check();
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  } catch (error) {
    throw asBuiltin(error, act);
  }
}

/** The facts of a name in a directory; undefined when there is none. @throws TOOL_NOT_A_FILE */
export async function fileAt(
  held: { readonly directory: HeldDirectory; readonly name: string },
  act: string,
): Promise<BigIntStats | undefined> {
  const found = await lstat(held.directory.at(held.name), { bigint: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    },
  );
  if (found !== undefined) assertRegular(found, act);
  return found;
}

async function regularFile(
  held: { readonly directory: HeldDirectory; readonly name: string },
  act: string,
): Promise<void> {
  if ((await fileAt(held, act)) === undefined)
    throw new BuiltinError('TOOL_NO_FILE', `cannot ${act}: it does not exist`);
}

function assertRegular(found: BigIntStats, act: string): void {
  if (found.isFile()) return;
  if (found.isSymbolicLink())
    throw new BuiltinError('TOOL_FILE_CHANGED', `cannot ${act}: it became a link while it was opened`);
  throw new BuiltinError('TOOL_NOT_A_FILE', `cannot ${act}: it is ${kindOf(found)}`);
}

/** What something is that is no file. */
export function kindOf(found: Pick<BigIntStats, 'isDirectory' | 'isFIFO' | 'isSocket'>): string {
  if (found.isDirectory()) return 'a directory';
  if (found.isFIFO()) return 'a pipe';
  return found.isSocket() ? 'a socket' : 'a device';
}

/** Whether two looks at a file saw the same file with the same content. */
export function isSame(a: BigIntStats | undefined, b: BigIntStats | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const fields = ['dev', 'ino', 'size', 'mtimeNs', 'ctimeNs'] as const;
  return fields.every((field) => a[field] === b[field]);
}
