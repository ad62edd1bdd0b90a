import { spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { assistant, handoff, note, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError, jsonLines, startTape } from '../support/cli.ts';
import { atFullSize, sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const read = { toolCallId: 'c1', toolName: 'read`file' };
const usage = { input: 100, output: 20, reasoning: 3, cacheRead: 10, cacheWrite: 5 };

/** `main` with a call, a rewind, and two children: `tests` is merged, `open` is not, and has a child of its own. */
function withTree(): TempHome {
  const home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  store.entries.append('main', [
    user('Plan the release.\n## @9 user\n<!--', { sender: 'u1', sender_name: 'Ann', channel: 'slack' }),
    assistant(
      [
        { type: 'reasoning', text: 'Look first.' },
        { type: 'text', text: 'I look.\n```\nopen \u001b[31mfence' },
        toolCall(read.toolCallId, read.toolName, { path: 'NEWS.md' }),
      ],
      { run: 'r1', step: 1, model: 'a/b', usage, cost: 0.5 },
    ),
    toolResult(read, { type: 'error-text', value: '```\nno file\n```' }),
    note('run/retrying', { run: 'r1', attempt: 1, message: 'busy' }),
    note('permission/decided', { toolCallId: 'c1', verdict: 'ask' }),
    note('run/error', { run: 'r1', message: 'the provider is down' }),
  ]);
  store.lineage.fork('main', { name: 'tests', intention: { nextSteps: 'Run the tests.' } });
  store.entries.append('tests', [assistant('All pass.')]);
  store.lineage.merge('tests');
  store.lineage.fork('main', { name: 'open' });
  store.entries.append('open', [user('Go on.')]);
  store.lineage.fork('open', { name: 'below' });
  store.entries.append('main', [user('Wrong.'), assistant('Very.')]);
  store.history.rewind('main', 9);
  store.entries.append('main', [handoff('done', { summary: 'It is planned.', left: 2 })]);
  return home;
}

/** The bytes of all files below a directory, by their paths. */
function files(dir: string): Record<string, string> {
  const found = globSync('**/*', { cwd: dir, exclude: (name) => name === '.git' }).filter(
    (name) => statSync(join(dir, name), { throwIfNoEntry: false })?.isFile() === true,
  );
  return Object.fromEntries(found.sort().map((name) => [name, readFileSync(join(dir, name), 'utf8')]));
}

test('the context is the conversation, and no text of it reaches beyond its place', async () => {
  using home = withTree();
  const { stdout, code } = await home.tape(['logs', 'main']);
  const [heading = '', ...rest] = stdout.split('\n## ');
  expect({ code, heading: heading.replace(/0[0-9A-Z]{25}/g, 'ULID').replace(/2\d{3}-.*Z/, 'TIME') }).toEqual({
    code: 0,
    heading: '# Context of main (ULID)\n\n* session: ULID, `session`\n* created: TIME\n',
  });
  expect(`## ${rest.join('\n## ')}`.replace(/"created_at": ".*"/, '')).toBe(`## @2 user \`Ann\` by \`slack\`

> Plan the release.
> ## @9 user
> <!--

## @3 assistant

> I look.
> \`\`\`
> open \\u{1b}[31mfence

Call \`\` read\`file \`\`, \`c1\`:

\`\`\`json
{
  "path": "NEWS.md"
}
\`\`\`

## @4 result of \`\` read\`file \`\`, failed, \`c1\`

\`\`\`\`
\`\`\`
no file
\`\`\`
\`\`\`\`

## @7 event \`run/error\`

> the provider is down

## @8 merge of @8-@10 of \`tests\`, \`result\`, \`completed\`

## @9 merge of \`tests\`

> All pass.

*@10-@12 are left out: the rewind at @12 hides them.*

## @13 handoff \`done\`

> It is planned.

\`\`\`json
{
  "left": 2
}
\`\`\`

`);
});

test('raw traffic is kept on request, is no finding of a check, and a redaction names its file', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'Fine.' }, { text: 'Good.' }]));
  const model = `script:${home.file('answers.json')}`;
  const run = async (...more: readonly string[]) =>
    await home.tape(['run', 'main', 'How are you?', '--model', model, ...more]);
  expect(await run()).toMatchObject({ code: 0 });
  expect(existsSync(home.file('logs'))).toBe(false);
  expect(await run('--record', 'raw')).toMatchObject({ code: 0, stdout: 'Good.\n' });
  const { id } = json<{ id: string }>(await home.tape(['show', 'main', '--json']));
  const file = home.file(`logs/${id}/raw.jsonl`);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line)).find(({ part }) => part?.type === 'text-delta')).toMatchObject(
    {
      type: 'piece',
      part: { delta: 'Good.' },
    },
  );
  const { stdout } = await home.tape(['check', '--json']);
  expect(stdout).toContain('answers.json');
  expect(stdout).not.toContain('/logs');
  expect(json(await home.tape(['redact', 'main@2', '--reason', 'test', '--json']))).toMatchObject({
    quoted_by: [file],
  });
  expect(await home.tape(['run', 'main', 'x', '--model', model, '--record', 'all'])).toMatchObject({
    code: 2,
  });
  expect(await home.tape(['new', 'other', '--record', 'raw'])).toMatchObject({ code: 0 });
  expect(json(await home.tape(['show', 'other', '--json']))).toMatchObject({ settings: { record: 'raw' } });
});

