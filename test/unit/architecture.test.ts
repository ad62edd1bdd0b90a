import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, matchesGlob } from 'node:path';
import { expect, test } from 'vitest';
import config from '../../vitest.config.ts';
import { type Import, root, sourceImports } from '../support/imports.ts';

const imports = sourceImports();

const packageOf = (file: string): string => file.split('/')[1] ?? '';
const ours = (from: string): string | undefined => /^@tapedeck\/([a-z]+)/.exec(from)?.[1];
const external = ({ from }: Import): boolean =>
  !from.startsWith('.') &&
  !from.startsWith('node:') &&
  !builtinModules.includes(from) &&
  ours(from) === undefined;
/** The files that load a module, each once. */
const loading = (module: string): string[] =>
  [...new Set(imports.filter((i) => i.from === module && !i.typesOnly).map((i) => i.file))].sort();

test('the test finds the imports', () => {
  expect(imports.length).toBeGreaterThan(300);
  expect(new Set(imports.map((i) => packageOf(i.file)))).toEqual(
    new Set(['tape', 'graph', 'runtime', 'cli']),
  );
  expect(imports.filter((i) => i.dynamic).length).toBeGreaterThan(5);
});

test('packages depend on each other in one direction: tape, graph, runtime, cli', () => {
  const allowed: Record<string, readonly string[]> = {
    tape: [],
    graph: ['tape'],
    runtime: ['tape', 'graph'],
    cli: ['tape', 'graph', 'runtime'],
  };
  const wrong = imports.filter(({ file, from }) => {
    const target = ours(from);
    return target !== undefined && !allowed[packageOf(file)]?.includes(target);
  });
  expect(wrong).toEqual([]);
});

test('a package reaches no other through a path', () => {
  const wrong = imports.filter(({ file, from }) => {
    if (!from.startsWith('.')) return false;
    const inner = join(file, '..', from).split('/').slice(0, 3).join('/');
    return inner !== `packages/${packageOf(file)}/src`;
  });
  expect(wrong).toEqual([]);
});

test('the graph imports from the tape types and the base of its errors, so it needs no native module', () => {
  const values = imports.filter(
    (i) => packageOf(i.file) === 'graph' && ours(i.from) === 'tape' && !i.typesOnly,
  );
  expect(values.map(({ file, from }) => [file, from])).toEqual([
    ['packages/graph/src/errors.ts', '@tapedeck/tape/errors'],
  ]);
  const { exports } = JSON.parse(readFileSync(join(root, 'packages/tape/package.json'), 'utf8'));
  expect(exports['./errors']['@tapedeck/source']).toBe('./src/errors.ts');
  expect(imports.filter((i) => i.file === 'packages/tape/src/errors.ts')).toEqual([]);
});

test('one file imports better-sqlite3', () => {
  const files = new Set(imports.filter((i) => i.from.startsWith('better-sqlite3')).map((i) => i.file));
  expect([...files]).toEqual(['packages/tape/src/sqlite/sqlite.ts']);
});

test('few files import the AI SDK', () => {
  expect(loading('ai')).toEqual([
    'packages/cli/src/demo.ts',
    'packages/runtime/src/chat/body.ts',
    'packages/runtime/src/mcp/tools.ts',
    'packages/runtime/src/model/model.ts',
    'packages/runtime/src/model/spec.ts',
    'packages/runtime/src/recorded/sdk.ts',
    'packages/runtime/src/run/run.ts',
    'packages/runtime/src/tools/schema.ts',
    'packages/runtime/src/ui/messages.ts',
  ]);
  const atOnce = imports.filter((i) => /^(?:ai|@ai-sdk\/.*)$/.test(i.from) && !i.typesOnly && !i.dynamic);
  expect(atOnce.map(({ file, from }) => [file, from])).toEqual([
    // It has the classes of errors alone, and imports nothing.
    ['packages/runtime/src/model/retry.ts', '@ai-sdk/provider'],
    ['packages/cli/src/demo.ts', 'ai'],
  ]);
  expect(
    imports.filter((i) => /^(?:ai|@ai-sdk\/.*)$/.test(i.from)).map((i) => packageOf(i.file)),
  ).not.toContain('tape');
});

