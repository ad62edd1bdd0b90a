import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { manPages } from './man-pages.ts';
import { page, root, updating } from './pages.ts';

const folder = join(root, 'packages/cli/man');
const pages = manPages();

if (updating) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const [file, text] of pages) writeFileSync(join(folder, file), text);
  const path = 'packages/cli/package.json';
  const manifest = { ...JSON.parse(page(path)), man: [...pages.keys()].map((file) => `./man/${file}`) };
  writeFileSync(join(root, path), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

test('the manual is what the verbs and the topics declare', () => {
  const how = 'stale: write it anew with pnpm docs:man';
  expect(readdirSync(folder).sort(), how).toEqual([...pages.keys()].sort());
  for (const [file, text] of pages) expect(readFileSync(join(folder, file), 'utf8'), how).toBe(text);
});

test('npm installs every page', () => {
  const { man, files } = JSON.parse(page('packages/cli/package.json')) as { man: string[]; files: string[] };
  expect(man, 'stale: pnpm docs:man').toEqual([...pages.keys()].map((file) => `./man/${file}`));
  expect(files).toContain('man');
});

test('a page has the sections of a manual, and requests that man knows', () => {
  for (const [file, text] of pages) {
    const lines = text.split('\n');
    expect(lines[3]).toBe('.SH NAME');
    expect(lines[4], file).toMatch(/^tape(?:\\-[a-z]+)? \\- [A-Z]/);
    const requests = new Set(lines.filter((line) => /^[.']/.test(line)).map((line) => line.split(' ')[0]));
    for (const request of requests)
      expect(['.\\"', '.TH', '.ad', '.SH', '.PP', '.TP', '.B', '.nf', '.fi']).toContain(request);
    // Every backslash begins an escape that the generator writes.
    expect(text.replace(/^\.\\".*$|\\(?:-|e|&|:|\(dq|f[BR]|\[u[0-9A-F]{4,6}\])/gm, '')).not.toContain('\\');
  }
});

/** The command that reads a page and complains: none on a push, or where the machine has none. */
const checker = (
  [
    ['mandoc', ['-T', 'lint', '-W', 'warning']],
    ['man', ['--warnings=w', '-l']],
  ] as const
).find(([command]) => spawnSync(command, ['-l', '/dev/null']).error === undefined);

if (checker === undefined && sized(false, true, true))
  console.warn('skipped: man reads the manual; there is no man');

/** In columns. Each page is read at one of them, and in a soak at all. */
const widths = ['40', '80', '120'];

if (sized(false, true, true))
  describe.skipIf(checker === undefined)('man', () => {
    test.each([...pages.keys()].map((file, i) => [file, i] as const))(
      'reads %s without a warning',
      (file, i) => {
        const [command, args] = checker ?? ['', []];
        for (const MANWIDTH of widths.filter((_, n) => sized(false, n === i % widths.length, true))) {
          const { status, stdout, stderr } = spawnSync(command, [...args, join(folder, file)], {
            encoding: 'utf8',
            env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', MANWIDTH, MANROFFOPT: '' },
          });
          expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
          if (command === 'man') expect(stdout).toContain('SYNOPSIS');
        }
      },
    );
  });
