import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { assistant, note, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError, type Running, startTape } from '../support/cli.ts';
import { lastUserText, type Provider, startProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const linesOf = (home: TempHome, name = 'main'): string[] => {
  using store = home.open();
  return entryLines(store.entries.read(name)).slice(1);
};

const model = ['--model', 'openai-compatible/test-model'];

/** A run of `main` in another process, whose first answer comes when it is let go; all others echo. */
async function slowRun(home: TempHome): Promise<{
  provider: Provider;
  running: Running;
  open: () => void;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const gate = Promise.withResolvers<void>();
  const provider = await startProvider(async (request) => {
    // Neighbouring messages of a user are sent as one, in parts.
    const said = /([^"]*)"?\}?\]?$/.exec(lastUserText(request))?.[1] ?? '';
    if (said === 'slow') await gate.promise;
    return { text: `${said}!` };
  });
  const running = startTape(['run', 'main', 'slow', ...model], { home: home.path, env: provider.env });
  while (provider.requests.length === 0) await sleep(5);
  return {
    provider,
    running,
    open: gate.resolve,
    [Symbol.asyncDispose]: async () => {
      running.child.kill('SIGKILL');
      await running.done;
      await provider[Symbol.asyncDispose]();
    },
  };
}

test('send to an idle session runs it, and streams as run does', async () => {
  using home = tempHome();
  await using provider = await startProvider((request) => ({ text: `${lastUserText(request)}!` }));
  const env = provider.env;
  const first = await home.tape(['send', 'main', '-', ...model], { env, stdin: 'Hi\n' });
  expect(first).toEqual({ code: 0, stdout: 'Hi!\n', stderr: 'Created session main\n' });
  const second = await home.tape(
    ['send', 'main', 'On', '--key', 'k', '--source', 'timer', '--json', ...model],
    {
      env,
    },
  );
  expect(json(second)).toEqual({
    session: 'main',
    id: expect.stringMatching(/^[0-9A-Z]{26}$/),
    state: 'started',
    run: expect.stringMatching(/^[0-9A-Z]{26}$/),
    text: 'On!',
    finish: 'stop',
    steps: 1,
    usage: { input: 10, output: 5, reasoning: 0, cache_read: 0, cache_write: 0 },
    from: 4,
    to: 5,
  });
  const again = await home.tape(['send', 'main', 'On', '--key', 'k', ...model], { env });
  expect(again).toEqual({ code: 0, stdout: 'main has the message\n', stderr: '' });
  const other = await home.tape(['send', 'main', 'Off', '--key', 'k', '--json', ...model], { env });
  expect(other.code).toBe(4);
  expect(jsonError(other)).toMatchObject({ code: 'TAPE_KEY_CONFLICT' });
  using store = home.open();
  expect([...store.entries.read('main', { from: 4, to: 4 })]).toMatchObject([
    { meta: { source: 'timer', mode: 'queue' }, key: 'u:k' },
  ]);
});

test('send without a model stores the message, and the next run takes it', async () => {
  using home = tempHome();
  const left = await home.tape(['send', 'main', 'Hi', '--mode', 'interrupt', '--json']);
  expect(left).toMatchObject({ code: 6, stderr: 'Created session main\nHint: run it with: tape run main\n' });
  expect(json(left)).toEqual({ session: 'main', id: expect.any(String), state: 'queued' });
  expect(await home.tape(['send', 'main', 'And?', '--quiet'])).toMatchObject({
    code: 6,
    stdout: expect.stringMatching(/^[0-9A-Z]{26}\n$/),
    stderr: '',
  });
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'Hello.' }, { text: 'Well.' }]));
  const run = await home.tape(['run', 'main', '--model', `script:${home.file('answers.json')}`]);
  expect(run).toMatchObject({ code: 0, stdout: 'Hello.\nWell.\n' });
  expect(linesOf(home)).toEqual(['user: Hi', 'assistant: Hello.', 'user: And?', 'assistant: Well.']);
});

test('send answers older messages first, and prints both answers', async () => {
  using home = tempHome();
  await using provider = await startProvider((request) => ({ text: `${lastUserText(request)}!` }));
  await home.tape(['send', 'main', 'first']);
  const sent = await home.tape(['send', 'main', 'second', '--json', ...model], { env: provider.env });
  expect(json(sent)).toMatchObject({ state: 'started', text: 'second!', other_runs: [{ text: 'first!' }] });
  await home.tape(['send', 'main', 'third']);
  const human = await home.tape(['send', 'main', 'fourth', ...model], { env: provider.env });
  expect(human).toMatchObject({ code: 0, stdout: 'third!\nfourth!\n' });
});

