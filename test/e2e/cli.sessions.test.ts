import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assistant, toolCall, user } from '@tapedeck/tape';
import { expect, test, vi } from 'vitest';
import { json, jsonLines } from '../support/cli.ts';
import { fixedClock } from '../support/clock.ts';
import { disagreements } from '../support/python.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const usage = { input: 1000, output: 234, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** Two roots: `plan` with a merged, an open and a discarded child, one of which has a child; and `notes`. */
function withFamilies(): TempHome {
  const home = tempHome();
  home.session('plan', user('Plan the release of 漢字'), assistant('Planned.', { model: 'm', usage }));
  using store = home.open();
  for (const name of ['one', 'two', 'three'])
    store.lineage.fork('plan', { name, intention: { nextSteps: `Do ${name}.` } });
  store.lineage.fork('two', { name: 'deep' });
  store.entries.append('one', [assistant('Done.')]);
  store.lineage.merge('one');
  store.lineage.merge('three', { strategy: 'discard' });
  store.sessions.open('notes', { title: 'Notes of a meeting' });
  return home;
}

/** The rows that a terminal shows, without the headings. */
async function rows(home: TempHome, args: readonly string[] = [], columns = 120): Promise<readonly string[]> {
  const { stdout } = await home.here(['sessions', '--no-color', ...args], { isTerminal: true, columns });
  const [, ...lines] = stdout.trimEnd().split('\n');
  return lines;
}

const names = (lines: readonly string[]) => lines.map((line) => /[a-z]+/.exec(line)?.[0]);

test('a row tells what a session is about, what it has, and how it stands', async () => {
  using home = withFamilies();
  const all = await rows(home);
  const row = (name: string) => all.find((line) => line.startsWith(name))?.split(/ {2,}/);
  expect(row('plan')).toEqual([
    'plan',
    'active',
    '3',
    '1 open, 1 merged of 3',
    '1.2k',
    'now',
    'Plan the release of 漢字',
  ]);
  // A narrow terminal has the first of both.
  expect((await rows(home, [], 70)).find((line) => line.startsWith('plan'))).toMatch(/ {2}1 of 3 open {2}/);
  expect(row('one')?.[1]).toBe('merged');
  expect(row('two')?.at(-1)).toBe('Do two.');
  expect(row('notes')?.at(-1)).toBe('Notes of a meeting');
});

test('rows fit the terminal', async () => {
  using home = withFamilies();
  {
    using store = home.open();
    store.sessions.open(`long-${'x'.repeat(90)}`, { title: '漢字'.repeat(60) });
  }
  for (const columns of [80, 100]) {
    // Each ideograph takes two columns.
    const widths = (await rows(home, [], columns)).map(
      (line) => line.length + (line.match(/\p{Lo}/gu)?.length ?? 0),
    );
    expect(Math.max(...widths)).toBeLessThanOrEqual(columns);
  }
});

test('--tree lists children below their parents, newest first, and draws which of them are siblings', async () => {
  const { now } = fixedClock({ stepMs: 1 });
  vi.spyOn(Date, 'now').mockImplementation(now);
  using home = withFamilies();
  {
    using store = home.open();
    store.lineage.fork('two', { name: 'low' });
  }
  vi.restoreAllMocks();
  expect((await rows(home, ['--tree'])).map((line) => line.replace(/ {2,}[a-z].*/, ''))).toEqual([
    'notes',
    'plan',
    '├ one',
    '├ three',
    '╰ two',
    '  ├ low',
    '  ╰ deep',
  ]);
  expect(jsonLines(await home.here(['sessions', '--tree', '--jsonl'])).map(({ session }) => session)).toEqual(
    ['notes', 'plan', 'one', 'three', 'two', 'low', 'deep'],
  );
  // A session whose parent is left out is below its nearest ancestor that is not.
  expect(names(await rows(home, ['--tree', '--grep', 'de']))).toEqual(['deep']);
  expect(
    (await rows(home, ['--tree', '--kind', 'subagent'])).map((line) => /^\W*[a-z]+/.exec(line)?.[0]),
  ).toEqual(['one', 'three', 'two', '├ low', '╰ deep']);
});

