import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { page, pages, root } from './pages.ts';

/** Words that hide who does what. A text names the process, the caller or the user, and the act. */
const banned =
  /\b(?:told|nobody|somebody|whoever)\b|\b(?:goes|gone|go) on with\b|\b(?:comes?|came) home\b|\basked for\b|\bheld by\b|\bis none\b/gi;

/** A title, and what follows it: options, if any, and the function of the test. */
const title =
  /\(\s*(['"`])((?:\\.|(?!\1)[^\\])+)\1,\s*(?:\{[^{}]*\},\s*)?(?:async )?(?:\(|\w+ =>|\w+,?\s*\))/g;

function titles(source: string): string[] {
  return Array.from(source.matchAll(title), ([, , text = '']) => text);
}

test('no test title uses a banned word', () => {
  const files = globSync('test/**/*.test.ts', { cwd: root });
  const all = files.flatMap((file) => titles(page(file)).map((text) => `${file}: ${text}`));
  expect(all.length).toBeGreaterThan(1200);
  expect(all.filter((text) => text.match(banned) !== null)).toEqual([]);
});

test('no page uses a banned word outside of code', () => {
  const checked = pages();
  const found = checked.flatMap((path) => {
    const prose = page(path).replace(/^```[\s\S]*?^```$|`[^`\n]*`/gm, '');
    return (prose.match(banned) ?? []).map((word) => `${path}: ${word}`);
  });
  expect(checked).toContain('docs/format.md');
  expect(found).toEqual([]);
});
