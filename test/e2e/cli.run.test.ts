import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { anchor, assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError, jsonLines, startTape } from '../support/cli.ts';
import { modeOf } from '../support/provider/modes.ts';
import { lastUserText, startProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { atFullSize } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

function script(home: TempHome, ...answers: readonly object[]): string {
  writeFileSync(home.file('answers.json'), JSON.stringify(answers));
  return `script:${home.file('answers.json')}`;
}

const linesOf = (home: TempHome, name: string): string[] => {
  using store = home.open();
  return entryLines(store.entries.read(name));
};

test('run prints the answer on stdout, everything else on stderr', async () => {
  using home = tempHome();
  const model = script(
    home,
    { text: 'Let me see.\n', toolCalls: [{ name: 'none', input: {} }] },
    { text: 'All good.', usage: { input: 5, output: 3 } },
    { text: 'Again.' },
  );
  const first = await home.tape(['run', 'main', 'How is it?', '--model', model]);
  expect(first.code).toBe(0);
  expect(first.stdout).toBe('Let me see.\nAll good.\n');
  expect(first.stderr).toMatch(
    /^Created session main\n→ none\n {2}none failed: .+\nmain@2-5 \(undo with: tape rewind main@2\)\n$/,
  );
  const second = await home.tape(['run', 'main', '-', '--json'], {
    stdin: 'And now?',
    env: { TAPE_MODEL: model },
  });
  expect(second.stderr).toBe('');
  expect(json(second)).toEqual({
    session: 'main',
    run: expect.stringMatching(/^[0-9A-Z]{26}$/),
    text: 'Again.',
    finish: 'stop',
    steps: 1,
    usage: { input: 0, output: 0, reasoning: 0, cache_read: 0, cache_write: 0 },
    from: 6,
    to: 7,
  });
});

test('run without a prompt continues from the tail; a prompt may be a file', async () => {
  using home = tempHome();
  const model = script(
    home,
    { text: 'one', when: { text: 'appended' } },
    { text: 'two', when: { text: 'from a file' } },
  );
  home.session('main', user('appended'));
  expect(await home.tape(['run', 'main', '--model', model])).toMatchObject({ stdout: 'one\n', code: 0 });
  writeFileSync(home.file('prompt.txt'), 'from a file');
  const prompt = `@${home.file('prompt.txt')}`;
  expect(await home.tape(['run', 'main', prompt, '--model', model])).toMatchObject({
    stdout: 'two\n',
    code: 0,
  });
});

test('run without a prompt of an answered session says that there is nothing to continue, and writes nothing', async () => {
  using home = tempHome();
  const model = script(home, { text: 'one' }, { text: 'two' });
  expect(await home.tape(['run', 'main', 'Hi', '--model', model])).toMatchObject({ stdout: 'one\n' });
  const before = home.contents();
  const again = await home.tape(['run', 'main', '--model', model]);
  expect(again).toEqual({ code: 0, stdout: '', stderr: 'main: nothing to continue\n' });
  const document = await home.tape(['run', 'main', '--model', model, '--json']);
  expect(document).toMatchObject({ code: 0, stderr: 'main: nothing to continue\n' });
  expect(json(document)).toMatchObject({
    session: 'main',
    text: '',
    finish: 'stop',
    steps: 0,
    nothing_to_continue: true,
  });
  expect(home.contents()).toEqual(before);
});

test.each([
  { name: 'a model that fails', answers: [{ error: 'no luck' }], finish: 'error', says: 'no luck' },
  { name: 'a script that is over', answers: [], finish: 'error', says: 'no answer of the script is left' },
  {
    name: 'too many steps',
    answers: [{ toolCalls: [{ name: 'none', input: {} }] }],
    finish: 'halted',
    says: 'halted',
  },
])('run with $name exits with 1, and records the failure', async ({ answers, finish, says }) => {
  using home = tempHome();
  const model = script(home, ...answers);
  const args = ['run', 'main', 'Hi', '--model', model, '--max-steps', '1'];
  const result = await home.tape([...args, '--json']);
  expect(result.code).toBe(1);
  expect(json(result)).toMatchObject({ session: 'main', finish });
  const human = await home.tape(['run', 'other', 'Hi', '--model', model, '--max-steps', '1']);
  expect(human).toMatchObject({ code: 1, stderr: expect.stringContaining(says) });
  expect(linesOf(home, 'main').at(-1)).toMatch(/^event run\//);
});

test('run calls a model over HTTP, with the key and address of the environment', async () => {
  using home = tempHome();
  await using provider = await startProvider((request) => ({ text: ['You said: ', lastUserText(request)] }));
  const model = ['--model', 'openai-compatible/test-model'];
  const result = await home.tape(['run', 'main', 'Hi', ...model], { env: provider.env });
  expect(result).toMatchObject({ stdout: 'You said: Hi\n', code: 0 });
  const wrong = { ...provider.env, OPENAI_API_KEY: 'wrong' };
  const refused = await home.tape(['run', 'main', 'Hi', ...model], { env: wrong });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('API key') });
  expect(refused.stderr).not.toContain('wrong\n');
});

