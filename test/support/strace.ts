import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Why a program cannot be traced here, or undefined when it can. */
export function traceFault(): string | undefined {
  const { error, status, stderr } = spawnSync('strace', ['-o', '/dev/null', '-e', 'trace=none', 'true'], {
    encoding: 'utf8',
  });
  if (error !== undefined) return 'there is no strace';
  return status === 0 ? undefined : `strace may not trace here: ${stderr.trim()}`;
}

/** One system call that was seen. */
export interface Call {
  readonly syscall: string;
  /** Which of the calls of this name it was, from 1: what `when=` counts. */
  readonly ordinal: number;
  /** As strace prints it: arguments, with the paths of descriptors, and result. */
  readonly text: string;
}

/** What to do to one call: make it fail, or end the process as it is made. */
export interface Injection {
  readonly syscall: string;
  readonly ordinal: number;
  readonly kind: 'SIGKILL' | 'EIO' | 'ENOSPC';
}

export interface Traced {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly calls: readonly Call[];
}

export interface TraceOptions {
  /** Only calls that name one of these, or a descriptor of it. */
  readonly paths?: readonly string[];
  readonly syscalls: readonly string[];
  readonly inject?: Injection;
  /** Where strace writes. */
  readonly log: string;
}

const hangMs = 60_000;

/** Runs a TypeScript module as a process of its own under strace, which follows its main thread: the store works there. */
export async function trace(
  module: string,
  args: readonly string[],
  { paths = [], syscalls, inject, log }: TraceOptions,
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
      ...[process.execPath, '--conditions=@tapedeck/source', module, ...args],
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: hangMs,
      killSignal: 'SIGTERM',
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'tapedeck-compile-cache') },
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

/** At most so many of a list, spread evenly over all of it: the same ones every time. */
export function spread<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  const step = all.length / most;
  return Array.from({ length: most }, (_, i) => all[Math.floor(i * step)] as T);
}
