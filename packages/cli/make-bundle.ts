import { hash } from 'node:crypto';
import { globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';

/** Small modules that some verbs share: a file of its own costs more than it holds. */
const together: Readonly<Record<string, RegExp>> = {
  shared:
    /\/cli\/src\/(?:output\/(?:array|counted|entry|event|forked|other-realms|session|sessions|table)|session\/(?:drained|ensure|listing|meant|next-step|place|preview)|verbs\/verb|terminal\/(?:markdown|number|width|wrap|time)|options\/create|reference|similar)\.ts$|\/tape\/src\/entry\/call-text\.ts$|\/get-east-asian-width\/|^\0first-call:/,
  statuses: /\/runtime\/src\/(?:status\/|tools\/open-batch)|\/cli\/src\/output\/(?:run|status|usage)\.ts$/,
  terms:
    /\/runtime\/src\/(?:errors|fields|lease\/(?:drain|hold|settle-leftovers)|model\/(?:call-settings|name)|terms\/(?:carried-model|terms)|telemetry\/(?:runs|span)|usage\/usage|workspace\/notes)\.ts$/,
  mend: /\/cli\/src\/(?:output\/progress|session\/mend)\.ts$/,
  interrupted: /\/runtime\/src\/tools\/interrupted\.ts$/,
  log: /\/cli\/src\/(?:verbs\/log|transcript\/(?:fold|forks|item-line|item-rows|margin|parts|read|rows|transcript|wanted))\.ts$/,
  fork: /\/cli\/src\/(?:verbs\/fork|options\/(?:inherit|workspace))\.ts$/,
};

/** What most command lines do not call, each a file that is loaded when one of its functions is first called. */
const later: Readonly<Record<string, RegExp>> = {
  writes:
    /\/tape\/src\/(?:fork\/|lineage\/(?:link|outbox)|session\/session|tape\/(?:append|leftovers|open-calls|partial-answer|post)|entry\/(?:blob|child-name|encode|normalise|spill))|\/graph\/src\/(?:chain|compare|display|journal|lines|tail)\.ts/,
  checks: /\/tape\/src\/(?:check\/|store\/verify|tape\/calls)/,
  bundles: /\/tape\/src\/bundle\//,
  merges: /\/tape\/src\/merge\//,
  views: /\/tape\/src\/view\//,
  searches: /\/tape\/src\/search\//,
  hints: /\/cli\/src\/errors\/(?:codes|describe|hint)/,
  redacts: /\/tape\/src\/(?:secrets\/(?:patterns|redactor)|store\/redacted-call)\.ts/,
  rules: /\/tape\/src\/secrets\/(?:preset|rule-package)\.ts|\/@secretlint\//,
  rare: /\/tape\/src\/(?:owner\.ts|secrets\/forms|history\/|session\/(?:alias|discard|erase|notify|purge|stage)|store\/(?:backup|migrate|preview|schema-2)|sqlite\/(?:draft-file|lock-holders|private-copy)|origin\/(?:own-log|place-faults)|postgres\/address)/,
};

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
        'let loaded;',
        `const whole = () => (loaded ??= process.getBuiltinModule('${name}'));`,
        'export default new Proxy({}, { get: (_, key) => whole()[key] });',
      ].join('\n');
    },
  },
};

