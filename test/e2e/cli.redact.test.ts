import { copyFileSync, existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { tempHome } from '../support/temp-home.ts';

test('redact names what may still contain the content: forks that carry a state, lines of the graph file', async () => {
  using home = tempHome();
  home.session('main');
  const run = async (...args: string[]) =>
    JSON.parse((await home.tape([...args, '--json'])).stdout) as Record<string, unknown>;
  await run('anchor', 'main', 'start', '--state', '{"token":"hunter2"}');
  await run('fork', 'main', '--since', 'start', '--as', 'child', '--task', 'Log in with hunter2');
  expect(await run('redact', 'main@start', '--reason', 'leak')).toMatchObject({ quoted_by: ['child@3'] });
  expect(await run('redact', 'child@intention', '--reason', 'leak')).toMatchObject({
    quoted_by: ['session_graph.jsonl:2'],
  });
  expect(await run('redact', 'child@fork/start', '--reason', 'leak')).toMatchObject({ quoted_by: [] });
  expect(await run('verify')).toMatchObject({ ok: true });
  // An upgrade leaves the file as it was.
  copyFileSync(home.db, `${home.db}.schema-2`);
  expect(await run('purge', 'child', '--dry-run')).toMatchObject({
    quoted_by: ['session_graph.jsonl:2', 'tape.db.schema-2'],
  });
});

test('an unusable model creates no home', async () => {
  using home = tempHome();
  const { code, stdout } = await home.tape(['run', 'main', 'hi', '--model', 'script:/nonexistent.json']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(existsSync(home.db)).toBe(false);
});