test('send to a session that another process runs leaves the message to that process, which answers it', async () => {
  using home = tempHome();
  await using slow = await slowRun(home);
  const pid = slow.running.child.pid;
  const one = await home.tape(['send', 'main', 'one', ...model], { env: slow.provider.env });
  expect(one).toEqual({
    code: 6,
    stdout: `Posted the message to the inbox of main: process ${pid} is running it\n`,
    stderr: '',
  });
  const steered = await home.tape(['send', 'main', 'two', '--mode', 'steer', '--json']);
  expect(steered.code).toBe(6);
  expect(json(steered)).toMatchObject({ session: 'main', state: 'steered' });
  const waiting = startTape(['send', 'main', 'three', '--wait', '60', '--json'], { home: home.path });
  await slow.running.until('3 waiting in the inbox');
  slow.open();
  expect(await waiting.done).toMatchObject({ code: 0 });
  expect(json(await waiting.done)).toMatchObject({ session: 'main', state: 'started' });
  expect(await slow.running.done).toMatchObject({ code: 0, stdout: 'slow!\ntwo!\none!\nthree!\n' });
  expect(linesOf(home).filter((line) => line.startsWith('user'))).toEqual([
    'user: slow',
    'user: two',
    'user: one',
    'user: three',
  ]);
});

test('send to a session that another process runs loads no configuration, which would apply to that run', async () => {
  using home = tempHome();
  await using slow = await slowRun(home);
  using project = tempDir();
  writeFileSync(project.file('tape.config.mts'), 'throw new Error("loaded");\n');
  const there = { cwd: project.path, env: slow.provider.env };
  expect(await home.tape(['send', 'main', 'one'], there)).toMatchObject({ code: 6, stderr: '' });
  const idle = await home.tape(['send', 'other', 'one', '--json'], there);
  expect(idle.code).toBe(2);
  expect(jsonError(idle).code).toBe('CLI_UNTRUSTED');
  slow.open();
  expect(await slow.running.done).toMatchObject({ code: 0, stdout: 'slow!\none!\n' });
});

test('send --mode interrupt stops the run in the other process, which then answers the message', async () => {
  using home = tempHome();
  await using slow = await slowRun(home);
  const sent = await home.tape(['send', 'main', 'Stop', '--mode', 'interrupt', '--json']);
  expect(json(sent)).toMatchObject({ state: 'interrupted' });
  expect(await slow.running.done).toMatchObject({ stdout: 'Stop!\n' });
  expect(linesOf(home)).toEqual(['user: slow', 'event run/aborted', 'user: Stop', 'assistant: Stop!']);
});

test('send --wait runs the session when the process that owned it dies', async () => {
  using home = tempHome();
  await using slow = await slowRun(home);
  const waiting = startTape(['send', 'main', 'Hello?', '--wait', '60', ...model], {
    home: home.path,
    env: slow.provider.env,
  });
  using store = home.open();
  while (store.inbox.list('main').length === 0) await sleep(5);
  slow.running.child.kill('SIGKILL');
  expect(await waiting.done).toMatchObject({ code: 0, stdout: 'Hello?!\n' });
});

test('Ctrl-C during send stops the run, and leaves the inbox as it is', async () => {
  using home = tempHome();
  await using provider = await startProvider(() => ({ text: ['I am ', 'thinking '], hang: true }));
  await home.tape(['new', 'main']);
  const running = startTape(['send', 'main', 'Hi', ...model], { home: home.path, env: provider.env });
  await running.until('thinking');
  await home.tape(['send', 'main', 'Later']);
  running.child.kill('SIGINT');
  expect(await running.done).toMatchObject({ code: 130, stdout: 'I am thinking \n' });
  expect(linesOf(home)).toEqual(['user: Hi', 'assistant: I am thinking', 'event run/aborted']);
  using store = home.open();
  expect(store.inbox.list('main')).toHaveLength(1);
  expect(store.leases.list()).toEqual([]);
});

