import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, root, sourceImports } from '../support/imports.ts';
import { arrows, circles, paragraphFaults, paragraphOf, roomOf, upwardImports } from '../support/rooms.ts';

/**
 * The rooms of each package, highest first: the folders of `src` and the files that lie beside them. A room imports
 * only rooms that stand below it in its list, type imports included.
 */
const rooms: Readonly<Record<string, readonly string[]>> = {
  tape: [
    'index',
    'internal',
    'conformance',
    'copy',
    'remote',
    'postgres',
    'store',
    'bundle',
    'check',
    'inbox',
    'fork',
    'merge',
    'identity',
    'session',
    'history',
    'search',
    'view',
    'lineage',
    'tape',
    'entry',
    'sqlite',
    'db',
    'clock',
    'secrets',
    'origin',
    'owner',
    'errors',
    'progress',
    'crash-point',
  ],
  graph: [
    'index',
    'draw-tree',
    'graph',
    'source',
    'journal',
    'check',
    'compare',
    'draw-lanes',
    'draw-svg',
    'lineage',
    'record',
    'tail',
    'seek',
    'lines',
    'lanes',
    'drawn-line',
    'layout',
    'forest',
    'fold',
    'notations',
    'chain',
    'display',
    'errors',
    'node',
  ],
  runtime: [
    'index',
    'chat-client',
    'testing',
    'internal',
    'pg-boss',
    'deck',
    'chat',
    'recorded',
    'session',
    'title',
    'recovery',
    'delegation',
    'run',
    'turn',
    'merge',
    'history',
    'diff',
    'check',
    'audit',
    'blame',
    'trace',
    'export',
    'logs',
    'transcripts',
    'discovery',
    'sources',
    'import',
    'edges',
    'copies',
    'imported',
    'formats',
    'plan',
    'lines',
    'config',
    'identity',
    'compaction',
    'prompt',
    'status',
    'terms',
    'builtins',
    'permissions',
    'mcp',
    'tools',
    'traffic',
    'model',
    'workspace',
    'lease',
    'ui',
    'stream',
    'telemetry',
    'usage',
    'store-of',
    'process-group',
    'fields',
    'errors',
    'crash-point',
  ],
  cli: [
    'start',
    'main',
    'internal',
    'complete',
    'records',
    'help',
    'command-line',
    'early-exit',
    'verbs',
    'demo',
    'mcp',
    'install',
    'chat',
    'worker',
    'ui',
    'page',
    'export',
    'forget',
    'import',
    'session',
    'copied',
    'config',
    'transcript',
    'output',
    'options',
    'contract',
    'question',
    'context',
    'lineage',
    'without-deleted',
    'graph-file',
    'home',
    'file-home',
    'progress-line',
    'server-home',
    'blocked',
    'reference',
    'similar',
    'recent',
    'user',
    'origin',
    'state-file',
    'fitted-io',
    'masked-io',
    'input',
    'io',
    'plain-streams',
    'pager',
    'errors',
    'escape',
    'terminal',
    'exit',
    'package-file',
    'addon',
  ],
};

/** A session forks children, a child is a session, and both work with the parts that make them. */
const allowed: readonly string[] = ['child', 'parts', 'session'].map(
  (name) => `packages/runtime/src/session/${name}.ts`,
);

const imports = sourceImports();
const ofPackage = (name: string) => imports.filter(({ file }) => file.startsWith(`packages/${name}/src/`));

test.each(Object.keys(rooms))('rooms import downward: %s', (name) => {
  expect(ofPackage(name).length).toBeGreaterThan(20);
  expect(upwardImports(ofPackage(name), rooms[name] ?? [])).toEqual([]);
});

test.each(Object.keys(rooms))('no files import each other in a circle: %s', (name) => {
  expect(circles(ofPackage(name)).filter((circle) => circle.join() !== allowed.join())).toEqual([]);
});

const packages = ['cli', 'runtime', 'graph', 'tape'].map((name) => `@tapedeck/${name}`);