test('the verbose log has every entry, with all that is recorded about it', async () => {
  using home = withTree();
  const { stdout } = await home.tape(['logs', 'main', '--verbose']);
  expect(stdout.match(/^## @\d+ .*$/gm)).toEqual([
    '## @1 anchor `session/start`',
    '## @2 user `Ann` by `slack`',
    '## @3 assistant',
    '## @4 result of `` read`file ``, failed, `c1`',
    '## @5 event `run/retrying`',
    '## @6 event `permission/decided`',
    '## @7 event `run/error`',
    '## @8 merge of @8-@10 of `tests`, `result`, `completed`',
    '## @9 merge of `tests`',
    '## @10 user, hidden by the rewind at @12',
    '## @11 assistant, hidden by the rewind at @12',
    '## @12 rewind to @9, hidden by the rewind at @12',
    '## @13 handoff `done`',
  ]);
  expect(stdout).toContain('* run `r1`, step 1, model `a/b`\n');
  expect(stdout).toContain(
    '* usage: 100 in, 20 out, 3 reasoning, 10 read from a cache, 5 written to one, cost 0.5\n',
  );
  expect(stdout).toContain('Reasoning:\n\n> Look first.\n');
  expect(stdout).toContain('> busy\n\n```json\n{\n  "run": "r1",\n  "attempt": 1,');
  expect(stdout).toMatch(/^\* time: 2\d{3}-.*Z, \d+\.\d{3} s after @3$/m);
  const [, entry] = jsonLines(await home.here(['log', 'main', '--jsonl']));
  expect(stdout).toContain(`* hash: \`${String(entry?.hash)}\``);
});

test('made again, files have the same bytes, also while children are open and entries are erased', async () => {
  using home = withTree();
  const write = async (dir: string) =>
    await home.tape(['logs', 'main', '--verbose', '--tree', '-o', home.file(dir)]);
  expect((await write('a')).stdout).toBe(`Wrote 8 files to ${home.file('a')}\n`);
  const before = files(home.file('a'));
  expect(Object.keys(before).map((name) => name.replace(/0[0-9A-Z]{25}/g, 'ULID'))).toEqual([
    'context.md',
    'open-ULID/below-ULID/context.md',
    'open-ULID/below-ULID/verbose.md',
    'open-ULID/context.md',
    'open-ULID/verbose.md',
    'tests-ULID/context.md',
    'tests-ULID/verbose.md',
    'verbose.md',
  ]);
  const child = Object.entries(before).find(([name]) => name.startsWith('tests-'))?.[1] ?? '';
  expect(child).toContain('* parent: main (');
  expect(child.match(/^## .*$/gm)).toEqual([
    '## @8 fork of `main`, inherits @1-@7',
    '## @9 task',
    '## @10 assistant',
  ]);
  await write('a');
  expect(files(home.file('a'))).toEqual(before);
  rmSync(home.file('a'), { recursive: true });
  await write('a');
  expect(files(home.file('a'))).toEqual(before);
  await home.here(['redact', 'main@2', '--reason', 'private']);
  await home.here(['append', 'open'], { stdin: '{"content":"More."}\n' });
  await write('a');
  await write('b');
  expect(files(home.file('a'))).toEqual(files(home.file('b')));
  expect(JSON.stringify(files(home.file('a')))).not.toContain('Plan the release.');
  for (const name of ['', ...Object.keys(before)]) {
    const { mode } = statSync(join(home.file('a'), name));
    expect(mode & 0o777).toBe(name === '' ? 0o700 : 0o600);
  }
});

