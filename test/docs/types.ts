import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './pages.ts';
import { plainEnv } from './tape.ts';

/** The types of the built packages, with the rules of the project. */
const compilerOptions = {
  composite: false,
  isolatedDeclarations: false,
  declarationMap: false,
  sourceMap: false,
  customConditions: [],
  rootDir: '.',
  outDir: '.',
};

/** Compiles files of a directory, and returns what is wrong with their types: nothing, when they are right. */
export function typeErrorsOf(dir: string, files: readonly string[]): string {
  const settings = { extends: join(root, 'tsconfig.base.json'), compilerOptions, files };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(settings));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout, stderr } = spawnSync(process.execPath, [tsc, '--project', '.'], {
    cwd: dir,
    env: plainEnv(dir),
    encoding: 'utf8',
  });
  return stdout + stderr;
}
