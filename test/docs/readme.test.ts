import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verbs } from '../../packages/cli/dist/verbs/index.js';
import { nameOf } from '../../packages/cli/dist/verbs/verb.js';
import { project } from '../support/project.ts';
import { tempDir } from '../support/temp-dir.ts';
import { moduleDir } from './module-dir.ts';
import { codeBlocks, howToUpdate, page, root, tableAfter, updating } from './pages.ts';
import { steady } from './steady.ts';
import { plainEnv, shell } from './tape.ts';

const readme = page('README.md');

/** A console block as it reads when its commands are run, one after another. */
function played(block: string, dir: string): string {
  const env = { TAPE_HOME: join(dir, '.tape'), TAPE_MODEL: 'script:answers.json' };
  return block
    .split('\n')
    .filter((line) => line.startsWith('$ '))
    .map((line) => `${line}\n${shell(dir, line.slice(2), env)}`)
    .join('');
}

test('the transcript matches what the commands print', () => {
  using dir = tempDir();
  const [answers = ''] = codeBlocks(readme, 'json');
  writeFileSync(dir.file('answers.json'), answers);
  const blocks = codeBlocks(readme, 'console');
  expect(blocks.length).toBeGreaterThan(0);
  let text = readme;
  for (const block of blocks) {
    const said = played(block, dir.path);
    if (updating && steady(block) !== steady(said)) text = text.replace(block, () => said);
    else expect(steady(block), howToUpdate).toBe(steady(said));
  }
  if (text !== readme) writeFileSync(join(root, 'README.md'), text);
});

test('the library example runs offline, and prints what the page says', () => {
  using dir = moduleDir();
  const [example = ''] = codeBlocks(readme, 'js');
  writeFileSync(dir.file('example.mjs'), example);
  const said = execFileSync(process.execPath, ['example.mjs'], {
    cwd: dir.path,
    env: plainEnv(dir.path),
    encoding: 'utf8',
  });
  expect(steady(said)).toBe(steady(codeBlocks(readme, 'text')[0] ?? ''));
});

test('the configuration runs unchanged once it is trusted', async () => {
  using p = project();
  p.write('tape.config.mts', codeBlocks(readme, 'ts')[0] ?? '');
  p.write('CHANGELOG.md', '# 2.4.0\n');
  p.write('answers.json', [{ toolCalls: [{ name: 'read_changelog', input: {} }] }, { text: 'It is 2.4.0.' }]);
  const run = () => p.process(['run', 'main', 'Which version is next?', '--model', 'script:answers.json']);
  expect(await run()).toMatchObject({ code: 2, stderr: expect.stringContaining(`tape trust ${p.path}`) });
  expect(await p.process(['trust', '.'])).toMatchObject({ code: 0 });
  expect(await run()).toMatchObject({ code: 0, stdout: 'It is 2.4.0.\n' });
  expect((await p.process(['log', 'main', '--json'])).stdout).toContain('# 2.4.0');
});

test('the page contains the two commands letter for letter', () => {
  const commands = codeBlocks(readme, 'sh').join('');
  expect(commands).toContain(
    'npx --yes -p node@24 -p pnpm@12 pnpm demo     # installs, builds, runs the main job\n' +
      'npx --yes -p node@24 -p pnpm@12 pnpm test     # installs if needed, builds, passes the tests\n',
  );
});

test('the table lists every verb, in the order of the help', () => {
  const named = tableAfter(readme, 'Verbs').map(([command = '']) => command.split(' ')[1]);
  expect(named).toEqual(verbs.map(nameOf));
});