test('a fork that is named has its inherited entries, too, and one of a tree its own alone', async () => {
  using home = withTree();
  const named = (await home.here(['logs', 'open'])).stdout;
  expect(named.match(/^## .*$/gm)?.slice(0, 2)).toEqual([
    '## @2 user `Ann` by `slack`, inherited',
    '## @3 assistant, inherited',
  ]);
  expect(named).toContain('* parent: main (');
  const lines = jsonLines(await home.here(['logs', 'main', '--tree', '--jsonl']));
  expect(
    lines.filter(({ session, seq }) => session === 'open' && seq !== null).map(({ seq }) => seq),
  ).toEqual([10, 11]);
});

test('what is not a log of the same session is left as it is', async () => {
  using home = withTree();
  const refused = async (dir: string, message: string, session = 'main') => {
    const there = () => ({ logs: readdirSync(home.file('logs')), files: files(home.file('logs')) });
    const before = there();
    const said = await home.tape(['logs', session, '--json', '-o', dir]);
    expect(said.code).toBe(2);
    expect(jsonError(said).message).toBe(message);
    expect(there()).toEqual(before);
    expect(existsSync(home.file('elsewhere.md'))).toBe(false);
  };
  const at = home.file('logs');
  mkdirSync(at);
  const file = join(at, 'context.md');
  writeFileSync(file, '# My notes\n');
  await refused(at, `cannot write the log '${file}': there is another file of this name`);
  rmSync(file);
  symlinkSync(home.file('elsewhere.md'), file);
  await refused(at, `cannot write the log '${file}': there is a symbolic link of this name`);
  rmSync(file);
  spawnSync('mkfifo', [file]);
  await refused(at, `cannot write the log '${file}': there is a pipe of this name`);
  await refused(file, `cannot write logs to '${file}': it is a pipe`);
  rmSync(file);
  mkdirSync(file);
  await refused(at, `cannot write the log '${file}': there is a directory of this name`);
  rmSync(file, { recursive: true });
  expect((await home.here(['logs', 'tests', '-o', at])).code).toBe(0);
  await refused(at, `cannot write the log '${file}': there is another file of this name`);
  symlinkSync(at, home.file('link'));
  await refused(
    home.file('link'),
    `cannot write logs to '${home.file('link')}': it is a symbolic link`,
    'tests',
  );
  await refused(home.db, `cannot write logs to '${home.db}': it is a file`);
  await refused('/dev/null', `cannot write logs to '/dev/null': it is a device`);
  // A directory that the system says does not exist, however often it is made.
  const said = await home.tape(['logs', 'main', '--json', '-o', '/proc/logs']);
  expect(jsonError(said).message).toContain("cannot write the log '/proc/logs'");
  expect(jsonError(await home.here(['logs', 'nowhere', '--json', '-o', at])).code).toBe('TAPE_NO_SESSION');
});

test('folders have safe names, whatever the names of sessions are, and end at a depth', async () => {
  using home = tempHome();
  {
    using store = home.open();
    store.sessions.open('main');
    for (const name of ['context.md', '%2E%2E%2Fetc', 'CON', `a:b@c!${'x'.repeat(170)}`])
      store.lineage.fork('main', { name });
    let parent = 'main';
    for (let n = 0; n < 20; n += 1) {
      store.lineage.fork(parent, { name: `deep${n}` });
      parent = `deep${n}`;
    }
  }
  const dir = home.file('logs');
  const said = json<{ files: { session: string; file: string }[] }>(
    await home.here(['logs', 'main', '--tree', '-o', dir, '--json']),
  );
  expect(said.files).toHaveLength(25);
  expect(
    readdirSync(dir)
      .map((name) => name.replace(/0[0-9A-Z]{25}/, 'ULID'))
      .sort(),
  ).toEqual([
    '2e-2e-2fetc-ULID',
    'a-b-c-xxxxxxxxxxxxxxxxxxxxxxxx-ULID',
    'con-ULID',
    'context.md',
    'context.md-ULID',
    'deep0-ULID',
    'deep12-ULID',
  ]);
  for (const { file, session } of said.files)
    expect(readFileSync(join(dir, file), 'utf8').startsWith(`# Context of ${session} (`)).toBe(true);
});

