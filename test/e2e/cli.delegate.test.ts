import { writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError, tapeHere } from '../support/cli.ts';
import { project } from '../support/project.ts';
import { lastUserText, startProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const model = ['--model', 'openai-compatible/test-model'];

const linesOf = (home: TempHome, name: string): string[] => {
  using store = home.open();
  return entryLines(store.entries.read(name));
};

interface Told {
  readonly children: readonly { session: string; status: string; output?: unknown; seq: number | null }[];
}

test('delegate --schema requests a structured result from each child, merges it and prints it', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await startProvider((request) =>
    lastUserText(request).includes('JSON') ? { text: '{"ports":[80]}' } : { text: 'I have looked.' },
  );
  const schema =
    '{"type":"object","properties":{"ports":{"type":"array","items":{"type":"number"}}},"required":["ports"]}';
  const done = await home.tape(
    ['delegate', 'main', '--task', 'Which ports?', '--schema', schema, '--json', ...model],
    {
      env: provider.env,
    },
  );
  expect(done.code).toBe(0);
  expect(json<Told>(done).children).toMatchObject([{ status: 'completed', output: { ports: [80] } }]);
  expect(linesOf(home, 'main').at(-1)).toContain('{"ports":[80]}');
});

test('delegate --budget halts a child over its budget, merges it as partial, and sets the exit code', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await startProvider(() => ({
    calls: [{ name: 'nothing', arguments: {} }],
    usage: [90, 10],
  }));
  const args = ['delegate', 'main', '--task', 'Go', '--budget', 'steps=5,tokens=150', ...model];
  const done = await home.tape([...args, '--json'], { env: provider.env });
  expect(done.code).toBe(1);
  expect(json<Told>(done).children).toMatchObject([{ status: 'halted', seq: expect.any(Number) }]);
  expect(provider.requests).toHaveLength(2);
  expect(linesOf(home, 'main').at(-1)).toMatch(
    /status="halted" partial="true".*tokens of .* are used up: 200 of 150/s,
  );
});

test('a merged child that failed is shown as merged and failed, wherever its state is shown', async () => {
  using home = tempHome();
  using state = tempDir();
  const script = home.file('answers.json');
  writeFileSync(
    script,
    JSON.stringify([{ when: { text: 'bad' }, error: 'provider is down' }, { text: 'done' }]),
  );
  home.session('main', user('Plan'));
  const tasks = ['--task', 'bad one', '--task', 'fast one'];
  await home.here(['delegate', 'main', ...tasks, '--model', `script:${script}`]);
  const env = { NO_COLOR: '1', XDG_STATE_HOME: state.path };
  const shown = async (...args: string[]) => (await home.here(args, { env, isTerminal: true })).stdout;
  for (const verb of ['overview', 'sessions', 'children main', 'log main', 'lineage main']) {
    const lines = (await shown(...verb.split(' '))).split('\n');
    const about = (task: string) => lines.filter((line) => /\bmerged\b/.test(line) && line.includes(task));
    expect(about('bad-one').length, verb).toBeGreaterThan(0);
    for (const line of about('bad-one')) expect(line, verb).toContain('merged, failed');
    for (const line of about('fast-one')) expect(line, verb).not.toContain('failed');
  }
  expect(await shown('graph')).toMatch(/bad-one\S* \[subagent\] merged 3-\d+ → main@\d+, failed/);
  expect(await shown('graph', '--format', 'dot')).toContain('merged, failed');
  expect(await shown('log', 'main', '--stat')).toMatch(/^children +1 merged and failed, 1 merged$/m);
  expect((await home.here(['sessions'])).stdout).toContain('\tmerged, failed\t');
  const colored = await home.here(['sessions'], { env: { FORCE_COLOR: '1' }, isTerminal: true });
  expect(colored.stdout).toContain('\u001b[31mmerged, failed\u001b[39m');
  expect(colored.stdout).toContain('\u001b[32mmerged\u001b[39m');
  // Programs read the fields, which are apart.
  const documents = json<{ delivery?: string; task?: string }[]>(await home.here(['sessions', '--json']));
  expect(documents).toContainEqual(expect.objectContaining({ delivery: 'merged', task: 'failed' }));
  expect(json(await home.here(['log', 'main', '--stat', '--json']))).toMatchObject({
    children: { merged: 2 },
  });
});

