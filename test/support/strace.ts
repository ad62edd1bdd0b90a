import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Ended } from './fault-sweep.ts';

/** Whether a program's system calls can be followed here: `missing` is strace itself, `forbidden` what it needs. */
export type Tracing = 'works' | 'missing' | 'forbidden';

function probe(): Tracing {
  const { error, status } = spawnSync('strace', ['-f', '-o', '/dev/null', '-e', 'trace=none', 'true']);
  return error !== undefined ? 'missing' : status === 0 ? 'works' : 'forbidden';
}

export const tracing: Tracing = probe();

/** Says so, once in a file, when its tests cannot be run; a CI fails then, for `.ci/run` installs strace. */
export function skipsTracing(what: string): boolean {
  if (tracing === 'works') return false;
  const why = tracing === 'missing' ? 'there is no strace' : 'strace may not trace';
  if (process.env.CI === 'true') throw new Error(`cannot test ${what}: ${why}`);
  console.warn(`skipped: ${what}; ${why}`);
  return true;
}

/** One system call that was seen. */
export interface Call {
  readonly syscall: string;
  /** Which of the calls of this name it was, from 1: what `when=` counts. */
  readonly ordinal: number;
  /** As strace prints it: arguments, with the paths of descriptors, and result. */
  readonly text: string;
}

/** The fault of one call: make it fail, or end the process at the call. */
export interface Injection {
  readonly syscall: string;
  readonly ordinal: number;
  readonly kind: 'SIGKILL' | 'EIO' | 'ENOSPC';
}

export interface Traced extends Ended {
  readonly calls: readonly Call[];
}

export interface TraceOptions {
  /** Only calls that name one of these, or a descriptor of it. */
  readonly paths?: readonly string[];
  readonly syscalls: readonly string[];
  readonly inject?: Injection;
  /** Where strace writes. */
  readonly log: string;
  /** The whole environment, instead of the one of this process. */
  readonly env?: NodeJS.ProcessEnv;
}

const hangMs = 60_000;

/**
 * Runs node with these arguments, as a process of its own under strace, which follows its main thread: the store
 * works there.
 */
export async function trace(
  args: readonly string[],
  { paths = [], syscalls, inject, log, env = process.env }: TraceOptions,
): Promise<Traced> {
  const injection = inject === undefined ? [] : ['-e', `inject=${injectionText(inject)}`];
  const child = spawn(
    'strace',
    [
      // Quiet; whole paths of descriptors; as much of a text as an acknowledgement is long.
      ...['-qq', '-y', '-s', '64', '-o', log],
      // A question mark: not every machine has every call.
      ...['-e', `trace=${syscalls.map((name) => `?${name}`).join(',')}`],
      ...injection,
      ...paths.flatMap((path) => ['-P', path]),
      ...[process.execPath, ...args],
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
      timeout: hangMs,
      killSignal: 'SIGTERM',
    },
  );
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, ...said, calls: parseCalls(readFileSync(log, 'utf8')) };
}

function injectionText({ syscall, ordinal, kind }: Injection): string {
  return `${syscall}:${kind === 'SIGKILL' ? 'signal' : 'error'}=${kind}:when=${ordinal}`;
}

function parseCalls(log: string): Call[] {
  const counts = new Map<string, number>();
  const calls: Call[] = [];
  for (const text of log.split('\n')) {
    const syscall = /^(\w+)\(/.exec(text)?.[1];
    if (syscall === undefined) continue;
    const ordinal = (counts.get(syscall) ?? 0) + 1;
    counts.set(syscall, ordinal);
    calls.push({ syscall, ordinal, text });
  }
  return calls;
}
