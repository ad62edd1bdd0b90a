import { chmod, copyFile, lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Brings a file back as it was. */
type Restore = () => Promise<void>;

/**
 * Copies files of a directory to another, and returns what brings them back as they were: those that were not there go away
 * again. Paths are relative to the directory; a directory at one of them is left alone.
 */
export async function setAside(top: string, paths: readonly string[], to: string): Promise<Restore> {
  const restores: Restore[] = [];
  for (const [i, path] of paths.entries())
    restores.push(await setOneAside(join(top, path), join(to, `${i}.aside`)));
  return async () => {
    for (const restore of restores) await restore();
  };
}

async function setOneAside(path: string, copy: string): Promise<Restore> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  const clear = async () => {
    await rm(path, { force: true });
    await mkdir(dirname(path), { recursive: true });
  };
  if (found === undefined) return async () => await rm(path, { force: true });
  if (found.isSymbolicLink()) {
    const target = await readlink(path);
    return async () => {
      await clear();
      await symlink(target, path);
    };
  }
  if (!found.isFile()) return async () => {};
  await copyFile(path, copy);
  return async () => {
    await clear();
    await copyFile(copy, path);
    await chmod(path, found.mode);
  };
}
