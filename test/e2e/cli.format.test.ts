import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

function withSessions(): TempHome {
  const home = tempHome();
  home.session('main', user('Hello\nthere'), assistant('Hi\u001b[2J'));
  using store = home.open();
  store.lineage.fork('main', { name: 'child' });
  return home;
}

const printed = async (home: TempHome, ...args: readonly string[]) => {
  const { stdout, stderr, code } = await home.here(args);
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  return stdout;
};

test('--format prints each record of a list by a template', async () => {
  using home = withSessions();
  expect(
    await printed(home, 'sessions', '--sort', 'name', '--format', '{session}\\t{children.open} {{{kind}}}'),
  ).toBe('child\t0 {subagent}\nmain\t1 {session}\n');
  expect(await printed(home, 'children', 'main', '--format', '{session}: {text}')).toBe(
    'child: (no result)\n',
  );
  expect(await printed(home, 'log', 'main', '--kind', 'message', '--format', '{seq}')).toBe('2\n3\n');
});

test('a field that a record does not have is an empty text', async () => {
  using home = withSessions();
  expect(await printed(home, 'sessions', '--sort', 'name', '--format', '[{parent}]')).toBe('[main]\n[]\n');
});

test('values stay on one line, and steer no terminal', async () => {
  using home = withSessions();
  const text = await printed(home, 'log', 'main', '--kind', 'message', '--format', '{payload}');
  expect(text.split('\n')).toHaveLength(3);
  expect(text).not.toContain('\u001b');
});

test('a document has one record', async () => {
  using home = withSessions();
  expect(await printed(home, 'show', 'main', '--format', '{session} at {head}')).toBe('main at 3\n');
});

test('-0 ends records with NUL', async () => {
  using home = withSessions();
  for (const nul of ['-0', '--null']) {
    expect(await printed(home, 'sessions', '--quiet', '--sort', 'name', nul)).toBe('child\0main\0');
    expect(await printed(home, 'sessions', '--sort', 'name', '--format', '{session}!', nul)).toBe(
      'child!\0main!\0',
    );
  }
});

test('a field that no record can have is an error that lists the fields', async () => {
  using home = withSessions();
  const { code, stderr, stdout } = await home.here(['sessions', '--format', '{name}']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('cannot format by {name}: no such field');
  expect(stderr).toMatch(/Hint: the fields of tape sessions: session, id, kind/);
});

test('a column of the table that is no field is an error that names the fields that it shows', async () => {
  using home = withSessions();
  for (const [column, fields] of [
    ['state', '{delivery}, {task}, {lifecycle} and {interrupted}'],
    ['last', '{last_message_at}'],
    ['about', '{title}'],
  ]) {
    const { code, stderr } = await home.here(['sessions', '--format', `{${column}}`]);
    expect(code).toBe(2);
    expect(stderr).toContain(`Hint: the column '${column}' shows ${fields}; the fields of tape sessions: `);
    const names = [...(fields ?? '').matchAll(/\{\w+\}/g)].join(' ');
    expect((await home.here(['sessions', '--format', names])).code).toBe(0);
  }
  // A field of that name is a field.
  expect((await home.here(['status', '--all', '--format', '{state}'])).stdout).toContain('idle');
});

test.each([
  [['--format', '{session']],
  [['--format', 'a } b']],
  [['--format', '{session}', '--json']],
  [['--format', '{session}', '--quiet']],
  [['--null']],
])('%j is refused', async (args) => {
  using home = withSessions();
  const { code, stdout } = await home.here(['sessions', ...args]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
});

test('a verb with an option of that name keeps its meaning', async () => {
  using home = withSessions();
  expect(await printed(home, 'graph', '--format', 'dot')).toContain('digraph');
  expect(jsonError(await home.here(['sessions', '--null', '--json'])).code).toBe('CLI_USAGE');
});
