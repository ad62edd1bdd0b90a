import { expect, test } from 'vitest';
import { importsOf, sourceImports } from '../support/imports.ts';
import { circles, upwardImports } from '../support/rooms.ts';

/**
 * The rooms of each package, highest first: the folders of `src` and the files that lie beside them. A room imports
 * only rooms that stand below it in its list, type imports included.
 */
const rooms: Readonly<Record<string, readonly string[]>> = {
  tape: [
    'index',
    'conformance',
    'store',
    'inbox',
    'fork',
    'merge',
    'session',
    'check',
    'search',
    'history',
    'view',
    'lineage',
    'tape',
    'entry',
    'sqlite',
    'owner',
    'clock',
    'errors',
    'crash-point',
  ],
  graph: [
    'index',
    'draw-tree',
    'graph',
    'source',
    'journal',
    'check',
    'draw-lanes',
    'lineage',
    'record',
    'tail',
    'lines',
    'events',
    'lanes',
    'fold',
    'notations',
    'chain',
    'display',
    'errors',
    'node',
  ],
  runtime: [
    'index',
    'deck',
    'session',
    'delegation',
    'run',
    'turn',
    'merge',
    'history',
    'diff',
    'audit',
    'trace',
    'import',
    'watch',
    'config',
    'compaction',
    'prompt',
    'status',
    'terms',
    'tools',
    'model',
    'workspace',
    'lease',
    'stream',
    'usage',
    'fields',
    'errors',
    'crash-point',
  ],
  cli: [
    'main',
    'help',
    'verbs',
    'demo',
    'session',
    'config',
    'output',
    'options',
    'contract',
    'context',
    'home',
    'input',
    'io',
    'errors',
    'escape',
    'exit',
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
