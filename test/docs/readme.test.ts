import { expect, test } from 'vitest';
import { codeBlocks, page } from './pages.ts';

test('the page contains the two commands letter for letter', () => {
  const commands = codeBlocks(page('README.md'), 'sh').join('');
  expect(commands).toContain(
    'npx --yes -p node@24 -p pnpm@12 pnpm demo     # installs, builds, runs the main job\n' +
      'npx --yes -p node@24 -p pnpm@12 pnpm test     # installs if needed, builds, passes the tests\n',
  );
});
