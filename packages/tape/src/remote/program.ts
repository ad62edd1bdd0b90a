import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/** How long a program may take to end after SIGTERM, in milliseconds. */
const termMs = 2_000;

/** The groups of the programs that run, by the id of the first process of each. */
const groups = new Set<number>();

/** Signals that end a process which does not listen to them, without an event `exit`. */
const deadly = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function killAll(): void {
  for (const group of groups) signal(group, 'SIGTERM');
}

function beforeDeath(name: NodeJS.Signals): void {
  // One that listens ends, or does not, as it decides.
  if (process.listenerCount(name) > 1) return;
  killAll();
  process.off(name, beforeDeath);
  process.kill(process.pid, name);
}

/**
 * Starts git or ssh in a group of its own, which ends with this process. It has no terminal, so that it can ask nothing: what
 * needs an answer fails.
 */
export function startProgram(
  [program = '', ...args]: readonly string[],
  options: SpawnOptions,
): ChildProcess {
  const child = spawn(program, args, { ...options, detached: true });
  const { pid } = child;
  if (pid === undefined) return child;
  if (groups.size === 0) {
    process.on('exit', killAll);
    for (const name of deadly) process.on(name, beforeDeath);
  }
  groups.add(pid);
  child.once('exit', () => {
    groups.delete(pid);
    if (groups.size > 0) return;
    process.off('exit', killAll);
    for (const name of deadly) process.off(name, beforeDeath);
  });
  return child;
}

/** Ends a program, and what it started: with SIGTERM, after which git leaves no half file, and at last with SIGKILL. */
export function endProgram({ pid }: ChildProcess): void {
  if (pid === undefined || !signal(pid, 'SIGTERM')) return;
  setTimeout(() => signal(pid, 'SIGKILL'), termMs).unref();
}

/** Whether a group has members, which get the signal. */
function signal(group: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(-group, name);
  } catch {
    return false;
  }
}
