import { existsSync, mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory that goes away with the block: `using dir = tempDir()`. */
export interface TempDir extends Disposable {
  readonly path: string;
  /** The path of a file in it. */
  file(name: string): string;
}

export function tempDir(): TempDir {
  return dirIn(tmpdir());
}

/** The same in memory where the system has such a place: for thousands of files that need no disk. */
export function memoryDir(): TempDir {
  return dirIn(existsSync('/dev/shm') ? '/dev/shm' : tmpdir());
}

/** The same in a place of the caller's. */
export function dirIn(place: string): TempDir {
  const made = mkdtempDisposableSync(join(place, 'tapedeck-'));
  return {
    path: made.path,
    file: (name) => join(made.path, name),
    [Symbol.dispose]: () => made.remove(),
  };
}

/** A directory in another one, with which it goes away. */
export function dirInside(dir: TempDir, name: string): TempDir {
  const path = dir.file(name);
  return { path, file: (name) => join(path, name), [Symbol.dispose]: () => {} };
}
