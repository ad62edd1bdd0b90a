import { spawnSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './imports.ts';
import type { TempDir } from './temp-dir.ts';

/** The directories of the packages: each imports those before it. */
export const packages = ['tape', 'graph', 'runtime', 'cli'] as const;

/** The names by which programs import a package. */
export function entryPoints(name: string): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'));
  return Object.keys(exports)
    .filter((entry) => entry !== './package.json')
    .map((entry) => `@tapedeck/${name}${entry.slice(1)}`);
}

/** The entry points of servers: a program that imports one installs the packages that it needs. */
export const ofServers: ReadonlySet<string> = new Set(['@tapedeck/tape/postgres']);

/** A program that imports every entry point that needs nothing else, and prints what each exports. */
export function importingAll(): string {
  const all = packages.flatMap(entryPoints).filter((entry) => !ofServers.has(entry));
  const imports = all.map((from, i) => `import * as entry${i} from '${from}';\n`);
  const prints = all.map((_, i) => `console.log(Object.keys(entry${i}));\n`);
  return [...imports, ...prints].join('');
}

/** The compiler options of a strict consumer. The types of Node.js are those of the checkout. */
const strict = {
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  noEmit: true,
  target: 'esnext',
  lib: ['esnext'],
  types: ['node'],
  typeRoots: [join(root, 'node_modules/@types')],
};

/** Calls that the types of the packages refuse, from the fifth line on: the types are there, and are not `any`. */
const wrong = `import { main } from '@tapedeck/cli';
import { drawTree } from '@tapedeck/graph';
import { openDeck } from '@tapedeck/runtime';
import { openTapeStore } from '@tapedeck/tape';
main(1);
drawTree(1);
openDeck(1);
openTapeStore(1);
`;

/** The errors in a program that imports every entry point, in the examples, in a configuration, and in `wrong.ts`. */
export function typeErrors(dir: TempDir, config: string, resolution: object): string[] {
  const examples = readdirSync(join(root, 'examples')).filter((file) => file.endsWith('.ts'));
  for (const file of examples) copyFileSync(join(root, 'examples', file), dir.file(file));
  writeFileSync(dir.file('tape.config.mts'), config);
  writeFileSync(dir.file('entries.ts'), importingAll());
  writeFileSync(dir.file('wrong.ts'), wrong);
  const files = [...examples, 'tape.config.mts', 'entries.ts', 'wrong.ts'];
  const settings = { compilerOptions: { ...strict, ...resolution }, files };
  writeFileSync(dir.file('tsconfig.json'), JSON.stringify(settings));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '--pretty', 'false', '--project', '.'], {
    cwd: dir.path,
    encoding: 'utf8',
  });
  return stdout.split('\n').filter((line) => /^\S.*error TS/.test(line));
}
