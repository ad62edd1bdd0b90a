import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeLock } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { hooksIn, installDesk } from '../support/install-desk.ts';
import { tapeProgram } from '../support/programs.ts';
import { tempHome } from '../support/temp-home.ts';

const systemctl = 'echo "$*" >> systemctl.log';

test('with systemd a timer and its service are written and started, and removed again', async () => {
  const config = "/it's %h $x";
  using at = installDesk({ programs: { systemctl }, env: { CLAUDE_CONFIG_DIR: config } });
  const units = at.dir.file('.config/systemd/user');
  const places = ['service', 'timer'].map((kind) => join(units, `tape-import.${kind}`));
  expect(await at.runs('--install', '--timer')).toMatchObject({ by: 'systemd', places, state: 'shown' });
  expect(existsSync(units)).toBe(false);
  expect(await at.runs('--install', '--timer', '--yes')).toMatchObject({ state: 'installed' });
  const [service = '', timer = ''] = places.map((place) => readFileSync(place, 'utf8'));
  expect(service).toContain(
    `\nEnvironment="CLAUDE_CONFIG_DIR=/it's %%h $x"\nExecStart="${process.execPath}" "`,
  );
  expect(service).toContain(` "import" "--yes" "--home" "${at.home.path}"\n`);
  expect(timer).toContain('OnCalendar=hourly');
  // It needs a place of its own for a manager that it does not start.
  const runtime = { PATH: process.env.PATH, HOME: at.dir.path, XDG_RUNTIME_DIR: at.dir.path };
  const verify = ['--user', 'verify', ...places];
  const verified = spawnSync('systemd-analyze', verify, { env: runtime, encoding: 'utf8' });
  if (verified.error === undefined) expect(verified).toMatchObject({ status: 0, stderr: '' });
  const log = () => readFileSync(at.dir.file('systemctl.log'), 'utf8');
  expect(log()).toMatch(/--user daemon-reload\n--user enable --now tape-import.timer\n$/);
  expect(await at.runs('--install', '--timer', '--yes')).toMatchObject({ state: 'unchanged' });
  expect((await at.run('--install', '--timer', '--yes')).stdout).toContain('.timer have it already');
  expect(await at.runs('--uninstall', '--timer', '--yes')).toMatchObject({
    by: 'systemd',
    places,
    state: 'removed',
  });
  expect(log()).toMatch(/--user disable --now tape-import.timer\n$/);
  expect(places.filter((place) => existsSync(place))).toEqual([]);
  expect(await at.runs('--uninstall', '--timer')).toMatchObject({ by: null, places: [], state: 'unchanged' });
  writeFileSync(places[0] ?? '', '[Unit]\n');
  expect(jsonError(await at.run('--install', '--timer', '--yes', '--json')).message).toContain(
    'the user wrote it',
  );
  expect(readFileSync(places[0] ?? '', 'utf8')).toBe('[Unit]\n');
});

test('a timer that does not start is named with the command that starts it', async () => {
  using at = installDesk({
    programs: { systemctl: 'case "$*" in *enable*) echo no bus >&2; exit 1;; esac' },
  });
  expect(await at.run('--install', '--timer', '--yes')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('Installed in '),
    stderr: 'It does not run: no bus (start it with: systemctl --user enable --now tape-import.timer)\n',
  });
  using none = installDesk();
  expect(jsonError(await none.run('--install', '--timer', '--json'))).toMatchObject({ code: 'CLI_USAGE' });
});

