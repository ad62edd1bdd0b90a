import { globSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { moduleDir } from './module-dir.ts';
import { allCodeBlocks, codeBlocks, howToUpdate, page, root, updating } from './pages.ts';
import { play, unplayed } from './play.ts';
import { steady } from './steady.ts';
import { typeErrorsOf } from './types.ts';

/** The pages whose blocks are played. */
const guide = ['README.md', ...globSync('docs/guide/*.md', { cwd: root }).toSorted()];

/** The pages that are played at this size: a push plays what newcomers read first, since all take 40 seconds. */
const now = updating ? guide : sized(['README.md'], guide, guide);

/** How the blocks begin that are not played here, and why. */
const notPlayed: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'README.md': {
    'npx --yes -p node@24 -p pnpm@12 pnpm demo': 'they install from the network, and run all tests',
    'pnpm -C CHECKOUT pack:all': 'test/e2e/packages.test.ts runs them',
  },
  'docs/guide/getting-started.md': {
    'npx --yes -p node@24 -p pnpm@12 pnpm tape --help': 'it installs from the network',
    'pnpm -C CHECKOUT pack:all': 'test/e2e/packages.test.ts runs them',
    'npx --yes $(printf': 'test/e2e/packages.test.ts runs it',
    'export OPENAI_BASE_URL': 'it needs a server',
  },
};

test('the pages of the guide were found', () => {
  expect(guide).toHaveLength(18);
});

test.each(now)(
  '%s prints what it says, from the first command to the last',
  (path) => {
    const text = page(path);
    expect(codeBlocks(text, 'console').length).toBeGreaterThan(0);
    const played = play(text);
    if (updating && steady(played) !== steady(text)) writeFileSync(join(root, path), played);
    else expect(steady(played), howToUpdate).toBe(steady(text));
  },
  240_000,
);

describe.each(guide)('%s', (path) => {
  const text = page(path);

  test('has no block that nothing runs, but for those that are listed with a reason', () => {
    const listed = Object.keys(notPlayed[path] ?? {});
    const begins = unplayed(text).map(({ code }) => listed.find((start) => code.startsWith(start)) ?? code);
    expect(begins).toEqual(listed);
  });

  test('names each file once', () => {
    const titles = allCodeBlocks(text).flatMap(({ title }) => title ?? []);
    expect(titles).toEqual([...new Set(titles)]);
  });
});

test.runIf(sized(false, true, true))(
  'the types of the programs and configurations of the guide are right',
  () => {
    using dir = moduleDir();
    const programs = guide.flatMap((path, i) =>
      allCodeBlocks(page(path)).flatMap(({ title = '', code }) =>
        title.endsWith('.mts') ? [{ folder: `page-${i}`, file: `page-${i}/${title}`, code }] : [],
      ),
    );
    expect(programs.length).toBeGreaterThan(5);
    for (const { folder, file, code } of programs) {
      mkdirSync(dir.file(folder), { recursive: true });
      writeFileSync(dir.file(file), code);
    }
    expect(
      typeErrorsOf(
        dir.path,
        programs.map(({ file }) => file),
      ),
    ).toBe('');
  },
  240_000,
);
