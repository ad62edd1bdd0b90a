import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { entryPoints, packages } from '../support/consumer.ts';
import { moduleDir } from './module-dir.ts';
import { codeBlocks, page, tableAfter } from './pages.ts';
import { plainEnv } from './tape.ts';

test.each(packages)('the page of @tapedeck/%s names every entry point', (name) => {
  const named = tableAfter(page(`packages/${name}/README.md`), `@tapedeck/${name}`).map(([entry]) => entry);
  expect(named).toEqual(entryPoints(name));
});

test('manifests, pages, the command and the CI agree on the lowest Node.js', () => {
  const engines = ['', ...packages.map((name) => `packages/${name}/`)].map(
    (dir) => (JSON.parse(page(`${dir}package.json`)) as { engines: { node: string } }).engines.node,
  );
  const [, lowest = ''] = /^>=(\d+\.\d+)\.0$/.exec(engines[0] ?? '') ?? [];
  expect(new Set(engines)).toEqual(new Set([`>=${lowest}.0`]));
  const pages = ['README.md', 'CONTRIBUTING.md', 'docs/guide/getting-started.md', 'docs/library.md'];
  for (const name of [...pages, ...packages.map((name) => `packages/${name}/README.md`)])
    expect([name, page(name)]).toEqual([name, expect.stringContaining(`Node.js ${lowest}`)]);
  const [major, minor] = lowest.split('.');
  expect(page('packages/cli/bin/tape.js')).toContain(`major === ${major} && minor < ${minor}`);
  expect(page('.ci/run')).toContain(`a == ${major} && b >= ${minor}`);
});

test.each([
  ['tape', /^idea \[ 1, 2 \] 3\n$/],
  ['graph', /^main {2}session {2}active\n╰─ (main-fork-[0-9a-f]{8}) .*\n\[ '\1' \]\n$/],
  ['runtime', /^Run the tests first\.\n$/],
])('the program on the page of @tapedeck/%s runs', (name, said) => {
  using dir = moduleDir();
  const run = (code: string) => {
    writeFileSync(dir.file('program.mjs'), code);
    const { status, stdout, stderr } = spawnSync(process.execPath, ['program.mjs'], {
      cwd: dir.path,
      env: plainEnv(dir.path),
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  if (name === 'graph') expect(run(homeWithFork).status).toBe(0);
  const [code = ''] = codeBlocks(page(`packages/${name}/README.md`), 'js');
  expect(run(code)).toEqual({ status: 0, stdout: expect.stringMatching(said), stderr: '' });
});

const homeWithFork = `
import { openDeck } from '@tapedeck/runtime';
await using deck = await openDeck({ home: '.tape' });
await (await deck.session('main')).fork();
`;