test('on macOS an agent of launchd is written and loaded', async () => {
  const launchctl = 'echo "$*" >> launchctl.log';
  using at = installDesk({ programs: { launchctl, systemctl } });
  const home = at.dir.file('a&b <c>');
  const file = at.dir.file('Library/LaunchAgents/tapedeck.import.plist');
  await at.run('--install', '--timer', '--yes', '--home', home);
  const text = readFileSync(file, 'utf8');
  expect(text.match(/<string>.*<\/string>/g)?.slice(-4, -1)).toEqual([
    '<string>--yes</string>',
    '<string>--home</string>',
    `<string>${at.dir.path}/a&amp;b &lt;c&gt;</string>`,
  ]);
  expect(text.match(/<(\/?)(?:dict|array|plist)/g)).toEqual([
    '<plist',
    '<dict',
    '<array',
    '</array',
    '</dict',
    '</plist',
  ]);
  // Python has a parser of XML; where it is not, that no comment has two hyphens has to do.
  for (const [, inside] of text.matchAll(/<!--([\s\S]*?)-->/g)) expect(inside).not.toContain('--');
  const load = 'import plistlib, sys; print(plistlib.load(open(sys.argv[1], "rb"))["ProgramArguments"][-1])';
  const loaded = spawnSync('python3', ['-c', load, file], { encoding: 'utf8' });
  if (loaded.error === undefined) expect(loaded).toMatchObject({ status: 0, stdout: `${home}\n` });
  const domain = `gui/${process.getuid?.()}`;
  const log = () => readFileSync(at.dir.file('launchctl.log'), 'utf8');
  expect(log()).toContain(`bootout ${domain}/tapedeck.import\nbootstrap ${domain} ${file}\n`);
  await at.run('--uninstall', '--timer', '--yes');
  expect([existsSync(file), log().endsWith(`bootout ${domain}/tapedeck.import\n`)]).toEqual([false, true]);
});

test('cron gets a line, and all other lines stay', async () => {
  const crontab =
    'case "$1" in -l) [ -e tab ] || { echo no crontab for me >&2; exit 1; }; while IFS= read -r l; do echo "$l"; done < tab;; *) : > tab; while IFS= read -r l; do echo "$l" >> tab; done;; esac';
  using at = installDesk({ programs: { crontab }, env: { CLAUDE_CONFIG_DIR: '/100% mine' } });
  const tab = at.dir.file('tab');
  expect(await at.runs('--install', '--timer', '--yes')).toMatchObject({ by: 'cron', state: 'installed' });
  const line = readFileSync(tab, 'utf8');
  expect(line).toMatch(
    /^17 \* \* \* \* CLAUDE_CONFIG_DIR='\/100\\% mine' \S+ \S+ import --yes --home \S+ >\/dev\/null 2>&1 # /,
  );
  await at.run('--uninstall', '--timer', '--yes');
  expect(readFileSync(tab, 'utf8')).toBe('');
  writeFileSync(tab, '# mine\n0 5 * * * backup # tape import\n');
  await at.run('--install', '--timer', '--yes');
  expect(readFileSync(tab, 'utf8')).toBe(`# mine\n0 5 * * * backup # tape import\n${line}`);
  expect(await at.runs('--install', '--timer', '--yes')).toMatchObject({ state: 'unchanged' });
  await at.run('--uninstall', '--timer', '--yes');
  expect(readFileSync(tab, 'utf8')).toBe('# mine\n0 5 * * * backup # tape import\n');
  writeFileSync(at.dir.file('bin/crontab'), '#!/bin/sh\necho not allowed >&2; exit 1\n');
  expect(jsonError(await at.run('--install', '--timer', '--yes', '--json')).message).toContain('not allowed');
});

const table =
  'case "$1" in -l) [ -e tab ] || { echo no crontab >&2; exit 1; }; /bin/cat tab;; *) /bin/cat > tab;; esac';

test.each([
  ['systemd', { systemctl }],
  ['launchd', { launchctl: 'exit 0' }],
  ['cron', { crontab: table }],
])('a second home takes the timer of the first one, and says so: %s', async (by, programs) => {
  using at = installDesk({ programs });
  const [one, two] = [at.dir.file('it\'s "100%" $HOME & <\\one>'), at.dir.file('two')];
  const install = ['--install', '--timer', '--yes', '--home'];
  expect(await at.runs(...install, one)).not.toHaveProperty('other_home');
  expect(await at.runs('--install', '--timer', '--home', two)).toMatchObject({ by, other_home: one });
  expect((await at.run(...install, two)).stdout).toContain(
    `, in the place of the timer of the home ${one} (`,
  );
  expect(await at.runs(...install, two)).not.toHaveProperty('other_home');
  const removed = await at.runs('--uninstall', '--timer', '--yes', '--home', one);
  expect(removed).toMatchObject({ state: 'removed', other_home: two });
});