test('delegate --last inherits the last messages alone, and --resume continues a child', async () => {
  using home = tempHome();
  await using provider = await startProvider((request) => ({ text: `${lastUserText(request)}!` }));
  const env = provider.env;
  for (const said of ['one', 'two']) await home.tape(['run', 'main', said, ...model], { env });
  const first = json<Told>(
    await home.tape(['delegate', 'main', '--task', 'Go', '--last', '1', '--json', ...model], { env }),
  );
  const [child] = first.children;
  const name = child?.session ?? '';
  expect(linesOf(home, name)[0]).toBe('assistant: two!');
  const again = await home.tape(
    ['delegate', 'main', '--task', 'And on', '--resume', name, '--json', ...model],
    { env },
  );
  expect(json<Told>(again).children).toMatchObject([
    { session: name, status: 'completed', text: 'And on!', conflicts: [] },
  ]);
  expect(again.stderr).toMatch(/^Continuing /);
  expect(linesOf(home, name).slice(-2)).toEqual(['user: And on', 'assistant: And on!']);
  const stranger = await home.tape(
    ['delegate', 'main', '--task', 'x', '--resume', 'main', '--json', ...model],
    { env },
  );
  expect(jsonError(stranger)).toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringContaining('it is not a child'),
  });
  expect(stranger.code).toBe(2);
});

test('delegate --on-complete notify_parent starts one run of the parent for each result, and waits for it', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await startProvider((request) =>
    lastUserText(request).includes('has ended') ? { text: 'Noted.' } : { text: 'Done.' },
  );
  const args = [
    'delegate',
    'main',
    '--task',
    'a',
    '--task',
    'b',
    '--on-complete',
    'notify_parent',
    '--json',
    ...model,
  ];
  expect((await home.tape(args, { env: provider.env })).code).toBe(0);
  expect(linesOf(home, 'main').filter((line) => line === 'assistant: Noted.')).toHaveLength(2);
});

test('run waits for the children that it left in the background, and prints what their results start', async () => {
  using p = project();
  const config = p.write(
    'delegating.mjs',
    "import { delegationTools } from '@tapedeck/runtime';\nexport default { tools: delegationTools() };\n",
  );
  const tasks = [{ task: 'Check a' }, { task: 'Check b' }];
  const asked = { tasks, background: true, trigger_on_complete: 'notify_parent', inherit: 'nothing' };
  await using provider = await startProvider((request) => {
    const said = lastUserText(request);
    if (said.includes('has ended')) return { text: 'Noted.' };
    if (said.includes('Check')) return { text: 'Checked.' };
    return request.messages.at(-1)?.role === 'tool'
      ? { text: 'Started.' }
      : { calls: [{ name: 'delegate', arguments: asked }] };
  });
  const args = ['run', 'main', 'Go', '--config', config, '--json', ...model];
  const done = await p.tape(args, { env: provider.env });
  expect(done.code).toBe(0);
  expect(json(done)).toMatchObject({
    text: 'Started.',
    other_runs: [{ text: 'Noted.' }, { text: 'Noted.' }],
  });
  expect(json<unknown[]>(await p.here(['log', 'main', '--kind', 'anchor', '--json']))).toMatchObject([
    { name: 'session/start' },
    { payload: { state: { status: 'completed' } } },
    { payload: { state: { status: 'completed' } } },
  ]);
  expect((await p.here(['audit', '--quiet'])).stdout).toBe('ok\n');
});

