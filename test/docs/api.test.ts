import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { entryPoints, packages } from '../support/consumer.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { page, root } from './pages.ts';

const unpromised = ['@tapedeck/tape/internal', '@tapedeck/tape/crash-point', '@tapedeck/runtime/internal'];
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

test.runIf(sized(false, true, true))('the reference is what TypeDoc makes of the sources', () => {
  using dir = tempDir();
  const typedoc = [join(root, 'node_modules/typedoc/bin/typedoc'), '--out', dir.path, '--logLevel', 'Warn'];
  const { status, stdout, stderr } = spawnSync(process.execPath, typedoc, { cwd: root, encoding: 'utf8' });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  const made = pagesBelow(dir.path);
  const stale = 'stale: write it anew with pnpm docs:api';
  expect(pagesBelow(join(root, 'docs/api')), stale).toEqual(made);
  for (const path of made) expect(page(`docs/api/${path}`), stale).toBe(readFileSync(dir.file(path), 'utf8'));
});