test.each([
  ['systemd', { systemctl }],
  ['launchd', { launchctl: 'exit 0' }],
  ['cron', { crontab: table }],
])('what removes the hook says that a timer is left, until that is removed: %s', async (_, programs) => {
  using at = installDesk({ programs });
  await at.run('--install', '--yes');
  await at.run('--install', '--timer', '--yes');
  expect((await at.run('--uninstall')).stderr).toBe('');
  const left = 'A timer still starts an import each hour (remove it with: tape import --uninstall --timer)\n';
  for (const stdout of [/^Removed from /, /: nothing to do$/m])
    expect(await at.run('--uninstall', '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(stdout),
      stderr: left,
    });
  await at.run('--uninstall', '--timer', '--yes');
  expect((await at.run('--uninstall', '--yes')).stderr).toBe('');
});

test('a table of cron that is no text in UTF-8 is refused, and stays as it is to the byte', async () => {
  using at = installDesk({
    programs: { crontab: 'case "$1" in -l) /bin/cat tab;; *) /bin/cat > tab;; esac' },
  });
  const tab = Buffer.from('5 * * * * echo caf\xe9 > /tmp/x\n', 'latin1');
  writeFileSync(at.dir.file('tab'), tab);
  for (const act of ['--install', '--uninstall'])
    expect(await at.run(act, '--timer', '--yes')).toMatchObject(
      act === '--install'
        ? { code: 2, stderr: expect.stringContaining('it is no text in UTF-8') }
        : { code: 0, stdout: expect.stringContaining('nothing to do') },
    );
  expect(readFileSync(at.dir.file('tab'))).toEqual(tab);
});

test('a hook starts an import in a process of its own, at once and without a word, and never fails', async () => {
  using at = installDesk();
  const project = at.dir.file(".claude/projects/it's");
  mkdirSync(project, { recursive: true });
  const record = {
    type: 'user',
    uuid: 'u1',
    parentUuid: null,
    sessionId: 's1',
    cwd: '/work',
    isSidechain: false,
  };
  const line = JSON.stringify({ ...record, message: { role: 'user', content: 'Hello' } });
  writeFileSync(join(project, 's1.jsonl'), `${line}\n`);
  using home = tempHome();
  const env = { HOME: at.dir.path };
  await home.process(['import', '--install', '--yes'], { env });
  const [hook] = hooksIn(at.text());
  const run = (command: string) =>
    spawnSync('sh', ['-c', command], { env, cwd: project, encoding: 'utf8', input: '{}' });
  expect(run(hook?.command ?? '')).toMatchObject({ status: 0, stdout: '', stderr: '' });
  expect(run((hook?.command ?? '').replace(process.execPath, '/gone'))).toMatchObject({
    status: 0,
    stdout: '',
    stderr: '',
  });
  while (!existsSync(home.file('sources.jsonl'))) await sleep(50);
  expect((await home.here(['view', 's1'])).stdout).toContain('Hello');
});