test('a pipe gets what a terminal shows, whole and between tabs', async () => {
  using home = withFamilies();
  const long = `${'Describe everything that has changed '.repeat(4)}.`;
  {
    using store = home.open();
    store.sessions.open(`long-${'x'.repeat(90)}`, { title: long });
    store.leases.acquire('plan', { id: 'a-run' });
  }
  const { stdout } = await home.here(['sessions', '--sort', 'name'], { columns: 40 });
  const fields = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  const of = (name: string) => fields.find(([first]) => first === name);
  expect(of('plan')).toEqual([
    ...['plan', 'session', 'busy', '@6', '', time],
    ...['3', '1 open, 1 merged of 3', '1234', 'Plan the release of 漢字'],
  ]);
  expect(of('one')?.slice(1, 5)).toEqual(['subagent', 'merged', '@6', 'plan']);
  expect(of('two')?.slice(6)).toEqual(['0', '1 open', '0', 'Do two.']);
  expect(of(`long-${'x'.repeat(90)}`)?.at(-1)).toBe(long.trim());
  expect(new Set(fields.map(({ length }) => length))).toEqual(new Set([10]));
});

test('a result in a pipe is whole', async () => {
  using home = tempHome();
  home.session('main', user('Go'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'child' });
    store.entries.append('child', [assistant(`All of it:\n\n${'one more line of the result\n'.repeat(9)}`)]);
  }
  const { stdout } = await home.here(['children', 'main'], { columns: 40 });
  expect(stdout.trimEnd().split('\t').at(-1)).toBe(
    `All of it: ${'one more line of the result '.repeat(9).trim()}`,
  );
});

test('a narrow terminal shows states and times whole, and leaves other columns out for names', async () => {
  using home = withFamilies();
  const name = 'check-the-changelog-of-the-release-of-2026-11-24';
  {
    using store = home.open();
    store.lineage.fork('plan', { name });
    store.sessions.update('two', { task: 'failed' });
    store.lineage.merge('two');
  }
  for (const line of ['sessions', 'sessions --tree', 'children plan', 'overview']) {
    const { stdout } = await home.here([...line.split(' '), '--no-color'], { isTerminal: true, columns: 40 });
    expect(stdout, line).toMatch(/merged, failed/);
    expect(stdout, line).toMatch(/^.*check-[^ ]+ +active +.*now/m);
    expect(stdout, line).not.toMatch(/\b(?:st|la|ab)…/);
  }
});

test('--grep, --sort, --kind and -n select sessions', async () => {
  using home = withFamilies();
  expect(names(await rows(home, ['--grep', '漢字']))).toEqual(['plan']);
  expect(names(await rows(home, ['--grep', 'MEETING']))).toEqual(['notes']);
  expect(names(await rows(home, ['--grep', 'Do t', '--sort', 'name']))).toEqual(['three', 'two']);
  expect(names(await rows(home, ['--sort', 'tokens', '-n', '1']))).toEqual(['plan']);
  expect(names(await rows(home, ['--kind', 'subagent', '--sort', 'name']))).toEqual([
    'deep',
    'one',
    'three',
    'two',
  ]);
  expect(names(await rows(home, ['--sort', 'name', '-n', '2']))).toEqual(['deep', 'notes']);
});

test('a terminal shows 50 sessions and says that there are more; a pipe gets all', async () => {
  using home = tempHome();
  {
    using store = home.open();
    for (let i = 0; i < 60; i += 1) store.sessions.open(`s${i}`);
  }
  const { stdout, stderr } = await home.here(['sessions'], { isTerminal: true });
  expect(stdout.trimEnd().split('\n')).toHaveLength(51);
  expect(stderr).toContain('There are more sessions (see them with -n 200)');
  expect(json<object[]>(await home.here(['sessions', '--json'], { isTerminal: true }))).toHaveLength(60);
  expect((await home.here(['sessions'])).stdout.trimEnd().split('\n')).toHaveLength(60);
});

test('a terminal shows the last 50 children and says how many came before; a pipe gets all', async () => {
  using home = tempHome();
  home.session('main', user('Go'));
  {
    using store = home.open();
    for (let i = 1; i <= 60; i += 1) store.lineage.fork('main', { name: `c${i}`, inherit: 'nothing' });
  }
  const { stdout, stderr } = await home.here(['children', 'main'], { isTerminal: true });
  expect(stdout.trimEnd().split('\n')).toHaveLength(51);
  expect(stdout).toContain('c60');
  expect(stderr).toContain('There are 10 earlier children (see them with -n 60)');
  expect(json<object[]>(await home.here(['children', 'main', '--json']))).toHaveLength(60);
  expect(json<object[]>(await home.here(['children', 'main', '-n', '2', '--json']))).toMatchObject([
    { session: 'c59' },
    { session: 'c60' },
  ]);
  expect((await home.here(['children', 'main', '-n', '0', '--quiet'])).stdout).toBe('');
});

