import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a directory, and those above it that are missing; returns the first one that it made. `mkdirSync` by itself never
 * ends where the system refuses a name in a directory that exists as one that does not: so does `/proc`.
 */
export function makeDirectories(dir: string, mode: number): string | undefined {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true) return undefined;
  const missing: string[] = [];
  for (let at = dir; statSync(at, { throwIfNoEntry: false }) === undefined; at = dirname(at))
    missing.unshift(at);
  // Of what is there and is no directory, the system says so; another process may have made one since.
  if (missing.length === 0) missing.push(dir);
  return missing.filter((path) => isMade(path, mode))[0];
}

/** Makes a directory; false where another process has done so meanwhile. */
function isMade(path: string, mode: number): boolean {
  try {
    mkdirSync(path, { mode });
    return true;
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return false;
    throw error;
  }
}
