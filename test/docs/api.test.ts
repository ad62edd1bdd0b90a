import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { entryPoints, packages } from '../support/consumer.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { examples, type Section, sections } from './examples.ts';
import { moduleDir } from './module-dir.ts';
import { page, root } from './pages.ts';
import { plainEnv } from './tape.ts';
import { typeErrorsOf } from './types.ts';

const unpromised = [
  '@tapedeck/tape/internal',
  '@tapedeck/tape/crash-point',
  '@tapedeck/runtime/internal',
  '@tapedeck/cli/internal',
];
const promised = packages.flatMap(entryPoints).filter((name) => !unpromised.includes(name));

/** The generated pages below a directory, by their paths from it. */
const pagesBelow = (dir: string): string[] => globSync('**/*.md', { cwd: dir }).toSorted();

test('every promised entry point has a page of reference, and no other has', () => {
  const names = pagesBelow(join(root, 'docs/api'))
    .filter((path) => path !== 'README.md')
    .map((path) => `@tapedeck/${path.slice(0, -'.md'.length)}`);
  expect(names.toSorted()).toEqual(promised.toSorted());
  for (const name of names)
    expect(page(`docs/api/${name.slice('@tapedeck/'.length)}.md`)).toMatch(new RegExp(`^# ${name}\n`));
});

if (sized(false, true, true))
  test('the reference is what TypeDoc makes of the sources', () => {
    using dir = tempDir();
    const typedoc = [join(root, 'node_modules/typedoc/bin/typedoc'), '--out', dir.path, '--logLevel', 'Warn'];
    const { status, stdout, stderr } = spawnSync(process.execPath, typedoc, { cwd: root, encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
    const made = pagesBelow(dir.path);
    const stale = 'stale: write it anew with pnpm docs:api';
    expect(pagesBelow(join(root, 'docs/api')), stale).toEqual(made);
    for (const path of made)
      expect(page(`docs/api/${path}`), stale).toBe(readFileSync(dir.file(path), 'utf8'));
  });

/** What the models of the examples answer. */
const answers = [
  { when: { text: 'as JSON' }, text: '{"passed":12}' },
  { when: { text: 'as JSON' }, text: '{"passed":12}' },
  {
    when: { text: 'Delegate the checks.' },
    toolCalls: [{ name: 'delegate', input: { tasks: [{ task: 'Check the tests.' }] } }],
  },
  { text: 'Test, tag, publish.' },
  { text: 'Test, tag, publish.' },
];

const shown = examples();

/** Printed after each example. */
const end = '--- end of example ---\n';

/** Examples with a home on a server, which is not there: their types are checked, and they are not run. */
const isOnServer = ({ code }: { readonly code: string }) => code.includes('postgres://');

/** Runs each other example in a directory of its own. */
const driver = `
import { mkdirSync, writeFileSync } from 'node:fs';
const here = process.cwd();
for (let i = 0; i < ${shown.length}; i++) {
  mkdirSync(here + '/' + i);
  process.chdir(here + '/' + i);
  writeFileSync('answers.json', ${JSON.stringify(JSON.stringify(answers))});
  if (!${JSON.stringify(shown.map(isOnServer))}[i]) await import(here + '/example-' + i + '.mjs');
  process.stdout.write(${JSON.stringify(end)});
}
`;

test.runIf(sized(false, true, true))(
  'the examples in docstrings have right types, and print what their comments say',
  () => {
    using dir = moduleDir();
    const modules = shown.map((_, i) => `example-${i}.mts`);
    for (const [i, { code }] of shown.entries()) writeFileSync(dir.file(`example-${i}.mts`), code);
    const where = (_: string, i: string) => shown[Number(i)]?.at ?? '';
    expect(typeErrorsOf(dir.path, modules).replace(/^example-(\d+)\.mts/gm, where)).toBe('');
    writeFileSync(dir.file('driver.mjs'), driver);
    const ran = spawnSync(process.execPath, ['driver.mjs'], {
      cwd: dir.path,
      env: plainEnv(dir.path),
      encoding: 'utf8',
    });
    const said = ran.stdout.split(end).slice(0, -1);
    const broken = said.length < shown.length ? `${shown[said.length]?.at}: ${ran.stderr}` : ran.stderr;
    expect(broken).toBe('');
    expect(shown.map(({ at }, i) => ({ at, says: said[i] }))).toEqual(
      shown.map((one) => ({ at: one.at, says: isOnServer(one) ? '' : one.says })),
    );
  },
);

test('no docstring has an example that this file does not run', () => {
  const marked = globSync('packages/*/src/**/*.ts', { cwd: root }).flatMap(
    (file) => page(file).match(/^ *\* @example\b/gm) ?? [],
  );
  expect(shown.length).toBe(marked.length);
});

test('the examples use public names only', () => {
  const imported = shown.flatMap(({ at, code }) =>
    Array.from(code.matchAll(/from '(@tapedeck\/[^']+)'/g), ([, name = '']) => ({ at, name })),
  );
  expect(imported.filter(({ name }) => !promised.includes(name))).toEqual([]);
});

/**
 * Programs call functions, construct or catch classes, and call the methods of interfaces. Other types are shapes, and
 * other variables values: those need no example.
 */
const isCalled = ({ group, text }: Section) =>
  group === 'Functions' || group === 'Classes' || (group === 'Interfaces' && /^#### Methods$/m.test(text));

test.each(['tape', 'graph', 'runtime'])('all that programs call of @tapedeck/%s has an example', (name) => {
  const called = sections(`docs/api/${name}.md`).filter(isCalled);
  expect(called.length).toBeGreaterThan(10);
  expect(called.filter(({ text }) => !/^#{4,5} Example$/m.test(text)).map((section) => section.name)).toEqual(
    [],
  );
});

test('each group of methods of a store has an example', () => {
  const groups = sections('docs/api/tape/store.md').filter(
    (section) => section.group === 'Interfaces' && isCalled(section),
  );
  expect(groups.map((section) => section.name)).toEqual(
    expect.arrayContaining(['Entries', 'Views', 'Lineage']),
  );
  expect(groups.filter(({ text }) => !/^#{4,5} Example$/m.test(text)).map((section) => section.name)).toEqual(
    [],
  );
});
