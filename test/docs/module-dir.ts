import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { dirIn, type TempDir } from '../support/temp-dir.ts';
import { root } from './pages.ts';

/** A temporary directory whose modules find the packages: they are looked up from where a file is. */
export function moduleDir(): TempDir {
  const cache = join(root, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  return dirIn(cache);
}