test('the command line loads the runtime, the AI SDK, zod and yaml only where it needs them', () => {
  const eager = imports.filter(
    (i) =>
      packageOf(i.file) === 'cli' &&
      /^(?:@tapedeck\/runtime.*|@tapedeck\/graph|ai|yaml|zod)$/.test(i.from) &&
      !i.typesOnly &&
      !i.dynamic,
  );
  // The contract is a room of schemas: what loads it from outside is looked at as what loads one file.
  const isContract = (file: string) => file.startsWith('packages/cli/src/contract/');
  expect(eager.filter((i) => isContract(i.file)).map((i) => i.from)).toContain('zod');
  const files = [...new Set(eager.map((i) => i.file))].sort();
  expect(files.filter((file) => !isContract(file))).toEqual([
    'packages/cli/src/config/edit.ts',
    'packages/cli/src/config/home.ts',
    'packages/cli/src/config/value.ts',
    'packages/cli/src/demo.ts',
    'packages/cli/src/forget/recorded-content.ts',
    'packages/cli/src/forget/remember.ts',
    'packages/cli/src/forget/unread-records.ts',
    'packages/cli/src/lineage.ts',
    'packages/cli/src/mcp/tools.ts',
    'packages/cli/src/output/lanes.ts',
    'packages/cli/src/session/derived-edges.ts',
    'packages/cli/src/session/mend.ts',
    'packages/cli/src/verbs/status.ts',
  ]);
  // And those files are loaded where they are needed.
  for (const file of files) {
    const loaders = imports.filter((i) => i.from.startsWith('.') && join(i.file, '..', i.from) === file);
    expect(loaders.length).toBeGreaterThan(0);
    const inRoom = (i: Import) => isContract(file) && isContract(i.file);
    // A verb is loaded when the line names it.
    const isVerb = (i: Import) => i.file.startsWith('packages/cli/src/verbs/');
    expect(loaders.filter((i) => !i.dynamic && !i.typesOnly && !inRoom(i) && !isVerb(i))).toEqual([]);
  }
});

test('adding up usage loads no AI SDK', () => {
  const loaded = new Set(['packages/runtime/src/usage/session-usage.ts']);
  for (const file of loaded)
    for (const i of imports.filter((i) => i.file === file && !i.typesOnly && i.from.startsWith('.')))
      loaded.add(join(file, '..', i.from));
  const outside = imports.filter((i) => loaded.has(i.file) && !i.typesOnly && !i.from.startsWith('.'));
  expect([...new Set(outside.map(({ from }) => from))]).toEqual(['@tapedeck/tape/internal']);
});

test.each([
  ['where sessions stand', 'status/status.ts'],
  ['what an audit finds', 'audit/index.ts'],
  ['what a trace leads to', 'trace/index.ts'],
  ['who made a view', 'blame/index.ts'],
  ['what sessions differ in', 'diff/index.ts'],
])('reading %s loads no AI SDK', (_, start) => {
  const reached = new Set([`packages/runtime/src/${start}`]);
  for (const file of reached)
    for (const i of imports)
      if (i.file === file && !i.typesOnly && i.from.startsWith('.')) reached.add(join(file, '..', i.from));
  expect(reached.size).toBeGreaterThan(2);
  expect(imports.filter((i) => reached.has(i.file) && external(i) && !i.typesOnly)).toEqual([]);
});

test.each([
  ['a branch', 'history/branch.ts'],
  ['a rewind', 'history/rewind.ts'],
])('making %s loads no AI SDK', (_, start) => {
  const reached = new Set([`packages/runtime/src/${start}`]);
  for (const file of reached)
    for (const i of imports)
      if (i.file === file && !i.typesOnly && i.from.startsWith('.')) reached.add(join(file, '..', i.from));
  const outside = imports.filter((i) => reached.has(i.file) && external(i) && !i.typesOnly);
  // Loaded in a program that is traced alone.
  expect(outside.filter((i) => !(i.dynamic && i.from === '@opentelemetry/api'))).toEqual([]);
});

/** The rooms of entry points that need what a package does not install. */
const optionalIn = /^packages\/(?:tape\/src\/postgres|runtime\/src\/pg-boss)\//;

