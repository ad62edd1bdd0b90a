import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { compileCache } from '../support/compile-cache.ts';
import { checkContract } from '../support/contract.ts';
import { root } from './pages.ts';

/** The built command. */
export const bin: string = join(root, 'packages/cli/bin/tape.js');

/** An environment that has only what a test sets: no home, no model and no key of the user. */
export function plainEnv(dir: string, more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: dir, TZ: 'UTC', NODE_COMPILE_CACHE: compileCache, ...more };
}

/** What the built command said and how it ended. */
export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built command in a directory. */
export function tape(
  dir: string,
  argv: readonly string[],
  { input = '', env = {} }: { input?: string; env?: Readonly<Record<string, string>> } = {},
): Ended {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...argv], {
    cwd: dir,
    env: plainEnv(dir, env),
    input,
    encoding: 'utf8',
  });
  checkContract(argv, { stdout, stderr, code: status });
  return { status, stdout, stderr };
}
