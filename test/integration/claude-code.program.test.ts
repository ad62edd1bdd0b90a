import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  type ClaudeCodePlace,
  claudeCodeProgram,
  claudeCodeVersion,
  runClaudeCode,
  startScriptedModel,
} from '../support/claude-code-program.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

test('the pinned Claude Code works with a model of the tests, and writes a transcript', async () => {
  using dir = tempDir();
  const [config, project] = [dir.file('config'), dir.file('project')];
  mkdirSync(project);
  writeFileSync(join(project, 'a.txt'), 'hello\n');
  const answers = [
    {
      reasoning: 'A file.',
      calls: [{ name: 'Read', arguments: { file_path: join(project, 'a.txt') } }],
    },
    { text: 'It says hello.' },
  ];
  await using model = await startScriptedModel((_, i) => answers[i] ?? { text: 'Nothing more.' });
  const place = { program: await claudeCodeProgram(), config, project, url: model.url };
  const version = await runClaudeCode(place, ['--version']);
  expect(version.stdout).toContain(claudeCodeVersion);

  const run = await runClaudeCode(place, ['-p', 'What does a.txt say?', '--allowedTools', 'Read']);

  expect(run).toMatchObject({ status: 0, stdout: 'It says hello.\n' });
  expect(model.requests).toHaveLength(2);
  expect(model.faults).toEqual([]);
  expect(readdirSync(join(config, 'projects'), { recursive: true })).toContainEqual(
    expect.stringMatching(/[0-9a-f-]{36}\.jsonl$/),
  );
});

test('a session that ends starts the import that tape import --install wrote, and does not wait for it', async () => {
  using dir = tempDir();
  using home = tempHome();
  const [config, project] = [dir.file("it's mine"), dir.file('project')];
  for (const path of [config, project]) mkdirSync(path);
  const env = { HOME: dir.path, CLAUDE_CONFIG_DIR: config };
  await home.process(['import', '--install', '--yes'], { env });
  await using model = await startScriptedModel(() => ({ text: 'Good morning.' }));
  const place = { program: await claudeCodeProgram(), config, project, url: model.url };

  const run = await runClaudeCode(place, ['-p', 'Hello']);

  expect(run).toMatchObject({ status: 0, stdout: 'Good morning.\n', stderr: '' });
  while (!existsSync(home.file('sources.jsonl'))) await sleep(50);
  expect((await home.here(['search', 'morning', '--quiet'])).stdout).not.toBe('');
});

/** A conversation that a program has with Claude Code, and the sessions that it came to, in order. */
async function cleared(place: ClaudeCodePlace, texts: readonly string[]): Promise<readonly string[]> {
  const stream = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'];
  const run = await runClaudeCode(place, ['-p', ...stream], async (write, end) => {
    // A prompt that comes while another one is worked on would be a part of that.
    for (const content of texts) {
      write(`${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`);
      await sleep(1_500);
    }
    end();
  });
  expect(run.status, run.stderr).toBe(0);
  const said = run.stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  return [...new Set(said.flatMap((one) => (one.type === 'result' ? [one.session_id] : [])))];
}

/** The sessions that are under another one behind a `/clear`, as `tape log --derived` lists them. */
async function clearEdges(home: TempHome): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await home.here(['log', '--derived', '--json']);
  const edges: readonly { session: string; type: string; parent: string }[] = JSON.parse(stdout);
  const cleared = edges.filter(({ type }) => type === 'clear');
  return new Map(cleared.map(({ session, parent }) => [session, parent]));
}

test('what a program clears is a chain of its sessions, whose edges a user can take back', {
  timeout: 300_000,
}, async () => {
  using dir = tempDir();
  using home = tempHome();
  await using model = await startScriptedModel((_, i) => ({ text: `Answer ${i}` }));
  const program = await claudeCodeProgram();
  const placeOf = (name: string): ClaudeCodePlace => {
    mkdirSync(dir.file(name), { recursive: true });
    return { program, config: dir.file('config'), project: dir.file(name), url: model.url };
  };

  // Two in a row, and one behind which nothing comes; one that is the first message.
  const chain = await cleared(placeOf('a'), ['One', '/clear', '/clear', 'Two', '/clear']);
  const first = await cleared(placeOf('b'), ['/clear', 'One']);
  const [left, right] = await Promise.all([
    cleared(placeOf('c'), ['One', '/clear', 'Two']),
    cleared(placeOf('c'), ['Three', '/clear', 'Four']),
  ]);
  await home.here(['import', '--yes', placeOf('a').config]);

  const edges = await clearEdges(home);
  expect(chain).toHaveLength(4);
  expect(chain.map((one) => edges.get(one))).toEqual([undefined, ...chain.slice(0, -1)]);
  expect(first.map((one) => edges.get(one))).toEqual(first.map(() => undefined));
  // Of two that clear at once, no record says which is which.
  for (const own of [left, right])
    for (const [i, one] of own.entries()) expect([own[i - 1], undefined]).toContain(edges.get(one));
  const [, second = ''] = chain;
  await home.here(['link', second, '--root']);
  await home.here(['import', '--yes', placeOf('a').config]);
  expect((await clearEdges(home)).get(second)).toBeUndefined();
});
