import { writeFileSync } from 'node:fs';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { installPackages } from '../support/project.ts';
import { tempHome } from '../support/temp-home.ts';

const config = `
import { appendFileSync } from 'node:fs';
import { tool } from 'ai';
import { z } from 'zod';
const run_command = {
  ...tool({
    inputSchema: z.object({ command: z.string() }),
    execute: async ({ command }) => { appendFileSync(new URL('ran', import.meta.url), command + '\\n'); return 'ran'; },
  }),
  command: 'command',
};
export default { permissions: ['trusted', 'deny! exec(rm *)'], tools: { run_command } };
`;

const run = (id: string, command: string): ScriptAnswer => ({
  toolCalls: [{ id, name: 'run_command', input: { command } }],
});

/** A home with a tool that runs commands, and a model that wants these. */
function desk(...commands: readonly string[]) {
  const home = tempHome();
  const [file, answers] = [home.file('desk.mjs'), home.file('answers.json')];
  installPackages(home.path);
  writeFileSync(file, config);
  writeFileSync(
    answers,
    JSON.stringify([...commands.map((one, i) => run(`c${i + 1}`, one)), { text: 'Done.' }]),
  );
  const model = ['--config', file, '--model', `script:${answers}`];
  return Object.assign(home, { model, config: ['--config', file] });
}

test('a call that rules ask about waits in a pipe, and an answer counts for good', async () => {
  using home = desk('git log', 'git status', 'rm x');
  const ran = await home.tape(['run', 'main', 'Go', ...home.model]);
  expect(ran).toMatchObject({ code: 6, stdout: '' });
  expect(ran.stderr).toContain(
    'run_command waits for approval: c1 {"command":"git log"}\n  --remember 1: always exec(git log)\n  --remember 2: always exec(git *)\n',
  );
  expect(json(await home.tape(['status', 'main', '--json']))).toMatchObject([
    {
      waiting: [
        { call: 'c1', claims: ['run_command', 'exec(git log)'], offers: ['exec(git log)', 'exec(git *)'] },
      ],
    },
  ]);
  const odd = await home.tape(['approve', 'main', '--remember', '3', '--json', ...home.model]);
  expect(jsonError(odd)).toMatchObject({
    message: "cannot remember offer 3 of call 'c1': its offers are 1 exec(git log), 2 exec(git *)",
  });
  const approved = await home.tape(['approve', 'main', '--remember', '2', ...home.model]);
  expect(approved).toMatchObject({ code: 0, stdout: 'Done.\n' });
  expect(approved.stderr).toContain(
    "run_command failed: exec(rm x) is not allowed in 'main', by the rule: deny! exec(rm *)",
  );
  expect(json(await home.tape(['permissions', 'main', ...home.config, '--json']))).toMatchObject({
    lineage: [
      { session: 'main', rules: expect.arrayContaining([{ rule: 'deny! exec(rm *)', scope: 'manifest' }]) },
    ],
    grants: ['allow exec(git *)'],
  });
});

test('an answer for good says for whose messages it does not count', async () => {
  using home = desk('git log', 'git tag');
  home.session('main');
  home.session('lead');
  {
    using store = home.open();
    const by = { id: store.sessions.find('lead')?.id ?? '', session: 'lead' };
    store.entries.append('main', [user('Look', { by })]);
  }
  const line = 'messages of lead are asked about each time, by the rules of the sender';
  const ran = await home.tape(['run', 'main', ...home.model]);
  expect(ran).toMatchObject({ code: 6, stdout: '' });
  expect(ran.stderr).toContain(`  --remember 2: always exec(git *)\n  ${line}\n`);
  const approved = await home.tape(['approve', 'main', '--remember', '2', ...home.model]);
  // It asks again, for the sender.
  expect(approved.code).toBe(6);
  expect(approved.stderr).toContain(`The answer counts for good in main; ${line}\n`);
  expect(approved.stderr).toContain('run_command waits for approval: c2 {"command":"git tag"}');
  const denied = await home.tape(['approve', 'main', '--deny', '--remember', '1', ...home.model]);
  expect(denied).toMatchObject({ code: 0 });
  expect(denied.stderr).not.toContain('counts for good');
  expect(json(await home.tape(['permissions', 'main', ...home.config, '--json']))).toMatchObject({
    grants: ['allow exec(git *)', 'deny exec(git tag)'],
  });
});

test('--yes approves what is asked, and lifts no refusal', async () => {
  using home = desk('git log', 'rm x');
  const ran = await home.tape(['run', 'main', 'Go', '--yes', ...home.model]);
  expect(ran).toMatchObject({ code: 0, stdout: 'Done.\n' });
  expect(ran.stderr).toContain('by the rule: deny! exec(rm *)');
});