test('Ctrl-C during run exits with 130, keeps the partial answer, and leaves a valid tape', async () => {
  using home = tempHome();
  await using provider = await startProvider(() => ({ text: ['I am ', 'thinking '], hang: true }));
  const args = ['run', 'main', 'Hi', '--model', 'openai-compatible/test-model'];
  const running = startTape(args, { home: home.path, env: provider.env });
  await running.until('thinking');
  running.child.kill('SIGINT');
  expect(await running.done).toMatchObject({ code: 130, stdout: 'I am thinking \n' });
  expect(linesOf(home, 'main').slice(1)).toEqual([
    'user: Hi',
    'assistant: I am thinking',
    'event run/aborted',
  ]);
  expect(await home.tape(['verify'])).toMatchObject({ code: 0 });
  // The session has no owner: the next run begins at once.
  expect(await home.tape(['run', 'main', 'On', '--model', script(home, { text: 'Yes.' })])).toMatchObject({
    code: 0,
  });
});

test.runIf(atFullSize)(
  'Ctrl-C during delegate ends its children, merges them as aborted, and exits with 130',
  async () => {
    using home = tempHome();
    home.session('main');
    const model = script(home, { text: 'never', delayMs: 60_000 });
    const args = ['delegate', 'main', '--task', 'a', '--task', 'b', '--model', model, '--json'];
    const running = startTape(args, { home: home.path });
    using store = home.open();
    const atWork = () =>
      store.sessions.list({ parent: 'main', all: true }).filter(({ task }) => task === 'running');
    await expect.poll(() => atWork().length).toBe(2);
    running.child.kill('SIGINT');
    const result = await running.done;
    expect(result.code).toBe(130);
    expect(json(result)).toMatchObject({
      children: [
        { status: 'aborted', merged: true },
        { status: 'aborted', merged: true },
      ],
    });
    expect(await home.tape(['verify'])).toMatchObject({ code: 0 });
  },
);

test('Ctrl-C ends a waiting append or merge at once', async () => {
  using home = tempHome();
  home.session('main');
  using store = home.open();
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('kid', [assistant('Done.')]);
  const lease = store.leases.acquire('main', { id: 'holder', pid: process.pid });
  const reading = startTape(['append', 'main'], { home: home.path });
  const waiting = startTape(['merge', 'kid', '--wait', '60'], { home: home.path });
  await waiting.until('posted to its inbox');
  await sleep(200);
  for (const running of [reading, waiting]) running.child.kill('SIGINT');
  expect(await reading.done).toMatchObject({ code: 130, stdout: '' });
  expect(await waiting.done).toMatchObject({ code: 130, stdout: '' });
  store.leases.release(lease);
});

test('run of a session that another process runs exits with 4, and names that process', async () => {
  using home = tempHome();
  const slow = script(home, { text: 'slow', delayMs: 60_000 });
  const running = startTape(['run', 'main', 'Hi', '--model', slow], { home: home.path });
  await running.until('Created session main');
  using store = home.open();
  while (store.sessions.find('main')?.head !== 2) await sleep(5);
  const second = await home.tape(['run', 'main', 'Me too', '--model', slow, '--json']);
  expect(second.code).toBe(4);
  expect(jsonError(second)).toMatchObject({
    code: 'SESSION_BUSY',
    data: { owner: { pid: running.child.pid } },
  });
  running.child.kill('SIGKILL');
  await running.done;
  expect(linesOf(home, 'main').slice(1)).toEqual(['user: Hi']);
});

test('delegate forks, runs and merges each task, and reports it', async () => {
  using home = tempHome();
  home.session('main', anchor('plan'), user('Go ahead'));
  const model = script(
    home,
    { text: 'Docs are fine.', when: { text: 'docs' }, usage: { input: 9, output: 4 } },
    { text: 'Tests are red.', when: { text: 'tests' } },
  );
  const args = [
    'delegate',
    'main',
    '--since',
    'plan',
    '--task',
    'Check the docs',
    '--task',
    '-',
    '--model',
    model,
  ];
  const result = await home.tape([...args, '--order', 'spawn', '--json'], { stdin: 'Check the tests' });
  expect(result.code).toBe(0);
  const usage = { input: 9, output: 4, reasoning: 0, cache_read: 0, cache_write: 0 };
  expect(json(result)).toEqual({
    parent: 'main',
    children: [
      {
        session: expect.stringMatching(/^main-check-the-docs-/),
        status: 'completed',
        merged: true,
        repeated: false,
        seq: 4,
        usage,
        text: 'Docs are fine.',
        conflicts: [],
      },
      {
        session: expect.stringMatching(/^main-check-the-tests-/),
        status: 'completed',
        merged: true,
        repeated: false,
        seq: 6,
        usage: { ...usage, input: 0, output: 0 },
        text: 'Tests are red.',
        conflicts: [],
      },
    ],
  });
  expect(result.stderr).toMatch(/^Forked main-check-the-docs-\w+\nForked main-check-the-tests-\w+\n/);
  expect(linesOf(home, 'main').slice(3)).toEqual([
    expect.stringMatching(/^anchor merge\/main-check-the-docs-/),
    expect.stringContaining('Docs are fine.'),
    expect.stringMatching(/^anchor merge\/main-check-the-tests-/),
    expect.stringContaining('Tests are red.'),
  ]);
  const tree = json<object[]>(await home.tape(['children', 'main', '--json']));
  expect(tree).toMatchObject([
    { task: 'completed', delivery: 'merged', from_anchor: 'plan' },
    { task: 'completed', delivery: 'merged', from_anchor: 'plan' },
  ]);
});

