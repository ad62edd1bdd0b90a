import { checkKinds } from '@tapedeck/runtime/internal';
import { expect, test } from 'vitest';
import { page } from './pages.ts';

const text = page('docs/findings.md');

test('the page has a paragraph on each kind of finding, and on no other', () => {
  const sections = [...text.matchAll(/^### (\S+)\n\n(\S.*)/gm)];
  expect(sections.map(([, code]) => code).sort()).toEqual(Object.keys(checkKinds).sort());
});

test('each paragraph is in the section of the finding', () => {
  let section = '';
  for (const [, level, title = ''] of text.matchAll(/^(##|###) (.+)$/gm)) {
    if (level === '##') section = title.toLowerCase().replace(' ', '_');
    else expect([title, checkKinds[title as keyof typeof checkKinds][0]]).toEqual([title, section]);
  }
});