test('the rules of the home follow those of the code, and are refused with line and column', async () => {
  using home = desk();
  await home.tape(['new', 'main', '--rule', 'deny exec(git push *)']);
  const write = (text: string) => writeFileSync(home.file('config.yaml'), text);
  write('permissions:\n  - allow exec(git *)\n  - allow exec(rm *)\n');
  const permit = async (command: string) => {
    const input = JSON.stringify({ command });
    const { verdict, rule, scope } = json(
      await home.tape(['permissions', 'main', 'run_command', input, ...home.config, '--json']),
    ) as Record<string, unknown>;
    return `${verdict} ${rule} ${scope}`;
  };
  expect(await permit('git log')).toBe('allow allow exec(git *) project');
  expect(await permit('git push -f')).toBe('deny deny exec(git push *) session');
  expect(await permit('rm x')).toBe('deny deny! exec(rm *) manifest');
  write('model: script:x.json\npermissions:\n  - allow exec(git *)\n  - allow exce(rm *)\n');
  const refused = await home.tape(['permissions', 'main', '--no-config']);
  expect(refused).toMatchObject({ code: 2 });
  expect(refused.stderr).toContain(
    "line 4, column 11: permissions.1 is no rule: there is no kind 'exce'; the kinds are send, read, write, exec, opaque",
  );
  for (const [text, line, column] of [
    ['permissions: deny wirte(**)\n', 1, 19],
    ["permissions:\n  - 'ask exec(git \"x)'\n", 2, 19],
    ['permissions: |\n  # mine\n  allow *\n  deny\n', 4, 7],
    ['permissions:\n  - |\n    trusted\n\n    deny write(**\n', 5, 18],
    ['permissions: [yolo, sandbox]\n', 1, 21],
  ] as const) {
    write(text);
    expect(jsonError(await home.tape(['permissions', 'main', '--no-config', '--json']))).toMatchObject({
      code: 'CLI_BAD_CONFIG',
      message: expect.stringContaining(`line ${line}, column ${column}: permissions`),
      data: { line, column },
    });
  }
  // Folded lines have no such place: the line of the field, and the place in its text.
  write('permissions: >\n  deny\n  wirte(**)\n');
  expect((await home.tape(['permissions', 'main', '--no-config'])).stderr).toContain(
    "line 1: permissions is no rule: line 1, column 6: there is no kind 'wirte'",
  );
  write('');
  const fork = await home.tape(['fork', 'main', '--rule', 'deny wirte(**)', '--json']);
  expect(jsonError(fork)).toMatchObject({
    code: 'SESSION_BAD_INPUT',
    data: { field: 'rules', line: 1, column: 6 },
  });
});

test('a child keeps the rules that it was forked with, and its own children narrow only', async () => {
  using home = desk();
  await home.tape(['new', 'main']);
  expect(await home.tape(['fork', 'main', '--as', 'child', '--rule', 'sandboxed'])).toMatchObject({
    code: 0,
  });
  expect(await home.tape(['fork', 'child', '--as', 'below', '--rule', 'yolo'])).toMatchObject({ code: 0 });
  const asked = ['run_command', '{"command":"ls"}', ...home.config];
  expect(await home.tape(['permissions', 'below', ...asked])).toMatchObject({
    stdout: 'deny exec(ls) by the rule: deny exec(*) (session of child)\n',
  });
  expect(await home.tape(['permissions', 'main', ...asked])).toMatchObject({
    stdout: 'ask exec(ls) by the rule: ask exec(*) (manifest of main)\n',
  });
});

test('a decision on a call that cannot be made is an error with a hint', async () => {
  using home = desk();
  await home.tape(['new', 'main']);
  const permit = async (...args: readonly string[]) => await home.tape(['permissions', 'main', ...args]);
  expect(await permit('run_comand', '{}', ...home.config)).toMatchObject({
    code: 3,
    stdout: '',
    stderr:
      "Error: cannot decide on a call of 'run_comand' in 'main': there is no such tool\n" +
      "Hint: did you mean 'run_command'? The tools of the configuration are: run_command\n",
  });
  expect((await permit('run_command', '{}', '--no-config')).stderr).toContain(
    'Hint: name a configuration that has the tool with: --config FILE',
  );
  const misfit = await permit('run_command', '{"comand":"ls"}', ...home.config);
  expect(misfit).toMatchObject({ code: 2, stdout: '' });
  expect(misfit.stderr).toMatch(/Hint: the arguments have this schema: .*"required":\["command"\]/);
});