test('what a server needs is imported in the rooms of its entry points alone', () => {
  const files = imports
    .filter(({ from }) => /^(?:pg|kysely|pg-boss)(?:\/|$)/.test(from))
    .map(({ file }) => file);
  expect(files.filter((file) => !optionalIn.test(file))).toEqual([]);
  expect(files.length).toBeGreaterThan(0);
});

test('every imported module is a dependency of its package', () => {
  const wrong = imports.filter((i) => {
    if (!external(i) && ours(i.from) === undefined) return false;
    const manifest = JSON.parse(
      readFileSync(join(root, 'packages', packageOf(i.file), 'package.json'), 'utf8'),
    );
    const name = i.from.startsWith('@') ? i.from.split('/').slice(0, 2).join('/') : i.from.split('/')[0];
    const known = {
      ...manifest.dependencies,
      ...(i.typesOnly && manifest.devDependencies),
      // Who imports the entry point installs them.
      ...(optionalIn.test(i.file) && manifest.peerDependencies),
    };
    return name !== undefined && known[name] === undefined;
  });
  expect(wrong).toEqual([]);
});

test('an index names its exports: a package exports nothing by accident', () => {
  const starred = globSync('packages/*/src/**/*.ts', { cwd: root }).filter((file) =>
    /^export\s+\*/m.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(starred).toEqual([]);
});

test('every test file belongs to one project, so none silently never runs; `later` runs some again', () => {
  const projects = (config.test?.projects ?? []).flatMap((project) =>
    typeof project === 'object' && 'test' in project && project.test?.name !== 'later'
      ? [{ include: project.test?.include ?? [], exclude: project.test?.exclude ?? [] }]
      : [],
  );
  const isOf = (globs: readonly string[], file: string) => globs.some((glob) => matchesGlob(file, glob));
  expect(projects.length).toBeGreaterThan(2);
  const files = globSync('test/**/*.{test,spec}.?(c|m)[jt]s?(x)', { cwd: root });
  const stray = files.filter(
    (file) =>
      projects.filter(({ include, exclude }) => isOf(include, file) && !isOf(exclude, file)).length !== 1,
  );
  expect(files.length).toBeGreaterThan(30);
  expect(stray).toEqual([]);
  expect(globSync('packages/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] })).toEqual([]);
});

test('every project names files that exist', () => {
  const globs = (config.test?.projects ?? []).flatMap((project) =>
    typeof project === 'object' && 'test' in project ? (project.test?.include ?? []) : [],
  );
  expect(globs.length).toBeGreaterThan(5);
  expect(globs.filter((glob) => globSync(glob, { cwd: root }).length === 0)).toEqual([]);
});

test('tests import packages by their public names; only the reference and the comparison of parsers read the verbs', () => {
  const files = globSync('test/**/*.ts', {
    cwd: root,
    exclude: ['test/docs/**', 'test/support/parsers.ts', 'test/e2e/cli.parsers.test.ts'],
  });
  const wrong = files.filter((file) =>
    /from '[^']*packages\/[a-z]+\/(?:src|dist)/.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(wrong).toEqual([]);
});

test('tests of the runtime open decks on the store that the project selects', () => {
  const files = globSync('test/{unit,integration}/runtime.*.test.ts', { cwd: root });
  expect(files.length).toBeGreaterThan(8);
  const wrong = files.filter((file) =>
    /^import \{[^}]*\bopenDeck\b[^}]*\} from '@tapedeck\/runtime'/m.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  );
  expect(wrong).toEqual([]);
});

test('each function that ARCHITECTURE.md names is in the file beside its name', () => {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').replaceAll(/\s+/g, ' ');
  const named = [...text.matchAll(/`([\w.]+)` \(\[[^\]]+\]\(([^)]+\.ts)\)/g)].map(
    ([, name = '', file = '']) => ({
      name: name.split('.').at(-1) ?? '',
      file,
    }),
  );
  const rows = [...text.matchAll(/\| \[[^\]]+\]\((packages[^)]+\.ts)\) \| `(\w+)`[:,]/g)].map(
    ([, file = '', name = '']) => ({ name, file }),
  );
  expect(named.length).toBeGreaterThan(15);
  expect(rows.length).toBeGreaterThan(1);
  const wrong = [...named, ...rows].filter(
    ({ name, file }) => !new RegExp(`\\b${name}\\b`).test(readFileSync(join(root, file), 'utf8')),
  );
  expect(wrong).toEqual([]);
});