/** The top files of folders that have none of the folder's name and no index. */
const topFiles: Readonly<Record<string, string>> = {
  'packages/cli/src': 'main.ts',
  'packages/cli/src/command-line': 'line.ts',
  'packages/cli/src/config': 'deck.ts',
  'packages/cli/src/copied': 'log.ts',
  'packages/cli/src/errors': 'kinds.ts',
  'packages/cli/src/export': 'transcript.ts',
  'packages/cli/src/import': 'found.ts',
  'packages/cli/src/install': 'settle.ts',
  'packages/cli/src/mcp': 'server.ts',
  'packages/cli/src/options': 'inherit.ts',
  'packages/cli/src/output': 'status.ts',
  'packages/cli/src/session': 'sent.ts',
  'packages/cli/src/terminal': 'width.ts',
  'packages/cli/src/ui': 'serve.ts',
  'packages/runtime/src/history': 'rewind.ts',
  'packages/runtime/src/import': 'reconcile.ts',
  'packages/runtime/src/formats': 'read-transcript.ts',
  'packages/runtime/src/formats/claude-code': 'plan-of.ts',
  'packages/runtime/src/identity': 'route.ts',
  'packages/tape/src/check': 'verify.ts',
  'packages/tape/src/history': 'rewind.ts',
  'packages/tape/src/lineage': 'line.ts',
  'packages/tape/src/origin': 'elsewhere.ts',
  'packages/runtime/src/lease': 'hold.ts',
  'packages/runtime/src/ui': 'turns.ts',
  'packages/runtime/src/prompt': 'system-prompt.ts',
  'packages/runtime/src/recovery': 'recover.ts',
  'packages/runtime/src/stream': 'chunks.ts',
  'packages/runtime/src/tools': 'execute.ts',
  'packages/runtime/src/telemetry': 'span.ts',
  'packages/runtime/src/permissions': 'decide.ts',
  'packages/runtime/src/mcp': 'servers.ts',
};

function topFileOf(folder: string): string {
  const names = [topFiles[folder], `${basename(folder)}.ts`, 'index.ts'];
  const found = names.find((name) => name !== undefined && existsSync(join(root, folder, name)));
  return found === undefined ? '' : join(folder, found);
}

/** The imports of a folder: of a package, other packages; of a room, other rooms. Each with its order. */
function importsOfFolder(folder: string): { order: readonly string[]; imported: readonly string[] } {
  const inside = imports.filter(({ file }) => file.startsWith(`${folder}/`));
  if (folder.endsWith('/src')) {
    const found = inside.map(({ from }) => from.split('/').slice(0, 2).join('/'));
    return { order: packages, imported: packages.filter((name) => found.includes(name)) };
  }
  const order = rooms[folder.split('/')[1] ?? ''] ?? [];
  const found = arrows(inside).map(({ to }) => roomOf(to));
  return { order, imported: order.filter((room) => found.includes(room) && room !== basename(folder)) };
}

const folders = Map.groupBy(globSync('packages/*/src/**/*.ts', { cwd: root }), dirname);
const large = [...folders].filter(([, files]) => files.length > 3).map(([folder]) => folder);

test('the test finds the folders', () => {
  expect(large.length).toBeGreaterThan(30);
  expect(Object.keys(topFiles).filter((folder) => !folders.has(folder))).toEqual([]);
});

test.each(large)('a paragraph at the top states the purpose and the imports of the folder: %s', (folder) => {
  const top = topFileOf(folder);
  expect(top, 'no file has the name of the folder, and none is named in topFiles').not.toBe('');
  const paragraph = paragraphOf(readFileSync(join(root, top), 'utf8'));
  expect({ top, faults: paragraphFaults(paragraph, importsOfFolder(folder)) }).toEqual({ top, faults: [] });
});