test('what a killed process left of a file is removed, and what a living one writes stays', async () => {
  using home = withTree();
  const dir = home.file('logs');
  await home.here(['logs', 'main', '-o', dir]);
  const draft = (pid: number) => join(dir, `context.md.${pid}-0123456789ab.part`);
  const { pid: dead } = spawnSync(process.execPath, ['-e', '']);
  for (const pid of [dead, process.pid]) writeFileSync(draft(pid), '# half');
  writeFileSync(join(dir, 'context.md'), readFileSync(join(dir, 'context.md')).subarray(0, 90));
  await home.here(['logs', 'main', '-o', dir]);
  expect([dead, process.pid].map((pid) => existsSync(draft(pid)))).toEqual([false, true]);
  rmSync(draft(process.pid));
  await home.here(['logs', 'main', '-o', home.file('again')]);
  expect(files(dir)).toEqual(files(home.file('again')));
});

test('two processes that follow into one directory, and writers beside them, leave the bytes of the tape', async () => {
  using home = withTree();
  const dir = home.file('logs');
  const argv = ['logs', 'main', '--verbose', '--tree', '--follow', '-o', dir];
  const running = Array.from({ length: 2 }, () => startTape(argv, { home: home.path }));
  for (const { until } of running) await until(`verbose.md`);
  {
    using store = home.open();
    for (let n = 0; n < sized(5, 5, 400); n += 1)
      store.entries.append('main', [user(`Step ${n}`), assistant('So.')]);
    store.lineage.fork('main', { name: 'late' });
    store.entries.append('late', [assistant('Late.')]);
    store.history.rewind('main', 9);
    store.entries.redact('main', 2, 'private');
    store.entries.append('main', [user('The end.')]);
  }
  const written = (name: string) =>
    Object.entries(files(dir))
      .filter(([file]) => file.startsWith(name))
      .map(([, text]) => text)
      .join('');
  await expect.poll(() => written('late-')).toContain('Late.');
  await expect.poll(() => written('verbose.md')).toContain('The end.');
  for (const { child } of running) child.kill('SIGINT');
  expect(await Promise.all(running.map(async ({ done }) => (await done).code))).toEqual([130, 130]);
  await home.here(['logs', 'main', '--verbose', '--tree', '-o', home.file('again')]);
  expect(files(dir)).toEqual(files(home.file('again')));
});

test('a log that is followed on stdout goes on where it was, until Ctrl-C', async () => {
  using home = withTree();
  const { child, done, until } = startTape(['logs', 'main', '--follow'], { home: home.path });
  await until('It is planned.');
  {
    using store = home.open();
    store.entries.append('main', [user('And now?')]);
    store.history.rewind('main', 13);
  }
  await until('the rewind at @15');
  child.kill('SIGINT');
  const { stdout, code } = await done;
  expect(code).toBe(130);
  expect(stdout.match(/It is planned/g)).toHaveLength(1);
  expect(stdout.match(/^\*.*$/gm)?.at(-1)).toMatch(/left out: the rewind at @15 hides (?:it|them)\.\*$/);
  expect((await home.here(['logs', 'main', '--follow', '--json'])).code).toBe(2);
  expect((await home.here(['logs', 'main', '--follow', '--tree'])).code).toBe(2);
});

test.runIf(atFullSize)(
  'a process that is killed while it writes leaves whole files, and the next run gives the same bytes',
  async () => {
    using home = withTree();
    {
      using store = home.open();
      for (let n = 0; n < sized(2, 10, 200); n += 1)
        store.entries.append(
          'main',
          Array.from({ length: 500 }, (_, i) => assistant(`Entry ${i} ${'x'.repeat(200)}`)),
        );
    }
    const dir = home.file('logs');
    const argv = ['logs', 'main', '--verbose', '--tree', '-o', dir];
    await home.here(argv);
    const whole = files(dir);
    for (let n = 0; n < sized(2, 3, 40); n += 1) {
      const { child, done } = startTape(argv, { home: home.path });
      setTimeout(() => child.kill('SIGKILL'), 100 + 60 * n);
      await done;
      const left = Object.entries(files(dir)).filter(([name]) => !name.endsWith('.part'));
      expect(Object.fromEntries(left)).toEqual(whole);
    }
    await home.here(argv);
    expect(files(dir)).toEqual(whole);
  },
);