test('a hook starts an import also in a directory that was removed', async () => {
  using at = installDesk();
  const project = at.dir.file('.claude/projects/p');
  mkdirSync(project, { recursive: true });
  const [record, message] = [
    { type: 'user', uuid: 'u1', parentUuid: null, sessionId: 's1' },
    { role: 'user' },
  ];
  writeFileSync(
    join(project, 's1.jsonl'),
    `${JSON.stringify({ ...record, message: { ...message, content: 'Hi' } })}\n`,
  );
  using home = tempHome();
  const env = { HOME: at.dir.path };
  await home.process(['import', '--install', '--yes'], { env });
  const [hook] = hooksIn(at.text());
  const gone = at.dir.file('gone');
  mkdirSync(gone);
  const inGone = (command: string) =>
    spawnSync('sh', ['-c', `/bin/rmdir '${gone}'; ${command}`], {
      env,
      cwd: gone,
      encoding: 'utf8',
      input: '',
    });
  expect(inGone(hook?.command ?? '')).toMatchObject({ status: 0 });
  while (!existsSync(home.file('sources.jsonl'))) await sleep(20);
  mkdirSync(gone);
  const listed = inGone(`'${process.execPath}' '${tapeProgram}' sessions --quiet --home '${home.path}'`);
  expect(listed).toMatchObject({ status: 0, stderr: '', stdout: 's1\n' });
});

test('of the imports that hooks start while one runs, one waits and finds all, and the others end', async () => {
  using at = installDesk();
  const project = at.dir.file('.claude/projects/p');
  mkdirSync(project, { recursive: true });
  using home = tempHome();
  mkdirSync(home.file('run'), { mode: 0o700 });
  const running = takeLock(home.file('run/import'));
  const words = ['import', '--yes', '--quiet', '--turn'];
  const isWaiting = () =>
    readdirSync(home.file('run')).some((name) => {
      const next = name.startsWith('import.next') ? takeLock(home.file(`run/${name}`)) : undefined;
      next?.release();
      return name.startsWith('import.next') && next === undefined;
    });
  // One that is killed while it waits leaves its place to the next one.
  const killed = spawn(process.execPath, [tapeProgram, ...words], {
    stdio: 'ignore',
    env: { ...process.env, HOME: at.dir.path, TAPE_HOME: home.path },
  });
  while (!isWaiting()) await sleep(20);
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  expect(isWaiting()).toBe(false);
  let ended = 0;
  const start = async () => {
    const { code } = await home.process(words, { env: { HOME: at.dir.path } });
    ended += 1;
    return code;
  };
  const started = [start(), start(), start()];
  while (ended < 2) await sleep(20);
  expect(isWaiting()).toBe(true);
  const message = { role: 'user', content: 'Hello' };
  const record = { type: 'user', uuid: 'u1', parentUuid: null, sessionId: 's1', message };
  writeFileSync(join(project, 's1.jsonl'), `${JSON.stringify(record)}\n`);
  running?.release();
  expect(await Promise.all(started)).toEqual([0, 0, 0]);
  expect((await home.here(['view', 's1'])).stdout).toContain('Hello');
  expect((await home.here(['check'])).stdout).not.toContain('unknown-file');
});

test('of the imports that hooks start while one runs, one waits for each place where Claude Code keeps transcripts', async () => {
  using at = installDesk();
  using home = tempHome();
  mkdirSync(home.file('run'), { mode: 0o700 });
  const running = takeLock(home.file('run/import'));
  const started = ['s1', 's2'].map(async (session) => {
    const config = at.dir.file(session);
    mkdirSync(join(config, 'projects/p'), { recursive: true });
    const record = { type: 'user', uuid: session, parentUuid: null, sessionId: session };
    const message = { role: 'user', content: 'Hello' };
    writeFileSync(join(config, `projects/p/${session}.jsonl`), `${JSON.stringify({ ...record, message })}\n`);
    const env = { HOME: at.dir.path, CLAUDE_CONFIG_DIR: config };
    return (await home.process(['import', '--yes', '--quiet', '--turn'], { env })).code;
  });
  // Both wait: each has a file beside that of the one that runs.
  while (readdirSync(home.file('run')).length < 3) await sleep(20);
  running?.release();
  expect(await Promise.all(started)).toEqual([0, 0]);
  expect((await home.here(['sessions', '--quiet'])).stdout.split('\n').toSorted()).toEqual(['', 's1', 's2']);
});
