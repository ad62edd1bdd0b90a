import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BuiltinOptions, builtins } from '@tapedeck/runtime';
import { afterAll, expect, test } from 'vitest';
import { isAlive } from '../support/is-alive.ts';
import { keptMemory } from '../support/kept-memory.ts';
import { atFullSize, sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());
let places = 0;

interface End {
  readonly ended: string;
  readonly exit_code?: number;
  readonly signal?: string;
  readonly left_processes?: string;
  readonly output: string;
}

function desk(options: BuiltinOptions = {}) {
  places += 1;
  const workspace = join(realpathSync(dir.path), `${places}`);
  mkdirSync(workspace);
  const tool = builtins(options).run_command;
  const run = async (command: string | readonly string[], more: object = {}, abortSignal?: AbortSignal) =>
    (await tool?.execute?.(
      { command, ...more },
      {
        toolCallId: 'c1',
        messages: [],
        context: { directory: workspace },
        ...(abortSignal !== undefined && { abortSignal }),
      },
    )) as End;
  const pidIn = (name: string) => Number(readFileSync(join(workspace, name), 'utf8'));
  return { workspace, run, pidIn };
}

/** Waits until a process is gone. */
async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await sleep(10);
}

test('a list is a program with its arguments, and a text that needs no shell is the same', async () => {
  const { run, workspace } = desk();
  expect(await run(['printf', '%s|', 'a b', '$HOME', '*'])).toEqual({
    ended: 'exit',
    exit_code: 0,
    output: 'a b|$HOME|*|',
  });
  expect((await run("printf '%s|' 'a b'")).output).toBe('a b|');
  expect((await run('pwd')).output).toBe(`${workspace}\n`);
});

test('another text is a line of a shell', async () => {
  const { run } = desk();
  expect(await run('echo out; echo err >&2; exit 3')).toMatchObject({ ended: 'exit', exit_code: 3 });
  expect((await run('for i in 1 2; do echo $i; done | cat')).output).toBe('1\n2\n');
  expect(await run('exit 3')).toEqual({ ended: 'exit', exit_code: 3, output: '' });
  expect(await run('command -v sh')).toMatchObject({ exit_code: 0 });
  expect(await run('kill -KILL $$')).toMatchObject({ ended: 'signal', signal: 'SIGKILL' });
});

test('a program that does not exist is a failure with its reason', async () => {
  const { run } = desk();
  await expect(run(['no-such-program'])).rejects.toMatchObject({ code: 'TOOL_CANNOT_START' });
  await expect(run(['a\0b'])).rejects.toMatchObject({ code: 'TOOL_CANNOT_START' });
});

test('a command reads nothing, and has no secrets of the environment', async () => {
  process.env.BUILTIN_TEST_API_KEY = 'k-0123456789abcdef0123456789';
  try {
    const { run } = desk();
    expect((await run(['cat'])).output).toBe('');
    expect((await run('echo "[$BUILTIN_TEST_API_KEY]"')).output).toBe('[]\n');
    expect((await desk({ env: { PATH: process.env.PATH, A: 'b' } }).run('echo "[$A]"')).output).toBe('[b]\n');
  } finally {
    delete process.env.BUILTIN_TEST_API_KEY;
  }
});

test('a command that never ends is ended with all that it has started, and what it printed is kept', async () => {
  const { run, pidIn } = desk();
  const end = await run('sleep 600 & echo $! > child; echo started; wait', { timeout_ms: 900 });
  expect(end).toMatchObject({ ended: 'timeout', output: 'started\n', timeout_ms: 900 });
  await gone(pidIn('child'));
});

// A push has one that leaves its group, too.
test.runIf(sized(false, true, true))('a command that ignores SIGTERM is killed', async () => {
  const { run, pidIn } = desk();
  const end = await run("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done", { timeout_ms: 2_000 });
  expect(end).toMatchObject({ ended: 'timeout', signal: 'SIGKILL' });
  await gone(pidIn('pid'));
});

test('what a command leaves behind is ended, also when it holds the output open', async () => {
  const { run, pidIn } = desk();
  expect(await run('sleep 600 & echo $! > child; echo done')).toMatchObject({
    ended: 'exit',
    exit_code: 0,
    left_processes: 'ended',
    output: 'done\n',
  });
  await gone(pidIn('child'));
});

test.runIf(process.platform === 'linux')(
  'a process that leaves the group is ended, too, and one that ignores SIGTERM is killed',
  async () => {
    const { run, pidIn } = desk();
    const ignores = `setsid sh -c 'trap "" TERM; echo $$ > deaf; while :; do sleep 0.05; done'`;
    const until = 'while [ ! -s deaf ] || [ ! -s daemon ]; do sleep 0.01; done';
    const end = await run(`setsid sh -c 'echo $$ > daemon; exec sleep 600' & ${ignores} & ${until}`);
    expect(end).toMatchObject({ ended: 'exit', exit_code: 0, left_processes: 'ended' });
    await gone(pidIn('daemon'));
    await gone(pidIn('deaf'));
  },
);

test('an abort ends the command', async () => {
  const { run, pidIn, workspace } = desk();
  const abort = new AbortController();
  const running = run('echo $$ > pid; exec sleep 600', {}, abort.signal);
  while (!existsSync(join(workspace, 'pid')) || pidIn('pid') === 0) await sleep(5);
  abort.abort(new Error('enough'));
  await expect(running).rejects.toThrow('enough');
  await gone(pidIn('pid'));
});

test.runIf(atFullSize)(
  'a large output leaves its beginning and its end, and no memory taken',
  { timeout: 600_000 },
  async () => {
    const { run } = desk({ outputBytes: 3_000 });
    const before = keptMemory();
    const bytes = sized(20_000_000, 30_000_000, 1_000_000_000);
    const end = await run(`echo first; yes xxxxxxx | head -c ${bytes}; echo last`);
    const after = keptMemory();
    expect(end).toMatchObject({ ended: 'exit', exit_code: 0 });
    expect(end.output).toMatch(
      /^first\n(?:x+\n)+\[cut: \d+ of \d{8,10} bytes are left out here; .*\]\n(?:x+\n)+last\n$/,
    );
    expect(end.output.length).toBeLessThan(3_200);
    expect(after.heapUsed - before.heapUsed).toBeLessThan(bytes);
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(bytes);
  },
);