test.each([
  ['an empty text', ['send', 'main', ' '], /text is empty/],
  ['no such mode', ['send', 'main', 'Hi', '--mode', 'shout'], /expected one of "interrupt"/],
  ['a job without a name', ['send', 'main', 'Hi', '--source', 'cron'], /names no job, expected cron:JOB/],
  ['an unknown model', ['send', 'main', 'Hi', '--model', 'nonsense'], /must be PROVIDER\/MODEL/],
])('send with %s exits with 2, and creates nothing', async (_, args, says) => {
  using home = tempHome();
  expect(await home.tape(args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(says) });
  expect((await home.tape(['sessions'])).stdout).toBe('');
});

test('abort stops a run in another process, and waits for its end', async () => {
  using home = tempHome();
  await using slow = await slowRun(home);
  const stopped = await home.tape(['abort', 'main', '--reason', 'wrong branch', '--json']);
  expect(stopped).toMatchObject({ code: 0, stderr: '' });
  expect(json(stopped)).toEqual({ session: 'main', aborted: true });
  expect(await slow.running.done).toMatchObject({ code: 130, stderr: expect.stringContaining('aborted') });
  using store = home.open();
  expect(store.leases.list()).toEqual([]);
  const [end] = [...store.entries.read('main', { last: 1 })];
  expect(end).toMatchObject({ name: 'run/aborted', payload: { reason: 'wrong branch' } });
  const again = await home.tape(['abort', 'main']);
  expect(again).toEqual({ code: 0, stdout: 'No active run of main: nothing to do\n', stderr: '' });
  expect(json(await home.tape(['abort', 'main', '--json']))).toEqual({ session: 'main', aborted: false });
});

test('abort of a session whose process died names the command that gives its run up', async () => {
  using home = tempHome();
  home.session('main', user('Go', { run: 'r' }));
  const { code, stdout } = await home.here(['abort', 'main']);
  expect(code).toBe(0);
  expect(stdout).toBe(
    'No active run of main: nothing to do (its last run was interrupted: give it up with: tape recover main --abort)\n',
  );
  expect(await home.here(['recover', 'main', '--abort'])).toMatchObject({ code: 0 });
  expect((await home.here(['abort', 'main'])).stdout).toBe('No active run of main: nothing to do\n');
});

test('abort of a session that only delegates stops the children that run', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await startProvider(async () => await new Promise<never>(() => {}));
  const args = ['delegate', 'main', '--task', 'one', '--task', 'two', ...model];
  const delegating = startTape(args, { home: home.path, env: provider.env });
  while (provider.requests.length < 2) await sleep(5);
  const stopped = json<{ children: string[] }>(await home.tape(['abort', 'main', '--json']));
  expect(stopped).toMatchObject({ session: 'main', aborted: true });
  expect(stopped.children).toHaveLength(2);
  await delegating.done;
  using store = home.open();
  expect(store.sessions.list({ all: true }).flatMap(({ task }) => task ?? [])).toEqual([
    'aborted',
    'aborted',
  ]);
});

test('abort exits with 6 when the owner does not react in time', async () => {
  using home = tempHome();
  home.session('main');
  using store = home.open();
  const lease = store.leases.acquire('main', { id: 'ignoringAborts', pid: process.pid });
  const asked = await home.tape(['abort', 'main', '--wait', '0.2', '--json']);
  expect(asked.code).toBe(6);
  expect(json(asked)).toEqual({ session: 'main', aborted: false });
  expect(store.inbox.list('main')).toMatchObject([{ body: { type: 'abort', owner: 'ignoringAborts' } }]);
  store.leases.release(lease);
});

test('wait returns when all runs are over, or one of them, or the time is up', async () => {
  using home = tempHome();
  await using slow = await slowRun(home);
  home.session('other');
  const late = await home.tape(['wait', 'main', 'other', '--timeout', '0.3', '--json']);
  expect(late.code).toBe(6);
  expect(json<object[]>(late)).toMatchObject([
    { session: 'main', state: 'busy' },
    { session: 'other', state: 'idle' },
  ]);
  const any = await home.tape(['wait', 'main', 'other', '--any']);
  expect(any).toMatchObject({ code: 0, stdout: expect.stringContaining('other  idle') });
  const both = startTape(['wait', 'main', 'other', '--jsonl'], { home: home.path });
  await home.tape(['send', 'main', 'more']);
  slow.open();
  const { code, stdout } = await both.done;
  expect(code).toBe(0);
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).state),
  ).toEqual(['idle', 'idle']);
  // The messages that waited behind the run were part of it.
  expect(linesOf(home).at(-1)).toBe('assistant: more!');
  expect(await home.tape(['wait', 'missing'])).toMatchObject({ code: 3 });
});

