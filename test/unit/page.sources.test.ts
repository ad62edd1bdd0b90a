import { globSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, root } from '../support/imports.ts';

const page = 'packages/cli/ui';
const files = globSync(`${page}/**/*.{ts,tsx,css,html}`, { cwd: root });
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
const imports = files.flatMap((file) => importsOf(file, textOf(file)));

test('the test finds the sources of the page', () => {
  expect(files.length).toBeGreaterThan(20);
  expect(imports.length).toBeGreaterThan(50);
});

test('no source of the page makes elements or code of a text', () => {
  const ways =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\b/;
  expect(files.filter((file) => ways.test(textOf(file)))).toEqual([]);
});

test('no source of the page names another address than those of its own server', () => {
  const addresses = files.flatMap((file) => textOf(file).match(/\b(?:https?|wss?):\/\/[^\s'"]+/g) ?? []);
  expect(new Set(addresses)).toEqual(new Set(['http://www.w3.org/2000/svg']));
});

test('the page shares types alone with the command', () => {
  const outside = imports.filter(
    ({ file, from }) => from.startsWith('.') && !normalize(join(file, '..', from)).startsWith(`${page}/`),
  );
  expect(new Set(outside.map(({ file, from }) => normalize(join(file, '..', from))))).toEqual(
    new Set(['packages/cli/src/page/data.ts', 'packages/cli/src/page/embedded.ts']),
  );
  expect(outside.filter(({ typesOnly }) => !typesOnly)).toEqual([]);
});

test('what the page is made of is bundled: users install nothing of it', () => {
  const { dependencies, devDependencies } = JSON.parse(textOf('packages/cli/package.json'));
  const names = imports
    .filter(({ from }) => !from.startsWith('.'))
    .map(({ from }) =>
      from
        .split('/')
        .slice(0, from.startsWith('@') ? 2 : 1)
        .join('/'),
    );
  for (const name of new Set(names)) {
    expect(dependencies).not.toHaveProperty([name]);
    expect(devDependencies).toHaveProperty([name]);
  }
});
