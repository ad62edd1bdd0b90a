import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * How long a program may take to end after its input has ended, then after SIGTERM, and then what it started, in
 * milliseconds.
 */
const [quietMs, termMs, restMs] = [300, 2_000, 200];

/** The groups of this process that may have members, by the id of their first process. */
const groups = new Set<number>();

/** Signals that end a process which does not listen to them, without an event `exit`. */
const deadly = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A process that exits leaves nothing behind. */
function killAll(): void {
  for (const group of groups) signal(group, 'SIGKILL');
}

/** A program that listens to the signal ends, or does not, as it decides. */
function beforeDeath(name: NodeJS.Signals): void {
  if (process.listenerCount(name) > 1) return;
  killAll();
  process.off(name, beforeDeath);
  process.kill(process.pid, name);
}

function listen(): void {
  process.on('exit', killAll);
  for (const name of deadly) process.on(name, beforeDeath);
}

function stopListening(): void {
  process.off('exit', killAll);
  for (const name of deadly) process.off(name, beforeDeath);
}

/** Starts a program as the first of a process group, which has all processes that it starts. */
export function spawnGroup(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(command, args, { ...options, detached: true });
  if (child.pid === undefined) return child;
  if (groups.size === 0) listen();
  groups.add(child.pid);
  return child;
}

/**
 * Ends a group. Its input ends first, as programs expect that talk over their standard streams; what is then left of the
 * group gets SIGTERM, and at last SIGKILL.
 * @param waitMs how long it may take to end after its input has ended
 * @returns whether any of it was left then
 */
export async function endGroup(child: ChildProcess, waitMs: number = quietMs): Promise<boolean> {
  const { pid } = child;
  if (pid === undefined || !groups.has(pid)) return false;
  child.stdin?.end();
  await hasEndedWithin(child, waitMs);
  const isLeft = signal(pid, 'SIGTERM');
  if (isLeft) {
    await hasEndedWithin(child, termMs);
    if (!(await isEmptyWithin(pid, restMs))) signal(pid, 'SIGKILL');
  }
  groups.delete(pid);
  if (groups.size === 0) stopListening();
  return isLeft;
}

async function hasEndedWithin(child: ChildProcess, ms: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const over = new AbortController();
  const { signal } = over;
  await Promise.race([once(child, 'exit', { signal }), sleep(ms, undefined, { signal })]).catch(() => {});
  over.abort();
}

async function isEmptyWithin(group: number, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  while (signal(group, 0)) {
    if (performance.now() > until) return false;
    await sleep(10);
  }
  return true;
}

/** Whether the group has members, which get the signal. */
function signal(group: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, name);
  } catch (error) {
    // A member that runs as another user is one.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
