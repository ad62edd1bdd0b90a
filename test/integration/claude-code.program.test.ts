import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  claudeCodeProgram,
  claudeCodeVersion,
  runClaudeCode,
  startScriptedModel,
} from '../support/claude-code-program.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

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
