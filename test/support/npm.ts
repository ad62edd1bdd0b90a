import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './imports.ts';
import type { TempDir } from './temp-dir.ts';

/**
 * Runs a line of a shell outside the workspace: its commands are not on the `PATH`, npm has the settings of the user.
 */
export async function shellOutside(cwd: string, line: string): Promise<string> {
  const path = (process.env.PATH ?? '').split(delimiter).filter((entry) => !entry.startsWith(root));
  const { stdout } = await promisify(execFile)('bash', ['-ec', line], {
    cwd,
    env: { ...process.env, PATH: path.join(delimiter), TAPE_HOME: undefined },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** Says so when the registry of npm cannot be reached; a CI fails then. */
export function skipsRegistry(what: string): boolean {
  const { status } = spawnSync('npm', ['view', 'zod', 'version', '--fetch-retries=0'], { timeout: 30_000 });
  if (status === 0) return false;
  const why = 'the npm registry cannot be reached';
  if (process.env.CI === 'true') throw new Error(`cannot test ${what}: ${why}`);
  console.warn(`skipped: ${what}; ${why}`);
  return true;
}

/**
 * A cache in a directory for npm, with what the cache of the user has loaded. In a place in memory: npm unpacks each tarball
 * of this machine several times in its cache, which on a disk takes most of what an installation takes.
 */
export function npmCacheIn(dir: TempDir): string {
  const users = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();
  mkdirSync(dir.file('_cacache'));
  for (const part of ['content-v2', 'index-v5']) {
    const loaded = join(users, '_cacache', part);
    mkdirSync(loaded, { recursive: true });
    symlinkSync(loaded, dir.file(join('_cacache', part)));
  }
  return dir.path;
}
