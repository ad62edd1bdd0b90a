import { chmod, copyFile, lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Restores a file. */
type Restore = () => Promise<void>;

/**
 * Copies files of a directory to another one, and returns a function that restores them; it removes files
 * that did not exist. Paths are relative to `top`. Ignores a path that is a directory.
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