/** Imports what has no name yet by `bin/import.js`: code that was compiled before cannot. */
const importsByFile: Plugin = {
  name: 'imports-by-file',
  resolveId: { filter: { id: /^import-file$/ }, handler: () => ({ id: '../bin/import.js', external: true }) },
  transform: {
    filter: { id: /\/packages\/\w+\/src\//, code: /\bimport\(\w+/ },
    handler: (code) => ({ code: code.replace(/\bimport\((?=\w)/g, `require('import-file')(`), map: null }),
  },
};

const laterOf = (id: string) => Object.keys(later).find((name) => later[name]?.test(id));

/** The names of the functions that a file exports, its own and those of other files. */
function functionsOf(file: string): { readonly own: readonly string[]; readonly others: readonly string[] } {
  const exported = parseAst(readFileSync(file, 'utf8'), { lang: 'ts' }).body.filter(
    (statement) => statement.type === 'ExportNamedDeclaration',
  );
  return {
    own: exported.flatMap(({ declaration }) =>
      declaration?.type === 'FunctionDeclaration' ? (declaration.id?.name ?? []) : [],
    ),
    others: exported.flatMap(({ source, specifiers }) => {
      const there = source === null ? [] : functionsOf(join(dirname(file), source.value)).own;
      return specifiers
        .flatMap(({ local }) => ('name' in local ? local.name : []))
        .filter((name) => there.includes(name));
    }),
  };
}

/** Replaces imports of `later` by functions that load it, and makes a file of each. */
const onFirstCall: Plugin = {
  name: 'on-first-call',
  buildStart() {
    for (const name of Object.keys(later)) this.emitFile({ type: 'chunk', id: `\0all:${name}`, name });
  },
  async resolveId(source, importer, options) {
    if (source.startsWith('\0all:')) return source;
    if (source.startsWith('later:')) return { id: `./${source.slice('later:'.length)}.cjs`, external: true };
    // A module that is imported dynamically is loaded later anyway, and whole.
    if (importer === undefined || importer.startsWith('\0') || options.kind === 'dynamic-import') return null;
    const found = await this.resolve(source, importer, { ...options, skipSelf: true });
    const name = found === null ? undefined : laterOf(found.id);
    return name === undefined || name === laterOf(importer) ? found : `\0first-call:${found?.id}`;
  },
  load: {
    filter: { id: /^\0(?:all|first-call):/ },
    handler: (id) => {
      const of = id.slice(id.indexOf(':') + 1);
      if (id.startsWith('\0all:'))
        return globSync('../*/src/**/*.ts', { cwd: import.meta.dirname })
          .map((file) => join(import.meta.dirname, file))
          .filter((file) => laterOf(file) === of)
          .map((file) => `export { ${functionsOf(file).own.join(', ')} } from '${file}';`)
          .join('\n');
      const { own, others } = functionsOf(of);
      return [
        'let whole;',
        ...[...own, ...others].map(
          (key) =>
            `export const ${key} = (...args) => (whole ??= require('later:${laterOf(of)}')).${key}(...args);`,
        ),
        // Constants and classes, for the verbs that import them.
        `export * from '${of}';`,
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

/** The rules of secrets as a part of the bundle. The library loads their package when it first needs them. */
const rulesInBundle: Plugin = {
  name: 'rules-in-bundle',
  load: {
    filter: { id: /\/tape\/src\/secrets\/rule-package\.ts$/ },
    handler: (id) => {
      if (id !== join(import.meta.dirname, '../tape/src/secrets/rule-package.ts')) return undefined;
      const [, name = ''] = /require\('(.*)'\)/.exec(readFileSync(id, 'utf8')) ?? [];
      const file = createRequire(new URL('../tape/package.json', import.meta.url)).resolve(name);
      return `import { rules } from '${file}';\nexport const rulesOfPackage = () => rules;`;
    },
  },
  // One of its rules, which is left out, reads files.
  transform: {
    filter: { id: /\/@secretlint\//, code: /\bimport\(/ },
    handler: (code) => ({
      code: code.replace(/\bimport\((?=['"]node:)/g, 'process.getBuiltinModule('),
      map: null,
    }),
  },
};

/**
 * The command and all packages that it needs in one folder: a process starts in a fraction of the time that it takes to
 * find and read a thousand modules. Where it has no code of compile-bundle.ts it compiles what it loads, a millisecond for
 * 30 KB, so that start.cjs has little more than what every verb calls. Providers and configurations stay packages of the
 * user.
 */
const { output } = await build({
  write: false,
  cwd: import.meta.dirname,
  input: { start: 'src/start.ts' },
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  onLog: (level, { message }) => {
    if (level === 'warn') throw new Error(message);
  },
  // How long plugins take says how busy the machine is.
  checks: { bundlerTimings: false },
  // yargs calls it for configurations that extend others, which the command has none of.
  transform: { define: { 'import.meta.resolve': 'undefined' } },
  resolve: {
    conditionNames: ['@tapedeck/source', 'node', 'import', 'default'],
    // Its main file loads its others by a function that no bundler sees.
    alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  },
  plugins: [onFirstUse, onFirstCall, importsByFile, addonByPath, rulesInBundle],
  output: {
    format: 'cjs',
    minify: true,
    // Two bytes for each character, which one other character requires, take longer to compile.
    charset: 'ascii',
    sourcemap: true,
    // The packages contain their sources.
    sourcemapExcludeSources: true,
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        ...Object.entries(later).map(([name]) => ({
          name,
          test: (id: string) => id === `\0all:${name}` || (!id.startsWith('\0') && laterOf(id) === name),
        })),
        { name: 'start', tags: ['$initial'] },
        ...Object.entries(together).map(([name, test]) => ({ name, test })),
      ],
    },
  },
});

const start = output.find(({ fileName }) => fileName === 'start.cjs');
const early = start?.type === 'chunk' ? start.imports.filter((file) => later[file.replace('.cjs', '')]) : [];
if (early.length > 0) throw new Error(`start.cjs loads at once what it may need later: ${early}`);

const imports = output.filter((file) => file.type === 'chunk' && /[^.\w$]import\(/.test(file.code));
if (imports.length > 0) throw new Error(`these files import: ${imports.map(({ fileName }) => fileName)}`);

/** Replaces each file at once, and only those that changed: another process may be starting from the bundle. */
const dir = join(import.meta.dirname, 'bundle');
mkdirSync(dir, { recursive: true });
const before = new Set(readdirSync(dir));
for (const file of output) {
  const path = join(dir, file.fileName);
  const content = file.type === 'chunk' ? withHash(file.code) : file.source;
  if (before.delete(file.fileName) && readFileSync(path).equals(Buffer.from(content))) continue;
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}
// compile-bundle.ts makes and removes those of code.
for (const name of before) if (!name.endsWith('.code')) rmSync(join(dir, name));

/** A text that ends with its hash, by which bin/tape.js finds out whether code was compiled from it. */
function withHash(text: string): string {
  return `${text.trimEnd()}\n//${hash('sha256', text).slice(0, 16)}`;
}