/** A session whose run ended with pending calls. */
function waitingFor(home: TempHome, ...calls: { id: string; for: 'approval' | 'result' }[]): void {
  home.session(
    'main',
    user('Go'),
    assistant(calls.map(({ id }) => toolCall(id, 'measure', { where: 'here' }))),
    note('run/waiting', {
      run: 'r1',
      calls: calls.map((call) => ({ toolCallId: call.id, toolName: 'measure', for: call.for })),
    }),
  );
}

test('wait exits 6 for a session whose run has ended with a call that waits, with --any unless another is idle', async () => {
  using home = tempHome();
  waitingFor(home, { id: 'c1', for: 'approval' });
  home.session('other');
  const waits = await home.tape(['wait', 'main', 'other']);
  expect(waits).toMatchObject({ code: 6, stdout: expect.stringContaining('main  waiting') });
  expect(await home.tape(['wait', 'main', '--any'])).toMatchObject({ code: 6 });
  expect(await home.tape(['wait', 'main', 'other', '--any'])).toMatchObject({ code: 0 });
  expect(await home.tape(['wait', 'other'])).toMatchObject({ code: 0 });
});

test.each(['run', 'send'])('%s says which pending calls a message denies', async (verb) => {
  using home = tempHome();
  waitingFor(home, { id: 'c1', for: 'approval' }, { id: 'c2', for: 'result' });
  await using provider = await startProvider(() => ({ text: 'Well.' }));
  const { env } = provider;
  expect(await home.tape([verb, 'main', 'Something else', ...model], { env })).toEqual({
    code: 0,
    stdout: 'Well.\n',
    stderr: 'Answered 2 waiting calls as superseded: measure c1, measure c2\n',
  });
  // A message that is answered at once can be taken back.
  const wayBack = 'main@9-10 (undo with: tape rewind main@9)\n';
  expect((await home.tape([verb, 'main', 'More', ...model], { env })).stderr).toBe(
    verb === 'run' ? wayBack : '',
  );
});

test.each([
  [
    [{ id: 'c1', for: 'approval' }],
    'approve it with: tape approve main; or deny it with: tape approve main --deny',
  ],
  [[{ id: 'c1', for: 'result' }], 'give the result with: tape approve main --output JSON'],
  [
    [
      { id: 'c1', for: 'approval' },
      { id: 'c2', for: 'approval' },
    ],
    'approve it with: tape approve main c1; or deny it with: tape approve main c1 --deny',
  ],
] as const)('a run that waits for %j says what answers it', async (calls, hint) => {
  using home = tempHome();
  waitingFor(home, ...calls);
  await using provider = await startProvider(() => ({ text: 'never' }));
  // A run asks for one call at a time, unless their tools run in parallel.
  const runs = calls.length === 1 ? [['run', 'main', ...model]] : [];
  for (const args of [...runs, ['run', 'main', '--attach']]) {
    const { code, stderr } = await home.tape(args, { env: provider.env });
    expect(code, stderr).toBe(6);
    expect(stderr.split('\n').slice(-3)).toEqual(['The run ended: waiting', `Hint: ${hint}`, '']);
  }
});

test('approve with an output stores it as the result of the call, and the run continues', async () => {
  using home = tempHome();
  waitingFor(home, { id: 'c1', for: 'result' });
  await using provider = await startProvider(() => ({ text: 'Seven degrees.' }));
  const done = await home.tape(['approve', 'main', '--output', '{"degrees":7}', ...model], {
    env: provider.env,
  });
  expect(done).toEqual({ code: 0, stdout: 'Seven degrees.\n', stderr: '' });
  expect(linesOf(home).slice(3)).toEqual(['measure c1 → json {"degrees":7}', 'assistant: Seven degrees.']);
  const nothing = await home.tape(['approve', 'main', '--json', ...model], { env: provider.env });
  expect(nothing.code).toBe(3);
  expect(jsonError(nothing)).toMatchObject({
    code: 'SESSION_NO_CALL',
    hint: 'list pending calls with: tape status main',
  });
});

