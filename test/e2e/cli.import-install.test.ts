import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { type Hook, hooksIn, installDesk } from '../support/install-desk.ts';

test('it shows the hook and writes nothing, until the user says yes at a terminal', async () => {
  using at = installDesk();
  const shown = await at.run('--install');
  expect(shown.stdout).toContain('"SessionEnd"');
  expect(shown.stdout).toContain(`Not written. Write ${at.file} with: tape import --install --yes`);
  const asked = { env: at.env, isTerminal: true, stdinIsTerminal: true };
  const typed = async (stdin: string, ...args: string[]) =>
    await at.home.here(['import', '--install', ...args], { ...asked, stdin });
  const refused = await typed('n\n');
  expect(refused.stderr).toContain(`Write this to ${at.file}? [y/N] `);
  expect(refused.stdout).toBe(`Not written. Write ${at.file} with: tape import --install --yes\n`);
  expect((await typed('y\n', '--dry-run')).stderr).toBe('');
  expect(existsSync(at.file)).toBe(false);
  expect((await typed('y\n')).stdout).toContain(`Installed in ${at.file}`);
  const [hook] = hooksIn(at.text());
  expect(hook?.command).toContain(` --home ${at.home.path} --hook </dev/null >/dev/null 2>&1 || : `);
  expect(hook?.timeout).toBe(10);
  expect((await at.run('--uninstall')).stdout).toBe(
    `Not removed. Remove it from ${at.file} with: tape import --uninstall --yes\n`,
  );
  const removed = await at.home.here(['import', '--uninstall'], { ...asked, stdin: 'n\n' });
  expect(removed.stderr).toBe(`Remove the hook from ${at.file}? [y/N] `);
});

test('a second home takes the hook of the first one, and says so before and after', async () => {
  using at = installDesk();
  const [one, two] = [at.dir.file("it's one"), at.dir.file('two')];
  const shown = async (...args: string[]) => (await at.run(...args)).stdout.split('\n').at(-2);
  const [quoted, instead] = [`'${one.replace("'", "'\\''")}'`, `in the place of the hook of the home ${one}`];
  await at.run('--install', '--yes', '--home', one);
  expect(await shown('--install', '--home', two)).toBe(
    `Not written. Write ${at.file}, ${instead}, with: tape import --home ${two} --install --yes`,
  );
  const typed = { env: at.env, isTerminal: true, stdinIsTerminal: true, stdin: 'n\n' };
  const asked = async (act: string) => (await at.home.here(['import', act, '--home', two], typed)).stderr;
  expect(await asked('--install')).toContain(`Write this to ${at.file}, ${instead}? [y/N] `);
  expect(await asked('--uninstall')).toBe(`Remove the hook (of the home ${one}) from ${at.file}? [y/N] `);
  expect(await shown('--install', '--yes', '--home', two)).toBe(
    `Installed in ${at.file}, ${instead} (undo with: tape import --install --home ${quoted})`,
  );
  expect(hooksIn(at.text())).toHaveLength(1);
  expect(await at.runs('--install', '--yes', '--home', one)).toMatchObject({
    state: 'installed',
    other_home: two,
  });
  expect(await at.runs('--install', '--yes', '--home', one)).not.toHaveProperty('other_home');
  expect(await shown('--uninstall', '--yes', '--home', two)).toBe(
    `Removed from ${at.file} (of the home ${one}) (undo with: tape import --install --home ${quoted})`,
  );
});

const notes = '{ "type": "command", "command": "notes --all" }';

test.each([
  ['{}'],
  ['{}\n'],
  ['{"model":"opus"}'],
  ['{\n    "model": "opus",\n    "hooks": {\n        "Stop": []\n    }\n}\n'],
  [`{\r\n\t"hooks": {\r\n\t\t"SessionEnd": [ {"matcher": "clear", "hooks": [${notes}]} ]\r\n\t}\r\n}\r\n`],
  [`\u{feff}{\n  "hooks": {"SessionEnd": [{"hooks": [${notes}, ${notes}]}]},\n  "env": {"A": "é\\u0041"}\n}`],
])('settings keep all else to the byte, and are as before when it is removed: %j', async (before) => {
  using at = installDesk({ settings: before });
  expect(await at.runs('--install', '--yes')).toMatchObject({ by: 'claude-code', state: 'installed' });
  const after = at.text();
  const others = hooksIn(before.replace('\u{feff}', ''));
  expect(hooksIn(after.replace('\u{feff}', '')).slice(0, -1)).toEqual(others);
  expect(after.replaceAll('\r\n', '').includes('\n')).toBe(!before.includes('\r\n'));
  expect(await at.runs('--install', '--yes')).toMatchObject({ state: 'unchanged' });
  expect(at.text()).toBe(after);
  expect(await at.runs('--uninstall', '--yes')).toMatchObject({ state: 'removed', config: null });
  expect(at.text()).toBe(before);
  expect(await at.runs('--uninstall', '--yes')).toMatchObject({ state: 'unchanged' });
});