test('a run shows the children that its model delegates to: their start, their waits and their end', async () => {
  const p = project();
  const config = p.write(
    'delegating.mjs',
    "import { delegateTool } from '@tapedeck/runtime';\nexport default { tools: { delegate: delegateTool() } };\n",
  );
  const tasks = [{ task: 'Check a' }, { task: 'Check b' }];
  await using provider = await startProvider((request) => {
    if (lastUserText(request).includes('Check')) return { text: 'Checked.', usage: [10, 2] };
    return request.messages.at(-1)?.role === 'tool'
      ? { text: 'Both are checked.' }
      : { calls: [{ name: 'delegate', arguments: { tasks, inherit: 'nothing' } }] };
  });
  const done = await p.tape(['run', 'main', 'Go', '--config', config, ...model], { env: provider.env });
  expect(done).toMatchObject({ code: 0, stdout: 'Both are checked.\n' });
  for (const task of ['a', 'b']) {
    expect(done.stderr).toMatch(new RegExp(`^  main-check-${task}-\\w+ started$`, 'm'));
    expect(done.stderr).toMatch(new RegExp(`^  main-check-${task}-\\w+ completed, 1 step, 12 tokens$`, 'm'));
  }
});

test.each([
  {
    name: 'an unknown limit',
    args: ['--budget', 'lines=3'],
    says: /no such limit 'lines'; the limits are steps, tokens/,
  },
  {
    name: 'a structured merge without a schema',
    args: ['--strategy', 'structured'],
    says: /requires --schema/,
  },
  { name: 'a budget of nothing', args: ['--budget', 'steps=0'], says: /steps must be a number above 0/ },
  { name: 'half a step', args: ['--budget', 'steps=2.5'], says: /steps must be a whole number/ },
  { name: 'a tool that there is not', args: ['--tool', 'raed'], says: /tool 'raed': the deck has no tools/ },
  {
    name: 'a budget for one that has its own',
    args: ['--resume', 'kid', '--budget', 'steps=1'],
    says: /exclusive/,
  },
  { name: 'a part that is none', args: ['--inherit', 'some'], says: /expected one of "all", "nothing"/ },
  { name: 'the last of nothing', args: ['--last', '0'], says: /--last 0: it must be a whole number from 1/ },
  {
    name: 'two parts',
    args: ['--last', '2', '--inherit', 'nothing'],
    says: /cannot use --inherit with --last: each selects what a child inherits/,
  },
  { name: 'a schema that is no JSON', args: ['--schema', '{'], says: /--schema/ },
  {
    name: 'a schema that is no object',
    args: ['--schema', '[]'],
    says: /--schema: it must be a JSON object/,
  },
  { name: 'a cost without a cost function', args: ['--budget', 'cost=1'], says: /no cost function/ },
])('delegate with $name exits with 2, and forks nothing', async ({ args, says }) => {
  using home = tempHome();
  home.session('main');
  await using provider = await startProvider(() => ({ text: 'x' }));
  const refused = await home.tape(['delegate', 'main', '--task', 'x', '--json', ...args, ...model], {
    env: provider.env,
  });
  expect(refused.code).toBe(2);
  expect(jsonError(refused).message).toMatch(says);
  using store = home.open();
  expect(store.sessions.list({ all: true }).map(({ session: name }) => name)).toEqual(['main']);
});

test('delegate rewrites one line for each child on a terminal, and prints one line for each event elsewhere', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await startProvider(() => ({ text: 'Done.' }));
  const args = ['delegate', 'main', '--task', 'a', '--task', 'b', ...model];
  const shown = await tapeHere(args, { home: home.path, env: provider.env, isTerminal: true });
  expect(shown.code).toBe(0);
  const frames = shown.stderr.split('\u001b[2A\r\u001b[J');
  expect(frames.length).toBeGreaterThan(4);
  expect(frames.at(-1)?.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^main-a-\w+ {2}completed, merged into main@\d+ {2}1 step$/),
    expect.stringMatching(/^main-b-\w+ {2}completed, merged into main@\d+ {2}1 step$/),
  ]);
  const piped = await home.tape([...args, '--again'], { env: provider.env });
  expect(piped.stderr).not.toContain('\u001b');
  expect(piped.stderr.split('\n').filter((line) => line.startsWith('Forked '))).toHaveLength(2);
});

