import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import { endGroup, spawnGroup } from '../process-group.ts';
import { BuiltinError } from './errors.ts';
import { OutputWindow } from './output-window.ts';

/** How a command runs. */
export interface CommandRequest {
  readonly words: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly outputBytes: number;
  readonly signal: AbortSignal;
}

/** How a command ended. */
export interface CommandEnd {
  readonly ended: 'exit' | 'signal' | 'timeout' | 'aborted';
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Whether processes were left that it had started. They were ended. */
  readonly hadLeft: boolean;
  readonly output: string;
}

/** How long what was printed may take to arrive after the end of the command, in milliseconds. */
const drainMs = 200;

/**
 * Runs a command without input, in a process group of its own. When it ends, takes too long, or the call is aborted, all
 * that is left of the group is ended: with SIGTERM, and then with SIGKILL.
 * @throws TOOL_CANNOT_START
 */
export async function runInGroup({
  words: [program = '', ...args],
  cwd,
  env,
  timeoutMs,
  outputBytes,
  signal,
}: CommandRequest): Promise<CommandEnd> {
  signal.throwIfAborted();
  const output = new OutputWindow(outputBytes);
  const child = await started(program, () =>
    spawnGroup(program, args, {
      ...(cwd !== undefined && { cwd }),
      env: { ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  const closed = once(child, 'close').catch(() => {});
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => output.add(chunk));
    stream?.on('error', () => {});
  }
  const over = new AbortController();
  const exited =
    child.exitCode !== null || child.signalCode !== null
      ? Promise.resolve('exit' as const)
      : once(child, 'exit').then(() => 'exit' as const);
  const timeout = sleep(timeoutMs, 'timeout' as const, { signal: over.signal });
  // The call can be aborted while its process starts.
  const aborted = signal.aborted
    ? Promise.resolve('aborted' as const)
    : once(signal, 'abort', { signal: over.signal }).then(() => 'aborted' as const);
  for (const waiting of [timeout, aborted]) waiting.catch(() => {});
  const end = await Promise.race([exited, timeout, aborted]);
  over.abort();
  const drained = async () => await Promise.race([closed, sleep(drainMs)]);
  if (end === 'exit') await drained();
  const hadLeft = await endGroup(child, 0);
  await drained();
  child.stdout?.destroy();
  child.stderr?.destroy();
  const { exitCode: code, signalCode } = child;
  return {
    ended: end === 'exit' && signalCode !== null ? 'signal' : end,
    code,
    signal: signalCode,
    hadLeft: end === 'exit' && hadLeft,
    output: output.text(),
  };
}

/** A process that has started. @throws TOOL_CANNOT_START */
async function started(program: string, start: () => ChildProcess): Promise<ChildProcess> {
  try {
    const child = start();
    await once(child, 'spawn');
    return child;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === 'ENOENT'
        ? 'there is no such program, or the working directory is gone; for a command of the shell run sh -c'
        : code === 'EACCES'
          ? 'it is no program that this user may run'
          : messageOf(error);
    throw new BuiltinError('TOOL_CANNOT_START', `cannot run '${program.slice(0, 200)}': ${why}`, {
      cause: error,
    });
  }
}
