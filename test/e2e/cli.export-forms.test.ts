import { readFileSync, statSync } from 'node:fs';
import { zstdDecompressSync } from 'node:zlib';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';
import { tokenShapes } from '../support/token-shapes.ts';

const secret = tokenShapes.find(([name]) => name === 'aws')?.[1] ?? '';

test('a session is written in the form of another program, to a new file or to stdout', async () => {
  using home = tempHome();
  home.session('main', user(`The key is ${secret}.`), assistant('Noted.'));
  const options = { cwd: home.path };
  const file = home.file('main.json.zst');
  const done = await home.tape(
    ['export', 'main', '--format', 'ui-message', '-o', 'main.json.zst', '--json'],
    options,
  );
  expect(json(done)).toEqual({ file, session: 'main', format: 'ui-message', items: 2, withheld: 1 });
  expect(done.stderr).toContain('--raw');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(JSON.parse(zstdDecompressSync(readFileSync(file)).toString())).toMatchObject([
    { role: 'user', parts: [{ text: 'The key is [secret aws].' }] },
    { role: 'assistant' },
  ]);
  const raw = await home.tape(['export', 'main', '--format', 'openai-chat', '--raw'], options);
  expect(JSON.parse(raw.stdout).messages[0].content).toBe(`The key is ${secret}.`);

  const refused = async (code: number, type: string, ...args: readonly string[]) => {
    const said = await home.tape(['export', 'main', '--json', ...args], options);
    const error = jsonError(said);
    expect([args, said.code, error.code]).toEqual([args, code, type]);
    return JSON.stringify(error);
  };
  await refused(4, 'TAPE_EXISTS', '--format', 'markdown', '-o', 'main.json.zst');
  expect(await refused(2, 'CLI_USAGE', '--format', 'markdown', '--tree', '-o', 'x')).toContain('--format');
  expect(await refused(2, 'CLI_USAGE', '--format', 'word', '-o', 'x')).toContain('markdown');
});