test('merge --strategy writes a summary, a structured result, or chosen entries into the parent', async () => {
  using home = tempHome();
  home.session('main', user('Go'));
  for (const name of ['a', 'b', 'c']) {
    await home.here(['fork', 'main', '--as', name]);
    await home.here(['append', name, '--each', '--jsonl'], {
      stdin: '{"role":"assistant","content":"Seven."}\n',
    });
  }
  await using provider = await startProvider(() => ({ text: 'It counted to seven.' }));
  const summary = await home.tape(['merge', 'a', '--strategy', 'summary', '--json', ...model], {
    env: provider.env,
  });
  expect(json(summary)).toMatchObject({ child: 'a', state: 'merged', repeated: false });
  expect(linesOf(home, 'main').at(-1)).toMatch(/Summary of a:\d+-\d+ by test-model:\nIt counted to seven\./);
  const again = await home.tape(['merge', 'a', '--strategy', 'summary', '--json', ...model], {
    env: provider.env,
  });
  expect(json(again)).toMatchObject({ repeated: true });
  expect(provider.requests).toHaveLength(1);

  const none = await home.tape(['merge', 'b', '--strategy', 'structured', '--json']);
  expect(none.code).toBe(1);
  expect(jsonError(none).code).toBe('SESSION_BAD_RESULT');

  const head = json<{ head: number }[]>(await home.here(['sessions', '--json'])).length;
  expect(head).toBeGreaterThan(0);
  const own = linesOf(home, 'c').length;
  const picked = await home.tape(['merge', 'c', '--strategy', 'pick', '--pick', String(own), '--json']);
  expect(json(picked)).toMatchObject({ child: 'c', state: 'merged' });
  expect(linesOf(home, 'main').at(-1)).toContain(`c@${own} assistant: Seven.`);
});

test.each([
  { args: ['--strategy', 'pick'], says: /--pick and --strategy pick require each other/ },
  { args: ['--pick', '3'], says: /--pick and --strategy pick require each other/ },
  { args: ['--strategy', 'pick', '--pick', 'x'], says: /not a position or a range/ },
  {
    args: ['--strategy', 'summary', '--result', 'x'],
    says: /--result cannot be combined with --strategy summary/,
  },
])('merge with $args exits with 2, and merges nothing', async ({ args, says }) => {
  using home = tempHome();
  home.session('main');
  await home.here(['fork', 'main', '--as', 'kid']);
  const refused = await home.here(['merge', 'kid', ...args, '--json']);
  expect(refused.code).toBe(2);
  expect(jsonError(refused).message).toMatch(says);
  using store = home.open();
  expect(store.sessions.find('kid')?.delivery).toBeUndefined();
});

test('fork sets the instructions and tools of the child, and how much it inherits', async () => {
  using home = tempHome();
  home.session('main', user('one'), assistant('1'), user('two'), assistant('2'));
  await home.here([
    'fork',
    'main',
    '--as',
    'kid',
    '--last',
    '2',
    '--instructions',
    'You count.',
    '--tool',
    'look',
  ]);
  expect(linesOf(home, 'kid').slice(0, 2)).toEqual(['user: two', 'assistant: 2']);
  using store = home.open();
  const start = [...store.entries.read('kid', { own: true })][0];
  expect(start?.payload).toMatchObject({
    settings: { instructions: 'You count.', tools: ['look'] },
    terms: { context: 'part' },
  });
  const wrong = await home.here(['fork', 'main', '--last', '0', '--json']);
  expect(wrong.code).toBe(2);
});