test('--here lists the sessions that began in the directory or below it, with their children', async () => {
  using home = tempHome();
  const place = (cwd: string) => ({ place: { cwd, host: 'h' } });
  home.session('above', user('Hi', place('/srv')));
  home.session('at', user('Hi', place('/srv/project')));
  home.session('below', user('Hi', place('/srv/project/deep')));
  home.session('beside', user('Hi', place('/srv/project-2')));
  home.session('nowhere', user('Hi'));
  using store = home.open();
  store.lineage.fork('at', { name: 'child', inherit: 'nothing' });
  const { stdout } = await home.here(['sessions', '--here', '--quiet', '--sort', 'name'], {
    cwd: '/srv/project',
  });
  expect(stdout).toBe('at\nbelow\nchild\n');
});

test('a session that runs is busy, and one whose calls have no result waits', async () => {
  using home = withFamilies();
  home.session('asks', user('Deploy.'), assistant([toolCall('c1', 'deploy', {})]));
  using store = home.open();
  store.leases.acquire('plan', { id: 'a-run' });
  const states = new Map(
    (await rows(home)).map((line) => line.split(/ {2,}/)).map(([name, state]) => [name, state]),
  );
  expect([states.get('plan'), states.get('asks'), states.get('notes'), states.get('one')]).toEqual([
    'busy',
    'waiting',
    'active',
    'merged',
  ]);
});

test.each([
  [30_000, '30s', '30 s ago'],
  [5 * 60_000, '5m', '5 min ago'],
  [3 * 3_600_000, '3h', '3 h ago'],
  [26 * 3_600_000, '1d', '1 day ago'],
  [400 * 86_400_000, expect.stringMatching(/^\d{4}-\d\d$/), expect.stringMatching(/^\d{4}-\d\d-\d\d$/)],
])('a narrow terminal shows times in few columns, after %i ms: %s', async (ms, brief, relative) => {
  using home = tempHome();
  home.session('main', user('Plan the release of all the parts of the shop that have changed since Monday'));
  const last = async (columns: number) => {
    const { stdout } = await home.here(['sessions', '--no-color'], {
      isTerminal: true,
      columns,
      now: () => Date.now() + ms,
    });
    return stdout.split('\n')[1]?.split(/ {2,}/)[3];
  };
  expect(await last(50)).toEqual(brief);
  expect(await last(100)).toEqual(relative);
});

test('sessions --json has a title for each: the given one, that of a model, or the beginning of a prompt', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'One.' }, { text: 'Two.' }]));
  // A scripted model gives a session each of its answers once: the first was that of the run.
  writeFileSync(
    home.file('titles.json'),
    JSON.stringify([{ text: 'unused' }, { text: '**Release \u001b[2Jplan**\nand more' }]),
  );
  const run = async (...args: string[]) =>
    await home.here(['run', ...args, '--model', `script:${home.file('answers.json')}`]);
  await run('plain', 'Plan\tthe release,\r\nin steps');
  home.session('given', user('ask'));
  writeFileSync(join(home.path, 'config.yaml'), `titles: script:${home.file('titles.json')}\n`);
  expect(await run('named', 'Plan the release')).toMatchObject({ code: 0, stdout: 'One.\n' });
  const listed = json<{ session: string; title?: string; message_count: number; last_message_at: string }[]>(
    await home.here(['sessions', '--json']),
  );
  expect(Object.fromEntries(listed.map(({ session, title }) => [session, title]))).toEqual({
    named: 'Release [2Jplan',
    given: 'ask',
    plain: 'Plan the release, in steps',
  });
  expect(listed[0]).toMatchObject({ session: 'named', message_count: 2 });
  expect(json(await home.here(['show', 'named', '--json']))).toMatchObject({ title: 'Release [2Jplan' });
  expect(json(await home.here(['usage', 'named', '--json']))).toHaveProperty('summaries');
  expect((await home.here(['sessions', '--grep', 'in steps', '--quiet'])).stdout).toBe('plain\n');
  expect((await home.here(['sessions', '--grep', 'release plan', '--quiet'])).stdout).toBe('');
  expect((await home.here(['check'])).code).toBe(0);
  expect(disagreements(home.path, [])).toEqual([]);
});

test('times in a pipe have a zone, as those of a log have', async () => {
  using home = tempHome();
  home.session('main', user('Go'));
  const time = /\t(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\t/m;
  const [, listed] = time.exec((await home.here(['sessions'])).stdout) ?? [];
  expect((await home.here(['log', 'main'])).stdout).toContain(` ${listed}\n`);
});
