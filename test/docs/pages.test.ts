import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { page, pages, root, tableAfter } from './pages.ts';

/** The text of a page without its code, where brackets mean other things. */
const prose = (text: string) => text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '');

/** The anchors that headings make, as GitHub makes them: a heading that repeats another gets a number. */
function anchors(text: string): Set<string> {
  const seen = new Map<string, number>();
  const ofHeadings = Array.from(prose(text.replaceAll('`', '')).matchAll(/^#+ (.+)$/gm), (heading) => {
    const slug = (heading[1] ?? '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    return before === 0 ? slug : `${slug}-${before}`;
  });
  const set = Array.from(text.matchAll(/<a id="([^"]+)">/g), ([, id = '']) => id);
  return new Set([...ofHeadings, ...set]);
}

/** The broken links of a page. */
function brokenLinks(path: string): string[] {
  const known = new Map<string, Set<string>>();
  const anchorsOf = (target: string) => {
    const found = known.get(target) ?? anchors(page(target));
    known.set(target, found);
    return found;
  };
  const links = Array.from(page(path).matchAll(/\]\(([^)\s]+)\)/g), (link) => link[1] ?? '');
  return links.filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? path : join(dirname(path), file);
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && !anchorsOf(target).has(anchor);
  });
}

const { scripts } = JSON.parse(page('package.json')) as { scripts: Readonly<Record<string, string>> };

/** The commands after `pnpm` in the code of a page, in blocks and between backticks. */
function pnpmCommands(text: string): string[] {
  const code = Array.from(text.matchAll(/^```[\s\S]*?^```$|`[^`\n]*`/gm), ([found]) => found).join('\n');
  return Array.from(code.matchAll(/(?<![\w@])pnpm ([a-z][\w:-]*)/g), ([, command = '']) => command);
}

test('the test finds the pages', () => {
  const found = pages();
  for (const path of ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'AGENTS.md', 'docs/promises.md'])
    expect(found).toContain(path);
  expect(pnpmCommands(page('CONTRIBUTING.md'))).toContain('test:full');
});

describe.each(pages())('%s', (path) => {
  test('has no broken link', () => {
    expect(brokenLinks(path)).toEqual([]);
  });

  test('names no script that is not in package.json', () => {
    const known = new Set([...Object.keys(scripts), 'add', 'exec', 'install', 'pack']);
    expect(pnpmCommands(page(path)).filter((command) => !known.has(command))).toEqual([]);
  });

  test('names no path of one machine, and no registry', () => {
    const text = page(path);
    expect(text.match(/(?<![\w.~])\/(?:home|work|root|tmp|Users|var|opt|mnt)\/\S*/g) ?? []).toEqual([]);
    expect(text.match(/\b(?:registry\.|npmjs|jfrog|artifactory|verdaccio|proxy\.golang)\S*/gi) ?? []).toEqual(
      [],
    );
  });

  test('has no tab, no trailing space, and ends with one newline', () => {
    const text = page(path);
    expect(text.split('\n').filter((line) => /\t| $/.test(line))).toEqual([]);
    expect(text.endsWith('\n') && !text.endsWith('\n\n')).toBe(true);
  });
});

test('the glossary is sorted, and defines each word once', () => {
  const words = tableAfter(page('docs/glossary.md'), 'Glossary').map(([word = '']) =>
    word.replaceAll('*', ''),
  );
  expect(words).toEqual([...new Set(words)].toSorted((a, b) => a.localeCompare(b, 'en')));
});

/** Pages of docstrings, as TypeDoc writes them. */
const isGenerated = (path: string) => path.startsWith('docs/api/');

describe.each(pages().filter((path) => !isGenerated(path)))('%s', (path) => {
  test('has no line over 120 characters outside of code, tables and links', () => {
    const prose = page(path).replaceAll(/^```[\s\S]*?^```$/gm, '');
    const long = prose
      .split('\n')
      .filter((line) => line.length > 120 && !/^\s*\|/.test(line) && !/\S{100,}/.test(line));
    expect(long).toEqual([]);
  });
});

test('no page, comment, docstring or test title cites a requirement id, which a reader cannot look up', () => {
  const files = ['packages/*/src/**/*.ts', 'test/**/*.ts', 'examples/*.ts', '**/*.md'].flatMap((pattern) =>
    globSync(pattern, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] }),
  );
  const cited = files.filter((file) => /\((?:[BCDGJKMNRTX]\d{1,3})(?:[,;) -]|$)/m.test(page(file)));
  expect(files.length).toBeGreaterThan(500);
  expect(cited).toEqual([]);
});
