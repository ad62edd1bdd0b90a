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

test('{name} is {session} in each list of sessions, and the own field of records that have one', async () => {
  using home = withSessions();
  home.session('counted', user('Hi'), assistant('Hello', { usage: { input: 3, output: 4, cacheRead: 5 } }));
  expect(await printed(home, 'sessions', '--sort', 'name', '--format', '{name} {tokens}')).toBe(
    'child 0\ncounted 12\nmain 0\n',
  );
  for (const line of ['sessions --tree', 'children main', 'status --all', 'usage main', 'show main']) {
    const [name, session] = await Promise.all(
      ['{name}', '{session}'].map(
        async (format) => await printed(home, ...line.split(' '), '--format', format),
      ),
    );
    expect([line, name]).toEqual([line, session]);
    expect(session).not.toBe('\n');
  }
  expect(await printed(home, 'log', 'child', '--own', '--format', '[{name}]')).toBe('[fork/start]\n');
  expect(await printed(home, 'log', 'main', '--kind', 'message', '--format', '[{name}]')).toBe('[]\n[]\n');
});

test('a field that a record does not have is an empty text', async () => {
  using home = withSessions();
  expect(await printed(home, 'sessions', '--sort', 'name', '--format', '[{parent}]')).toBe('[main]\n[]\n');
});

test('{text} is the text of an entry', async () => {
  using home = withSessions();
  const line = await printed(home, 'log', 'main', '--kind', 'message', '--format', '{seq}: {text}');
  expect(line).toBe('2: Hello there\n3: Hi\\u{1b}[2J\n');
  expect(await printed(home, 'show', 'main@2', '--format', '{text}')).toBe('Hello there\n');
});

test.each([
  [['show', 'main', '--format', '{text}'], 'session'],
  [['log', 'main', '--format', '{tokens}'], 'session, tape, seq'],
  [['log', 'main', '--stat', '--format', '{seq}'], 'session, entries, messages'],
  [['sessions', '--format', '{children.opne}'], 'session, id, kind'],
])('a field that these records cannot have is an error: %j', async (args, fields) => {
  using home = withSessions();
  const { code, stderr, stdout } = await home.here(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(
    new RegExp(`no such field\nHint: the fields of (?:these records|tape \\w+): ${fields}`),
  );
});

test('every field of the records that the most used verbs print has a value in some record, or is optional', async () => {
  using home = withSessions();
  for (const line of [
    ['sessions'],
    ['children', 'main'],
    ['log', 'main'],
    ['log', 'main', '--stat'],
    ['show', 'main'],
  ]) {
    const json = await printed(
      home,
      ...line,
      line.includes('--stat') || line[0] === 'show' ? '--json' : '--jsonl',
    );
    const [first = '{}'] = json.split('\n');
    for (const [field, value] of Object.entries(JSON.parse(first) as Record<string, unknown>)) {
      const text = await printed(home, ...line, '--format', `{${field}}`);
      if (value !== null && value !== '') expect([field, text.trim() === '']).toEqual([field, false]);
    }
  }
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
  const { code, stderr, stdout } = await home.here(['sessions', '--format', '{nmae}']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('cannot format by {nmae}: no such field');
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
