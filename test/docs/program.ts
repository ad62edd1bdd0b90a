import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TempDir } from '../support/temp-dir.ts';
import { root } from './pages.ts';
import { plainEnv } from './tape.ts';

/** How a process ended, and what it printed. */
type Ended = Pick<SpawnSyncReturns<string>, 'status' | 'stdout' | 'stderr'>;

/** Runs Node.js in a directory of `moduleDir`. */
export function node(dir: TempDir, ...argv: readonly string[]): Ended {
  const options = { cwd: dir.path, env: plainEnv(dir.path), encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, options);
  return { status, stdout, stderr };
}

/** Checks the modules of a program, and compiles them: types of the built packages, with the rules of the project. */
export function compile(dir: TempDir, modules: Readonly<Record<string, string>>): Ended {
  for (const [name, code] of Object.entries(modules)) writeFileSync(dir.file(name), code);
  const settings = {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: {
      composite: false,
      isolatedDeclarations: false,
      declarationMap: false,
      sourceMap: false,
      customConditions: [],
      rootDir: '.',
      outDir: '.',
    },
    files: Object.keys(modules),
  };
  writeFileSync(dir.file('tsconfig.json'), JSON.stringify(settings));
  return node(dir, join(root, 'node_modules/typescript/bin/tsc'), '--project', '.');
}