test('a paragraph that states too little is reported', () => {
  const about = 'What the room is for, '.repeat(10);
  const faults = (text: string) =>
    paragraphFaults(paragraphOf(text), { order: ['a', 'b', 'c', 'd'], imported: ['b', 'd'] });
  expect(faults('import { a } from "./a.ts";\n/** A room. */')).toEqual([
    'it does not begin with a paragraph',
  ]);
  expect(faults('/** A room. Imports `b` and `d`. */')).toEqual(['it does not begin with a paragraph']);
  expect(faults(`/** ${about}. */`)).toEqual(['its paragraph does not say what it imports']);
  expect(faults(`/**\n * ${about}. Imports\n * \`b\`. It knows no \`d\`.\n */`)).toEqual([
    'it imports d, which it does not say',
  ]);
  expect(faults(`/** ${about}. Imports \`c\` and what lies below. */`)).toEqual([
    'it imports b, which it does not say',
  ]);
  expect(faults(`/** ${about}. Imports \`b\`, \`x.ts\` and \`d\`. */`)).toEqual(['there is no x.ts']);
  expect(faults(`/** ${about}. Imports \`b\` and what lies below. */`)).toEqual([]);
  expect(faults(`/** ${about}. May import \`d\` and \`b\`. */`)).toEqual([]);
});

test('the map in ARCHITECTURE.md lists the rooms in this order', () => {
  const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const lines = /^```\n(cli[\s\S]*?)^```$/m.exec(page)?.[1]?.trimEnd().split('\n') ?? [];
  const map: Record<string, string[]> = {};
  let current: string[] = [];
  for (const line of lines) {
    const [name, names] = [line.slice(0, 11).trim(), line.slice(11, 51).trim()];
    if (name !== '') map[name] = current = [];
    current.push(...names.split(/ +/));
  }
  expect(map).toEqual(rooms);
});

test('an import that points upward is reported with its file, whichever way it is written', () => {
  const order = ['high', 'low'];
  const upward = (line: string) => upwardImports(importsOf('packages/tape/src/low/a.ts', line), order);
  const reported = [
    'packages/tape/src/low/a.ts -> packages/tape/src/high/b.ts: the room high is not below low',
  ];
  expect(upward("import { b } from '../high/b.ts';")).toEqual(reported);
  expect(upward("import {\n  b,\n  c,\n} from '../high/b.ts';")).toEqual(reported);
  expect(upward("import type { B } from '../high/b.ts';")).toEqual(reported);
  expect(upward("import '../high/b.ts';")).toEqual(reported);
  expect(upward("export { b } from '../high/b.ts';")).toEqual(reported);
  expect(upward("const { b } = await import('../high/b.ts');")).toEqual(reported);
  expect(upward("const { b } = await import('../high/b.ts', {});")).toEqual(reported);
  expect(upward("const { b } = await import(/* later */ '../high/b.ts');")).toEqual(reported);
  expect(upward('const { b } = await import(`../high/b.ts`);')).toEqual(reported);
  expect(upward("type B = typeof import('../high/b.ts');")).toEqual(reported);
  expect(upward("import { c } from './c.ts';")).toEqual([]);
  expect(upward("import { d } from '../other/d.ts';")).toEqual([
    'packages/tape/src/low/a.ts -> packages/tape/src/other/d.ts: the room other is not in the list',
  ]);
});

test('a circle of files is reported, whichever way its imports are written', () => {
  const files = {
    'packages/tape/src/low/a.ts': "import type { B } from './b.ts';\nimport { d } from './d.ts';",
    'packages/tape/src/low/b.ts': "const { c } = await import('./c.ts');",
    'packages/tape/src/low/c.ts': "export { a } from './a.ts';",
    'packages/tape/src/low/d.ts': '',
  };
  expect(circles(Object.entries(files).flatMap(([file, text]) => importsOf(file, text)))).toEqual([
    ['packages/tape/src/low/a.ts', 'packages/tape/src/low/b.ts', 'packages/tape/src/low/c.ts'],
  ]);
});
