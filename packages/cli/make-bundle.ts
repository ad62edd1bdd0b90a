import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build, type Plugin } from 'rolldown';

/** Small modules that most verbs share: a file of its own costs more than it holds. */
const shared =
  /\/cli\/src\/(?:output\/(?:counted|entry|forked|other-realms|session|table)|session\/(?:drained|ensure|next-step|place|preview)|verbs\/verb)\.ts$/;

/** Node.js modules that take long to load, and that many command lines do not need. */
const slow = /^node:(?:crypto|child_process|fs\/promises|os|timers\/promises)$/;

/** Loads the functions of slow modules when one of them is first called. */
const onFirstUse: Plugin = {
  name: 'on-first-use',
  resolveId: { filter: { id: slow }, handler: (id) => `\0first-use:${id}` },
  load: {
    filter: { id: /^\0first-use:/ },
    handler: (id) => {
      const name = id.slice('\0first-use:'.length);
      const module = createRequire(import.meta.url)(name) as Readonly<Record<string, unknown>>;
      const functions = Object.keys(module).filter(
        (key) => /^[a-z]/.test(key) && typeof module[key] === 'function',
      );
      return [
        ...functions.map((key) => `export const ${key} = (...args) => whole().${key}(...args);`),
        `const whole = () => process.getBuiltinModule('${name}');`,
        'export default new Proxy({}, { get: (_, key) => whole()[key] });',
      ].join('\n');
    },
  },
};

/** better-sqlite3 without its search for the addon: the prebuilt one, at the path where the package has it. */
const addonByPath: Plugin = {
  name: 'addon-by-path',
  resolveId: { filter: { id: /^better-sqlite3$/ }, handler: () => '\0better-sqlite3' },
  load: {
    filter: { id: /^\0better-sqlite3$/ },
    handler: () => {
      const lib = dirname(
        createRequire(new URL('../tape/package.json', import.meta.url)).resolve('better-sqlite3'),
      );
      return `
import createDatabase from '${lib}/database.js';
import SqliteError from '${lib}/sqlite-error.js';
import { addon } from '${import.meta.dirname}/src/addon.ts';
const Database = createDatabase(addon, false);
Database.SqliteError = SqliteError;
export default Database;
export { SqliteError };`;
    },
  },
};

/**
 * The command and all packages that it needs in one folder: a process starts in a fraction of the time that it takes to
 * find and read a thousand modules. Providers and configurations stay packages of the user.
 */
const { output } = await build({
  write: false,
  cwd: import.meta.dirname,
  input: { start: 'src/start.ts' },
  platform: 'node',
  onLog: (level, { message }) => {
    if (level === 'warn') throw new Error(message);
  },
  // yargs calls it for configurations that extend others, which the command has none of.
  transform: { define: { 'import.meta.resolve': 'undefined' } },
  resolve: { conditionNames: ['@tapedeck/source', 'node', 'import', 'default'] },
  plugins: [onFirstUse, addonByPath],
  output: {
    format: 'cjs',
    minify: true,
    sourcemap: true,
    // The packages contain their sources.
    sourcemapExcludeSources: true,
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    codeSplitting: {
      groups: [
        { name: 'core', tags: ['$initial'] },
        { name: 'shared', test: shared },
      ],
    },
  },
});

/** Replaces each file at once, and only those that changed: another process may be starting from the bundle. */
const dir = join(import.meta.dirname, 'bundle');
mkdirSync(dir, { recursive: true });
const before = new Set(readdirSync(dir));
for (const file of output) {
  const [path, content] = [join(dir, file.fileName), file.type === 'chunk' ? file.code : file.source];
  if (before.delete(file.fileName) && readFileSync(path).equals(Buffer.from(content))) continue;
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}
for (const name of before) rmSync(join(dir, name));
