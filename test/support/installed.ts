import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sha256 } from '@tapedeck/tape/store';
import { root } from './imports.ts';

/** A program of another project, which a test drives: a folder of `test/programs` with a lock of npm. */
export type Installed = 'claude-code' | 'pi';

/**
 * Returns the `node_modules` with a program, as its lock pins it. The first use installs it from the registry, without running
 * a script of a package, into a folder that later uses find: these programs are too large to be dependencies of everyone who
 * works on this project. A registry that cannot be reached fails the test.
 */
export async function installed(name: Installed): Promise<string> {
  const pinned = join(root, 'test/programs', name);
  const lock = readFileSync(join(pinned, 'package-lock.json'));
  const cache = join(root, 'node_modules/.cache/tapedeck-programs');
  const place = join(cache, `${name}-${sha256(lock).slice(0, 12)}`);
  if (!existsSync(place)) {
    mkdirSync(cache, { recursive: true });
    const made = mkdtempSync(join(cache, `${name}-new-`));
    try {
      for (const file of ['package.json', 'package-lock.json'])
        copyFileSync(join(pinned, file), join(made, file));
      await promisify(execFile)('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: made });
      renameSync(made, place);
    } catch (error) {
      rmSync(made, { recursive: true, force: true });
      // Another test that installed it at the same time was faster.
      if (!existsSync(place)) throw error;
    }
  }
  return join(place, 'node_modules');
}
