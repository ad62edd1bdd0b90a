import { existsSync } from 'node:fs';
import { assistant, note, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

test('tape alone shows what waits, and the children that ended since the last look', async () => {
  using home = tempHome();
  using state = tempDir();
  const env = { XDG_STATE_HOME: state.path };
  const look = async (...args: string[]) =>
    await home.here(args, { env: { ...env, NO_COLOR: '1' }, isTerminal: true });
  home.session('main', user('Plan the release'), assistant('Planned.'));
  home.session(
    'asking',
    user('Go'),
    assistant([toolCall('c1', 'deploy', { to: 'production' })]),
    note('run/waiting', { run: 'r1', calls: [{ toolCallId: 'c1', toolName: 'deploy', for: 'approval' }] }),
  );
  {
    using store = home.open();
    for (const name of ['one', 'two']) store.lineage.fork('main', { name });
    store.entries.append('one', [assistant('Done.')]);
    store.lineage.merge('one');
  }
  {
    using store = home.open();
    for (const name of ['imported', 'imported-too']) store.lineage.fork('main', { name });
    // As an import does: the parent had the result before, or it has the time at the source alone.
    store.lineage.merge('imported', { context: false, received: 2 });
    store.lineage.merge('imported-too', { context: false, timestamp: '2026-01-03T03:04:05.000Z' });
  }
  const first = await look();
  expect(first.code).toBe(0);
  expect(first.stdout).not.toMatch(/imported.*of main/);
  expect(first.stdout).toMatch(/Waiting for you\n.*asking.*deploy/);
  expect(first.stdout).toContain('tape approve asking');
  expect(first.stdout).toMatch(/Children that ended\n.*one\s+merged\s+of main/);
  expect(first.stdout).not.toMatch(/two\s.*of main/);
  expect(first.stdout).toContain('Plan the release');

  // Nothing ended since.
  expect((await look()).stdout).not.toContain('Children that ended');
  {
    using store = home.open();
    store.lineage.merge('two', { strategy: 'discard' });
  }
  // A program that asks is not the user.
  for (const form of ['--json', '--quiet']) await look('overview', form);
  expect((await home.here(['overview'], { env })).stdout).toContain('Children that ended');
  expect((await look('overview')).stdout).toMatch(/Children that ended\n.*two\s+discarded\s+of main/);
});

test('a run whose process died is shown as interrupted', async () => {
  using home = tempHome();
  home.session('cut', user('Go', { run: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }));
  const document = json<{ interrupted: { session: string }[] }>(await home.here(['overview', '--json']));
  expect(document.interrupted.map(({ session }) => session)).toEqual(['cut']);
  expect((await home.here(['overview', '--quiet'])).stdout).toBe('cut\n');
});

test('of many sessions the newest are listed, and the others are counted', async () => {
  using home = tempHome();
  for (let i = 1; i <= 5; i += 1) home.session(`s${i}`, user('Go'));
  const look = async () => (await home.here(['overview'], { env: { NO_COLOR: '1' } })).stdout;
  expect(await look()).not.toContain('more');
  for (let i = 6; i <= 8; i += 1) home.session(`s${i}`, user('Go'));
  {
    using store = home.open();
    store.sessions.open('short-lived', { ephemeral: true });
  }
  await home.here(['archive', 's1']);
  expect(await look()).toContain('\n… 2 more (tape sessions)\n');
  expect((await home.here(['sessions', '--quiet'])).stdout.trim().split('\n')).toHaveLength(7);
});

test('a session whose call is approved waits for a run, not for another approval', async () => {
  using home = tempHome();
  home.session(
    'asking',
    user('Go'),
    assistant([toolCall('c1', 'deploy', {})]),
    note('run/waiting', { run: 'r1', calls: [{ toolCallId: 'c1', toolName: 'deploy', for: 'approval' }] }),
    note('call/answered', { toolCallId: 'c1', approved: true }),
    note('run/waiting', { run: 'r2', calls: [{ toolCallId: 'c1', toolName: 'deploy', for: 'tool' }] }),
  );
  const { stdout } = await home.here([], { env: { NO_COLOR: '1' }, isTerminal: true });
  expect(stdout).toMatch(/Waiting for you\n.*asking.*is approved.*\n {2}tape run asking --config FILE\n/);
});

test('a home that is named and does not exist is no empty one', async () => {
  using dir = tempDir();
  using home = tempHome();
  const nowhere = dir.file('nowhere');
  const lines = [
    ['sessions'],
    ['status'],
    ['overview'],
    ['log', 'main'],
    ['usage'],
    ['graph'],
    ['search', 'x'],
  ];
  for (const line of lines) {
    const refused = {
      code: 3,
      stdout: '',
      stderr:
        `Error: cannot read the tapes of '${nowhere}': there is no such directory\n` +
        `Hint: create it with: tape init --home ${nowhere}; or name another with --home or TAPE_HOME\n`,
    };
    expect(await home.here([...line, '--home', nowhere])).toEqual(refused);
    expect(await home.here(line, { env: { TAPE_HOME: nowhere } })).toEqual(refused);
  }
  expect(existsSync(nowhere)).toBe(false);
  // No one has named this one, and it is where the first session will be.
  for (const verb of ['sessions', 'status', 'overview'])
    expect((await home.here([verb], { cwd: dir.path, env: { TAPE_HOME: '', HOME: dir.path } })).code).toBe(0);
});

test('without a home, tape alone shows the help, and the overview has no sessions', async () => {
  using dir = tempDir();
  using home = tempHome();
  const { stdout, code } = await home.here([], { cwd: dir.path });
  expect(stdout).toContain('tape VERB [SESSION[@POINT]] [OPTIONS]');
  expect(code).toBe(2);
  expect((await home.here(['overview'])).stdout).toBe('No sessions\n');
});
