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

test('several entries and ranges of a session are erased in one act, or none is', async () => {
  using home = tempHome();
  home.session('main');
  const said = [1, 2, 3, 4, 5, 6].map((n) => JSON.stringify({ role: 'user', content: `secret ${n}` }));
  await home.tape(['append', 'main'], { stdin: said.join('\n') });
  await home.tape(['rewind', 'main@7']);
  const run = async (...args: string[]) => await home.tape(['redact', ...args, '--reason', 'leak']);
  expect(await run('main', '2', '99')).toMatchObject({ code: 3, stdout: '' });
  expect(await run('main')).toMatchObject({ code: 2, stdout: '' });
  expect((await run('main', '3', '@5', '6..8', '--dry-run', '--quiet')).stdout).toBe(
    'main@3\nmain@5\nmain@6\nmain@7\n',
  );
  const { stdout } = await run('main', '3', '@5', '6..8', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    entries: [3, 5, 6, 7].map((seq, i) => ({ session: 'main', seq, by: 9 + i, repeated: false })),
    log_emptied: true,
  });
  expect((await run('main@2..5')).stdout).toBe(
    [
      'Redacted main@2, recorded at main@13; it cannot be undone',
      'main@3 was redacted by main@9 before: nothing to do',
      'Redacted main@4, recorded at main@14; it cannot be undone',
      'main@5 was redacted by main@10 before: nothing to do',
      '2 entries redacted\n',
    ].join('\n'),
  );
  expect(await home.tape(['verify', '--quiet'])).toMatchObject({ stdout: 'ok\n' });
});

test('an unusable model creates no home', async () => {
  using home = tempHome();
  const { code, stdout } = await home.tape(['run', 'main', 'hi', '--model', 'script:/nonexistent.json']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(existsSync(home.db)).toBe(false);
});
