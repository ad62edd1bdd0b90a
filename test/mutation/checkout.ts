import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Mutant } from './mutants.ts';

/** The outcome of running one test file: how many of its tests passed and failed, and everything it printed. */
interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly output: string;
}

/** At which size a test is run with a bug in. */
export type MutantSize = 'push' | 'full';

/** A copy of the sources that receives the bugs, so that the checkout stays unchanged. */
export interface Checkout extends Disposable {
  /** Runs a test file as the sources are. */
  run(test: Pick<Mutant, 'test' | 'only'>, size: MutantSize): Outcome;
  /** The same with a bug in, which is taken out again. */
  runWith(mutant: Mutant, size: MutantSize): Outcome;
}

const root = join(import.meta.dirname, '../..');
const copied = [
  'packages',
  'test',
  'docs',
  'node_modules',
  'package.json',
  'tsconfig.base.json',
  'vitest.config.ts',
];

export function copyCheckout(): Checkout {
  const dir = mkdtempSync(join(tmpdir(), 'tapedeck-mutants-'));
  const skipped = /(?:^|\/)(?:dist|\.pnpm|\.vitest-cache|\.vite|\.cache)$/;
  const filter = (path: string) => !skipped.test(relative(root, path));
  for (const name of copied)
    cpSync(join(root, name), join(dir, name), { recursive: true, verbatimSymlinks: true, filter });
  // Other people's packages are read where they are; the links to ours lead to the copy.
  symlinkSync(join(root, 'node_modules/.pnpm'), join(dir, 'node_modules/.pnpm'));
  mkdirSync(join(dir, 'tmp'));
  return {
    run: (test, size) => runTest(dir, test, size),
    runWith: (mutant, size) => {
      const file = join(dir, mutant.file);
      const source = readFileSync(file, 'utf8');
      writeFileSync(file, spoil(source, mutant));
      try {
        return runTest(dir, mutant, size);
      } finally {
        writeFileSync(file, source);
      }
    },
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/**
 * A source with a bug in.
 * @throws TypeError when the text to replace is not there, or there more than once
 */
export function spoil(source: string, { name, file, find, replace }: Mutant): string {
  const places = source.split(find).length - 1;
  if (places !== 1)
    throw new TypeError(`the bug '${name}' has ${places} places in ${file}, and must have one`);
  return source.replace(find, () => replace);
}

/** The source of a file of this checkout. */
export function sourceOf(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

function runTest(dir: string, { test, only }: Pick<Mutant, 'test' | 'only'>, size: MutantSize): Outcome {
  const names = only === undefined ? [] : ['-t', only];
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(dir, 'node_modules/vitest/vitest.mjs'), 'run', '--bail', '1', test, ...names],
    {
      cwd: dir,
      encoding: 'utf8',
      env: { ...process.env, TAPEDECK_SIZE: size, NO_COLOR: '1', TMPDIR: join(dir, 'tmp') },
    },
  );
  const output = stdout + stderr;
  const [, passed = '0', failed = '0'] = /(\d+) passed, (\d+) failed/.exec(output) ?? [];
  return { passed: Number(passed), failed: Number(failed), output };
}