test('approve --deny gives the model the reason', async () => {
  using home = tempHome();
  waitingFor(home, { id: 'c1', for: 'approval' });
  await using provider = await startProvider(() => ({ text: 'Then not.' }));
  const args = ['approve', 'main', 'c1', '--deny', '--reason', 'too cold', '--json', ...model];
  const denied = await home.tape(args, { env: provider.env });
  expect(json(denied)).toMatchObject({ state: 'started', text: 'Then not.', finish: 'stop' });
  expect(JSON.stringify(provider.requests[0]?.messages.at(-1))).toContain('too cold');
});

test('approve without a model keeps the answer, and an approved call without its tool stays pending', async () => {
  using home = tempHome();
  waitingFor(home, { id: 'c1', for: 'approval' });
  const left = await home.tape(['approve', 'main', '--json']);
  expect(left).toMatchObject({ code: 6, stderr: 'Hint: run it with: tape run main\n' });
  expect(json(left)).toMatchObject({ session: 'main', state: 'queued' });
  expect(json<object[]>(await home.tape(['status', '--json']))).toMatchObject([
    { state: 'waiting', queued: 1 },
  ]);
  await using provider = await startProvider(() => ({ text: 'never' }));
  const run = await home.tape(['run', 'main', ...model], { env: provider.env });
  const waits = 'measure is approved, and waits for a run with its tool: c1 {"where":"here"}';
  expect(run).toMatchObject({ code: 6, stderr: expect.stringContaining(waits) });
  expect(provider.requests).toEqual([]);
  expect((await home.tape(['status'])).stdout).toBe(
    `main  waiting  lifecycle active  ${waits}  run it with a configuration that has the tool: tape run main --config FILE\n`,
  );
  const again = await home.tape(['approve', 'main', 'c1', '--deny', '--json']);
  expect(again.code).toBe(3);
  expect(jsonError(again).message).toMatch(
    /it is approved, and waits for a run that has the tool 'measure'$/,
  );
});

test.each([
  {
    name: 'several wait and none is named',
    args: [],
    says: /several are pending: c1 \(measure\), c2 \(measure\)/,
  },
  { name: 'an output for an approval', args: ['c1', '--output', '1'], says: /it is pending approval/ },
  { name: 'an approval for a result', args: ['c2'], says: /waits for its result/ },
  { name: 'an output that is no JSON', args: ['c2', '--output', '{'], says: /--output/ },
])('approve with $name exits with 2, and answers nothing', async ({ args, says }) => {
  using home = tempHome();
  waitingFor(home, { id: 'c1', for: 'approval' }, { id: 'c2', for: 'result' });
  const refused = await home.tape(['approve', 'main', ...args, '--json']);
  expect(refused.code).toBe(2);
  expect(jsonError(refused).message).toMatch(says);
  using store = home.open();
  expect(store.inbox.list('main')).toEqual([]);
});

test('send and run record who wrote a message, and the model sees it where several did', async () => {
  using home = tempHome();
  const ann = ['--sender', 'U1', '--sender-name', 'Ann', '--channel', 'slack', '--message-id', '17.2'];
  await home.here(['append', 'main'], { stdin: '{"content":"Hello","meta":{"sender":"U2"}}\n' });
  await using provider = await startProvider(() => ({ text: 'Hi, both.' }));
  const ran = await home.here(['run', 'main', 'Go', ...ann, ...model], { env: provider.env });
  expect(ran).toMatchObject({ code: 0 });
  using store = home.open();
  const written = [...store.entries.read('main', { kind: 'message' })].filter(
    ({ meta }) => meta.sender !== undefined,
  );
  expect(written.map(({ meta }) => [meta.sender, meta.sender_name, meta.channel, meta.message_id])).toEqual(
    expect.arrayContaining([
      ['U1', 'Ann', 'slack', '17.2'],
      ['U2', undefined, undefined, undefined],
    ]),
  );
  expect(JSON.stringify(provider.requests)).toMatch(/From U2:.*Hello.*From Ann:.*Go/);
  expect(await home.here(['send', 'main', 'Hi', '--sender', ''])).toMatchObject({ code: 2 });
  expect(await home.here(['send', 'main', 'Bye', ...ann])).toMatchObject({ code: 6 });
  expect(store.inbox.list('main').map(({ body }) => JSON.stringify(body))).toEqual([
    expect.stringContaining('"message_id":"17.2"'),
  ]);
});