test('delegate with one child that fails exits with 1, and merges the others', async () => {
  using home = tempHome();
  home.session('main');
  const model = script(
    home,
    { error: 'no luck', when: { text: 'Your task: one' } },
    { text: 'fine', when: { text: 'Your task: two' } },
  );
  const result = await home.tape([
    'delegate',
    'main',
    '--task',
    'one',
    '--task',
    'two',
    '--model',
    model,
    '--json',
  ]);
  expect(result.code).toBe(1);
  expect(json(result)).toMatchObject({
    children: [
      { status: 'failed', merged: true },
      { status: 'completed', merged: true },
    ],
  });
  const quiet = await home.tape(['delegate', 'main', '--task', 'two', '--model', model, '--quiet']);
  expect(quiet).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^main-two-\w{8}\n$/) });
});

test('a delegation that was killed half-way can be inspected, merged by hand, and verified', async () => {
  using home = tempHome();
  home.session('main');
  const model = script(home, { text: 'never', delayMs: 60_000 });
  const running = startTape(['delegate', 'main', '--task', 'a', '--model', model], { home: home.path });
  await running.until('Forked');
  using store = home.open();
  while (store.sessions.list({ parent: 'main', all: true })[0]?.task !== 'running') await sleep(5);
  running.child.kill('SIGKILL');
  await running.done;
  const [child] = json<{ session: string }[]>(await home.tape(['children', 'main', '--json']));
  const merged = await home.tape(['merge', child?.session ?? '', '--json']);
  expect(json(merged)).toMatchObject({ state: 'merged', seq: 2 });
  const [mark] = jsonLines(await home.tape(['log', 'main', '--from', '2', '--to', '2', '--jsonl']));
  expect(mark?.payload).toMatchObject({ state: { status: 'orphaned' } });
  expect(await home.tape(['verify'])).toMatchObject({ code: 0 });
});

test.runIf(atFullSize)('run says when to come back to a provider that takes no calls for long', async () => {
  using home = tempHome();
  await using provider = await startProvider((_, index) =>
    index === 0
      ? { status: 429, message: 'quota', retryAfter: '1' }
      : { status: 429, message: 'quota', retryAfter: '7200' },
  );
  const model = ['--model', 'openai-compatible/m'];
  const run = await home.tape(['run', 'main', 'Hi', ...model], { env: provider.env });
  expect(run).toMatchObject({ code: 1, stdout: '' });
  const [, waits, error, hint] = run.stderr.split('\n');
  expect(waits).toBe('Retrying (1) in 1 s: quota');
  expect(error).toMatch(
    /^Error: cannot continue 'main': the model failed \(its provider takes no calls until \d{4}-\S+Z\): quota/,
  );
  expect(hint).toMatch(/^Hint: continue at that time with: tape run main;/);
  const again = json(await home.tape(['run', 'main', '--json', ...model], { env: provider.env }));
  expect(again).toMatchObject({
    error: { code: 'SESSION_RETRY_LATER', retry_at: expect.stringMatching(/^\d{4}-\S+Z$/) },
  });
  expect(provider.requests).toHaveLength(3);
});

test.runIf(atFullSize)('run prints what the AI SDK warns of as one line', async () => {
  using home = tempHome();
  const asked = { calls: [{ id: 'c', name: 'none', arguments: {} }] };
  await using provider = await startProvider(
    (_, index) => (index === 0 ? asked : { text: 'Fine.' }),
    modeOf('openai responses').protocol,
  );
  const command = ['run', 'main', 'Hi', '--model', 'openai/gpt-5', '--temperature', '0.5'];
  const run = await home.process(command, { env: provider.env });
  expect(run).toMatchObject({ code: 0, stdout: 'Fine.\n' });
  expect(run.stderr.split('\n')).toEqual([
    'Created session main',
    expect.stringMatching(/^Warning: openai.responses\/gpt-5: temperature is not supported/),
    '→ none',
    expect.stringContaining('none failed'),
    'main@2-5 (undo with: tape rewind main@2)',
    '',
  ]);
});
