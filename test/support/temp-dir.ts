import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory that goes away with the block: `using dir = tempDir()`. */
export interface TempDir extends Disposable {
  readonly path: string;
  /** The path of a file in it. */
  file(name: string): string;
}

export function tempDir(): TempDir {
  const made = mkdtempDisposableSync(join(tmpdir(), 'tapedeck-'));
  return {
    path: made.path,
    file: (name) => join(made.path, name),
    [Symbol.dispose]: () => made.remove(),
  };
}
