import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './imports.ts';
import { programsVariable } from './programs.ts';

const cache = join(root, 'node_modules/.cache/test-programs');
const cli = join(root, 'packages/cli');
const dayMs = 24 * 3_600_000;

/** A module that scripts import, as the bundle names it, and its source. */
interface Module {
  readonly specifier: string;
  readonly source: string;
}

/** The entry points of our packages, and those packages whose values they share with a script. */
function modules(): Module[] {
  const ours = readdirSync(join(root, 'packages')).flatMap((name) => {
    const dir = join(root, 'packages', name);
    const { exports } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as {
      readonly exports: Readonly<Record<string, string | { readonly '@tapedeck/source': string }>>;
    };
    return Object.entries(exports).flatMap(([path, target]) =>
      typeof target === 'string'
        ? []
        : [{ specifier: join('@tapedeck', name, path), source: join(dir, target['@tapedeck/source']) }],
    );
  });
  return [...ours, ...['ai', 'zod'].map((specifier) => ({ specifier, source: specifier }))];
}

/**
 * Bundles the programs that tests start, and what scripts import, from the sources: a process that loads a bundle
 * starts with less than half of the processor time. A directory of its own, named by its content, is never changed,
 * so that runs at the same time do not disturb each other, and the compile cache keeps its worth.
 */
export default async function bundlePrograms(): Promise<void> {
  if (process.env[programsVariable] !== undefined) return;
  const workers = readdirSync(import.meta.dirname).filter((name) => /-worker\.ts$/.test(name));
  const given = modules();
  const bundle = await rolldown({
    cwd: root,
    input: {
      ...Object.fromEntries(
        workers.map((name) => [name.replace(/\.ts$/, ''), join(import.meta.dirname, name)]),
      ),
      ...Object.fromEntries(given.map(({ specifier, source }) => [nameOf(specifier), source])),
    },
    platform: 'node',
    external: ['better-sqlite3', 'pg'],
    preserveEntrySignatures: 'strict',
    resolve: { conditionNames: ['@tapedeck/source', 'node', 'import'] },
  });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  const files = new Map(
    output.map((file) => [file.fileName, file.type === 'chunk' ? file.code : `${file.source}`]),
  );
  for (const [name, text] of packagesOf(given)) files.set(name, text);
  process.env[programsVariable] = save(files);
}

/** The packages that a script in the directory imports: each entry point is a file of the bundle. */
function packagesOf(given: readonly Module[]): [string, string][] {
  const split = given.map(({ specifier }) => {
    const [, name = '', path = ''] = /^(@[^/]+\/[^/]+|[^/]+)(.*)$/.exec(specifier) ?? [];
    return { name, path: `.${path}`, specifier };
  });
  return [...Map.groupBy(split, ({ name }) => name)].flatMap(([name, entries]) => [
    [
      `node_modules/${name}/package.json`,
      JSON.stringify({
        name,
        type: 'module',
        exports: Object.fromEntries(
          entries.map(({ path, specifier }) => [path, `./${nameOf(specifier)}.js`]),
        ),
      }),
    ],
    ...entries.map(({ specifier }): [string, string] => {
      const up = '../'.repeat(name.split('/').length + 1);
      return [
        `node_modules/${name}/${nameOf(specifier)}.js`,
        `export * from '${up}${nameOf(specifier)}.js';\n`,
      ];
    }),
  ]);
}

function nameOf(specifier: string): string {
  return specifier.replace('@', '').replaceAll('/', '-');
}

/** Writes the files, unless a run did before. Removes what no run used for a day. */
function save(files: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256');
  for (const [name, text] of files) hash.update(`${name}\0${text}\0`);
  const dir = join(cache, hash.digest('hex').slice(0, 16));
  mkdirSync(cache, { recursive: true });
  if (!existsSync(dir)) {
    const draft = mkdtempSync(join(cache, 'draft-'));
    // The command reads its version there.
    const { version } = JSON.parse(readFileSync(join(cli, 'package.json'), 'utf8')) as { version: string };
    writeFileSync(join(draft, 'package.json'), JSON.stringify({ version, type: 'module' }));
    for (const [name, text] of files) {
      const file = join(draft, 'dist', name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    try {
      renameSync(draft, dir);
    } catch (error) {
      rmSync(draft, { recursive: true });
      if (!existsSync(dir)) throw error;
    }
  }
  const now = new Date();
  utimesSync(dir, now, now);
  for (const name of readdirSync(cache).map((name) => join(cache, name)))
    if (now.getTime() - (statSync(name, { throwIfNoEntry: false })?.mtimeMs ?? now.getTime()) > dayMs)
      rmSync(name, { recursive: true, force: true });
  return join(dir, 'dist');
}
