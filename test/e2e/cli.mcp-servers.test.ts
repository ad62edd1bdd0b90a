import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { expect, test } from 'vitest';
import { json, jsonError, startTape } from '../support/cli.ts';
import { root } from '../support/imports.ts';
import { isAlive } from '../support/is-alive.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const program = join(root, 'test/support/mcp-server.mjs');

test('sessions call tools of the servers of config.yaml, and verbs show servers without their tokens', async () => {
  using home = tempHome();
  const answers: ScriptAnswer[] = [
    { toolCalls: [{ id: 'c1', name: 'mcp_notes_echo', input: { text: 'milk' } }] },
    { toolCalls: [{ id: 'c2', name: 'mcp_notes_env', input: { name: 'NOTES_TOKEN' } }] },
    { text: 'Done.' },
  ];
  writeFileSync(home.file('answers.json'), JSON.stringify(answers));
  await home.tape(['init', home.path]);
  const set = async (key: string, value: string) =>
    expect(await home.tape(['config', 'set', key, value])).toMatchObject({ code: 0 });
  await set('mcp_servers.notes.command', process.execPath);
  await set('mcp_servers.notes.args', JSON.stringify([program]));
  await set('mcp_servers.notes.timeout_ms', '5000');
  await set('mcp_servers.notes.env.NOTES_TOKEN', `\${FAR_AWAY}`);
  const env = { FAR_AWAY: 'not-a-secret' };
  const model = `script:${home.file('answers.json')}`;
  const run = await home.tape(['run', 'main', 'Go', '--model', model], { env });
  expect(run).toMatchObject({ code: 0, stdout: 'Done.\n' });
  const log = json(await home.tape(['log', 'main', '--json'])) as {
    readonly kind: string;
    readonly payload: object;
  }[];
  expect(log.filter(({ kind }) => kind === 'tool-result').map(({ payload }) => payload)).toMatchObject([
    { output: { value: 'milk' } },
    { output: { value: 'not-a-secret' } },
  ]);
  expect(json(await home.tape(['show', 'main', '--json']))).toMatchObject({
    mcp: { notes: expect.arrayContaining(['echo', 'env']) },
  });
  expect(
    (await home.tape(['view', 'main', '--instructions', '--model', model], { env })).stdout,
  ).not.toContain('mcp_');
  await set('prompt.tools', 'true');
  expect((await home.tape(['view', 'main', '--instructions', '--model', model], { env })).stdout).toContain(
    'mcp_notes_echo',
  );
  await home.tape(['new', 'kept', '--rule', 'deny mcp_notes_*']);
  expect(
    (await home.tape(['view', 'kept', '--instructions', '--model', model], { env })).stdout,
  ).not.toContain('mcp_');
  expect(json(await home.tape(['permissions', 'kept', '--json']))).toMatchObject({
    servers: [{ server: 'notes', callable: false }],
  });
  expect((await home.tape(['permissions', 'main'])).stdout).toContain('notes: tools of it may be called');
  writeFileSync(
    home.file('config.yaml'),
    'mcp_servers:\n  far:\n    url: https://far.example/mcp\n    headers: { Authorization: Bearer 0123456789abcdef }\n',
  );
  const shown = await home.tape(['config']);
  expect(shown.stdout).toContain('mcp_servers.far.url\thttps://far.example/mcp');
  expect(shown.stdout).not.toContain('0123456789abcdef');
});

const signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

test.each(sized(signals.slice(0, 1), signals, signals))(
  '%s ends servers, and what they have started',
  async (signal) => {
    using home = tempHome();
    const answers: ScriptAnswer[] = [
      { toolCalls: [{ id: 'c1', name: 'mcp_notes_child', input: {} }] },
      { toolCalls: [{ id: 'c2', name: 'mcp_notes_hang', input: {} }] },
    ];
    writeFileSync(home.file('answers.json'), JSON.stringify(answers));
    writeFileSync(
      home.file('config.yaml'),
      `mcp_servers:\n  notes: { command: ${process.execPath}, args: [${program}] }\n`,
    );
    const running = startTape(['run', 'main', 'Go', '--model', `script:${home.file('answers.json')}`], {
      home: home.path,
    });
    await running.until('mcp_notes_hang');
    const { stdout } = await home.process(['log', 'main', '--kind', 'tool-result', '--json']);
    const child = Number(/"value":"(\d+)"/.exec(stdout)?.[1]);
    expect(child).toBeGreaterThan(1);
    running.child.kill(signal);
    await running.done;
    await expect.poll(() => isAlive(child), { interval: 10 }).toBe(false);
  },
);

test.each([
  ['mcp_servers:\n  notes: { args: [a] }\n', 2, 'mcp_servers.notes must have a command or a url'],
  ['mcp_servers:\n  notes: { command: a, timeout: 1 }\n', 2, 'mcp_servers.notes has an unknown field'],
  [
    'mcp_servers:\n  a: { command: a }\n  a_b: { url: "http://b" }\n',
    3,
    'mcp_servers.a_b must have another name',
  ],
])('a server of config.yaml that cannot be is refused with its line: %j', async (text, line, why) => {
  using home = tempHome();
  await home.tape(['init', home.path]);
  writeFileSync(home.file('config.yaml'), text);
  const refused = await home.tape(['run', 'main', 'Go', '--model', 'script:a.json', '--json']);
  expect(jsonError(refused)).toMatchObject({ code: 'CLI_BAD_CONFIG', data: { line } });
  expect(refused.stderr).toContain(why);
});