test('a hook of an earlier version is replaced where it stands, and what stands beside it stays', async () => {
  const own = { type: 'command', command: '/old/tape import --hook # tape import --install', timeout: 30 };
  const group = { matcher: 'logout', hooks: [JSON.parse(notes), own] };
  using at = installDesk({
    settings: JSON.stringify({ hooks: { SessionEnd: [group, { hooks: [own] }] }, disableAllHooks: true }),
  });
  const { stderr } = await at.run('--install', '--yes');
  expect(stderr).toContain('Hooks are turned off');
  const [first, second, ...others] = hooksIn(at.text());
  expect([first, second?.timeout, others]).toEqual([JSON.parse(notes), 30, []]);
  expect(second?.command).not.toContain('/old/');
  await at.run('--uninstall', '--yes');
  expect(JSON.parse(at.text())).toEqual({
    hooks: { SessionEnd: [{ matcher: 'logout', hooks: [JSON.parse(notes)] }] },
    disableAllHooks: true,
  });
});

test.each([
  ['{"model": ', 'it is no JSON'],
  ['{\n  // mine\n  "model": "opus"\n}', 'it is no JSON'],
  ['{"a": 1,}', 'it is no JSON'],
  ['not json\nat all', "it is no JSON, and Claude Code does not read it either: Unexpected token 'o'\n"],
  ['[]', 'it is no JSON object'],
  ['{"hooks": []}', "its field 'hooks' is no object"],
  ['{"hooks": {"SessionEnd": {}}}', "its field 'hooks.SessionEnd' is no list"],
  ['{"hooks": {}, "hooks": {"Stop": []}}', 'it has a field twice'],
])('settings that cannot be changed without a loss stay as they are: %j', async (settings, why) => {
  using at = installDesk({ settings });
  const refused = await at.run('--install', '--yes', '--json');
  expect(jsonError(refused)).toMatchObject({ code: 'CLI_BAD_CONFIG' });
  const { message } = jsonError(refused);
  expect(`${message}\n`).toContain(why);
  expect(at.text()).toBe(settings);
});

test('the file keeps its mode, and behind a link it is the file that changes; settings lie where Claude Code has them', async () => {
  using at = installDesk({ env: { CLAUDE_CONFIG_DIR: '/nonexistent' } });
  const config = at.dir.file('profile');
  mkdirSync(config);
  writeFileSync(at.dir.file('dotfile.json'), '{}\n', { mode: 0o640 });
  symlinkSync(at.dir.file('dotfile.json'), join(config, 'settings.json'));
  const env = { ...at.env, CLAUDE_CONFIG_DIR: config };
  await at.home.here(['import', '--install', '--yes'], { env });
  expect(hooksIn(readFileSync(at.dir.file('dotfile.json'), 'utf8'))).toHaveLength(1);
  expect(statSync(at.dir.file('dotfile.json')).mode & 0o777).toBe(0o640);
  symlinkSync('nowhere', at.dir.file('link'));
  mkdirSync(at.dir.file('other'));
  symlinkSync('nowhere', at.dir.file('other/settings.json'));
  const dangling = await at.home.here(['import', '--install', '--yes', '--json'], {
    env: { ...at.env, CLAUDE_CONFIG_DIR: at.dir.file('other') },
  });
  expect(jsonError(dangling)).toMatchObject({ code: 'CLI_BAD_CONFIG' });
  const long = await at.home.here(['import', '--install', '--yes', '--json'], {
    env: { ...at.env, CLAUDE_CONFIG_DIR: `/${'x'.repeat(300)}` },
  });
  expect(jsonError(long)).toMatchObject({
    code: 'CLI_BAD_CONFIG',
    message: expect.stringMatching(/^cannot use '\/x+\/settings.json': ENAMETOOLONG/),
  });
});

test('a lock that a killed process left on the settings keeps nothing from being written', async () => {
  using at = installDesk({ settings: '{}' });
  // As Claude Code takes it, a directory; an earlier version of this command made a file.
  const lock = `${at.file}.lock`;
  for (const make of [() => mkdirSync(lock), () => writeFileSync(lock, '')]) {
    make();
    utimesSync(lock, new Date(0), new Date(0));
    await at.runs('--install', '--yes');
    expect([hooksIn(at.text()).length, existsSync(lock)]).toEqual([1, false]);
    await at.runs('--uninstall', '--yes');
  }
});

test('a path that no line can hold is refused, and one with quotes is what the shell reads', async () => {
  using at = installDesk();
  const hostile = `${at.dir.path}/it's "$HOME" \`id\` %h`;
  const { command } = hooksIn((await at.runs('--install', '--home', hostile)).config as string)[0] as Hook;
  const words = spawnSync('sh', [
    '-c',
    `printf '%s\\n' ${command.split(' </dev/null')[0]}`,
  ]).stdout.toString();
  expect(words.split('\n').slice(-4)).toEqual(['--home', hostile, '--hook', '']);
  const refused = await at.run('--install', '--home', `${at.dir.path}/a\nb`, '--json');
  expect(jsonError(refused).message).toContain('it has a control character');
  for (const args of [
    ['--timer'],
    ['--install', 'a.jsonl'],
    ['--install', '--uninstall'],
    ['--install', '--raw'],
  ])
    expect((await at.run(...args)).code).toBe(2);
});
