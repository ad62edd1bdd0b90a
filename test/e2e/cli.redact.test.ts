import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

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

test('redact names where else a home says the same: the report of a subagent, titles, and deleted sessions', async () => {
  using dir = tempDir();
  using home = tempHome();
  const inside = { isSidechain: true, agentId: 'x1' };
  const asked = 'What lives in the burrows?';
  const task = 'Look for an aardvark in each burrow';
  const report = 'No burrow has an aardvark in it';
  const output = '<persisted-output>\nOutput too large\n/x/tool-results/b2.txt\n</persisted-output>';
  const files = {
    's-1.jsonl': [
      person({ uuid: 'u1' }, asked),
      model({ uuid: 'k1', parent: 'u1' }, [calls('t1', 'Task', { prompt: task })]),
      person({ uuid: 'r1', parent: 'k1' }, [returns('t1', report)], { toolUseResult: { agentId: 'x1' } }),
      { type: 'custom-title', sessionId: 's-1', customTitle: asked },
    ],
    's-2.jsonl': [
      model({ uuid: 'k2' }, [calls('t2', 'Bash')], { sessionId: 's-2' }),
      person({ uuid: 'r2', parent: 'k2' }, [returns('t2', output)], { sessionId: 's-2' }),
    ],
    's-1/subagents/agent-x1.jsonl': [
      person({ uuid: 'y1' }, task, inside),
      model({ uuid: 'z1', parent: 'y1' }, [says(report)], inside),
    ],
  };
  const write = (name: string, text: string) => {
    const path = dir.file(`.claude/projects/p/${name}`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  for (const [name, records] of Object.entries(files)) write(name, jsonl(records));
  write('s-2/tool-results/b2.txt', 'all of the output');
  const run = async (...args: string[]) => json(await home.here(args, { env: { HOME: dir.path } }));
  await run('import', '--yes', '--json');
  const redacted = async (place: string, ...more: string[]) => {
    const { quoted_by: quotedBy } = await run('redact', place, '--reason', 'private', ...more, '--json');
    return (quotedBy as readonly string[]).toSorted();
  };
  // The title is in its record, and with the entry that begins the session.
  expect(await redacted('s-1@3', '--dry-run')).toEqual(['s-1@1', 's-1@4']);
  // The file of an output that was too large for the transcript.
  expect(await redacted('s-2@5', '--dry-run')).toEqual(['s-2@3']);
  const { id } = await run('delete', 'agent-x1', '--json');
  expect(await redacted('s-1@6')).toEqual([`${id}@8`, 's-1@8'].toSorted());
  // The call that gave the task was said to the subagent.
  expect(await redacted('s-1@5')).toEqual([`${id}@7`]);
  for (const place of ['s-1@8', `${id}@7`, `${id}@8`]) expect(await redacted(place)).toEqual([]);
  const found = async (word: string) =>
    (await home.tape(['search', word, '--all', '--quiet'])).stdout.split('\n').length - 1;
  expect([await found('aardvark'), await found('burrows')]).toEqual([0, 2]);
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
