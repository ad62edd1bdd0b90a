import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../support/imports.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Runs a test file as the project runs its own; the code of the run, and its last line. */
function runOf(body: string): { readonly code: number | null; readonly last: string | undefined } {
  using dir = tempDir();
  const own = (path: string) => JSON.stringify(join(root, 'test', path));
  symlinkSync(join(root, 'node_modules'), dir.file('node_modules'));
  writeFileSync(
    dir.file('vitest.config.mjs'),
    `export default { test: { reporters: [${own('reporter.ts')}], setupFiles: [${own('support/no-late-rejections.ts')}] } };`,
  );
  writeFileSync(
    dir.file('it.test.mjs'),
    `import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
test('it', async () => { ${body} });
`,
  );
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run'],
    {
      cwd: dir.path,
      encoding: 'utf8',
      env: { ...process.env, NO_COLOR: '1' },
    },
  );
  return { code: status, last: stdout.trimEnd().split('\n').at(-1) };
}

test('a run ends with one line that counts its tests', () => {
  expect(runOf('')).toEqual({ code: 0, last: '1 passed, 0 failed, 0 skipped' });
});

test('a run fails when a promise rejects before anything awaits it, and says so in that line', () => {
  const { code, last } = runOf(`
    const late = Promise.reject(new Error('late'));
    await setImmediate();
    await expect(late).rejects.toThrow('late');
  `);
  expect(code).toBe(1);
  expect(last).toMatch(/^1 passed, [12] failed, 0 skipped$/);
});

test('a run fails when Node.js warns of a promise', () => {
  const { code, last } = runOf(`process.emitWarning('late', 'PromiseRejectionHandledWarning');`);
  expect({ code, last }).toEqual({ code: 1, last: '1 passed, 1 failed, 0 skipped' });
});