test('delegate --dry-run prints what it would fork, and forks nothing', async () => {
  using home = tempHome();
  home.session('main', user('one'), assistant('1'));
  writeFileSync(home.file('answers.json'), '[{ "text": "Done." }]');
  const script = `script:${home.file('answers.json')}`;
  const shown = await home.here([
    'delegate',
    'main',
    '--task',
    'a',
    '--task',
    'b',
    '--last',
    '1',
    '--model',
    script,
    '--dry-run',
    '--json',
  ]);
  expect(shown.code).toBe(0);
  expect(json(shown)).toMatchObject({
    parent: 'main',
    dry_run: true,
    children: [
      { base: 3, range: [3, 3] },
      { base: 3, range: [3, 3] },
    ],
  });
  const quiet = ['delegate', 'main', '--task', 'a', '--model', script, '--dry-run', '--quiet'];
  expect(await home.here(quiet)).toEqual({
    stdout: expect.stringMatching(/^main-a-[0-9a-f]{8}\n$/),
    stderr: '',
    code: 0,
  });
  using store = home.open();
  expect(store.sessions.list({ all: true })).toHaveLength(1);
});

test.each([
  ['completed', { text: 'Looked.' }],
  ['halted', { text: 'Looking.', calls: [{ name: 'nothing', arguments: {} }] }],
  ['failed', { status: 400, message: 'no such model' }],
] as const)(
  'delegate, children and merge report the same outcome of a child that is %s',
  async (status, answer) => {
    using home = tempHome();
    home.session('main');
    await using provider = await startProvider(() => answer);
    const { env } = provider;
    const done = await home.tape(
      ['delegate', 'main', '--task', 'Look', '--budget', 'steps=1', '--json', ...model],
      { env },
    );
    const [told] = json<{ children: readonly { session: string; status: string; text: string }[] }>(
      done,
    ).children;
    const [child] = json<readonly { session: string; text: string }[]>(
      await home.tape(['children', 'main', '--json']),
    );
    expect(told).toMatchObject({ status, text: expect.stringMatching(/./) });
    expect(child).toMatchObject({ session: told?.session, text: told?.text });
    expect(linesOf(home, 'main').at(-1)).toContain(`>\n${told?.text}\n</merge-`);
    const shown = (await home.tape(['children', 'main'])).stdout.trimEnd().split('\t').at(-1) ?? '';
    expect(told?.text.replace(/\s+/g, ' ')).toMatch(new RegExp(`^${RegExp.escape(shown.replace(/…$/, ''))}`));
  },
);

test('a fork beyond a limit of the configuration names the limit and where it is set, and forks none of the tasks', async () => {
  using home = tempHome();
  home.session('main');
  writeFileSync(home.file('config.yaml'), 'limits: { max_children: 1 }\n');
  const args = ['delegate', 'main', '--task', 'a', '--task', 'b', '--json', ...model];
  await using provider = await startProvider(() => ({ text: 'never asked' }));
  const refused = jsonError(await home.tape(args, { env: provider.env }));
  expect(refused).toMatchObject({
    code: 'SESSION_LIMIT',
    message:
      "cannot fork 'main' 2 times: 0 of its children are unfinished, and the limit is 1 (limits.maxChildren)",
    hint: 'give one command at most 1 task; or set limits.maxChildren in tape.config.mts, or limits.max_children in config.yaml',
  });
  using store = home.open();
  expect(store.sessions.list({ all: true })).toHaveLength(1);
  store.lineage.fork('main', { name: 'open', deliver: 'merge' });
  expect(jsonError(await home.tape(args, { env: provider.env })).hint).toBe(
    'finish the children with: tape recover; or set limits.maxChildren in tape.config.mts, or limits.max_children in config.yaml',
  );
});
