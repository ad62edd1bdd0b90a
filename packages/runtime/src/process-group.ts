import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * How long a program may take to end after its input has ended, then after SIGTERM, and then what it started, in
 * milliseconds.
 */
const [quietMs, termMs, restMs] = [300, 2_000, 200];

/** How often what is left is killed at most, and the time between, in milliseconds. */
const [killsMax, killMs] = [20, 10];

/** The groups of this process that may have members, by the id of their first process: the mark of each. */
const groups = new Map<number, string>();

/**
 * The variable with the marks of a process: of its group, and of those in which this one was started. What a process starts
 * inherits its variables, also in a group of its own.
 */
const markName = 'TAPEDECK_GROUP';

/** Signals that end a process which does not listen to them, without an event `exit`. */
const deadly = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A process that exits leaves nothing behind. */
function killAll(): void {
  for (const group of groups.keys()) signal(-group, 'SIGKILL');
  for (const pid of marked([...groups.values()])) signal(pid, 'SIGKILL');
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

/**
 * Starts a program as the first of a process group, which has all processes that it starts. On Linux it also has those that
 * go into a group of their own, as daemons do, unless they get another environment or another user.
 */
export function spawnGroup(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const mark = randomUUID();
  const marks = [process.env[markName] ?? '', mark].join(' ').trim();
  const env = { ...(options.env ?? process.env), [markName]: marks };
  const child = spawn(command, args, { ...options, env, detached: true });
  if (child.pid === undefined) return child;
  if (groups.size === 0) listen();
  groups.set(child.pid, mark);
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
  const mark = pid === undefined ? undefined : groups.get(pid);
  if (pid === undefined || mark === undefined) return false;
  child.stdin?.end();
  await hasEndedWithin(child, waitMs);
  const all = (name: NodeJS.Signals | 0) => signalAll(pid, { mark, name });
  const isLeft = all('SIGTERM');
  if (isLeft) {
    await hasEndedWithin(child, termMs);
    if (!(await isOver(all, restMs))) all('SIGKILL');
    // One that started another before it was killed has left that behind.
    for (let kills = 1; kills < killsMax && marked([mark]).length > 0; kills += 1) {
      await sleep(killMs);
      all('SIGKILL');
    }
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

/** Whether a group loses its last member within some time. */
async function isOver(all: (name: 0) => boolean, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  while (all(0)) {
    if (performance.now() > until) return false;
    await sleep(10);
  }
  return true;
}

/** Whether a group has members, in it or only by their marks, which get the signal once each. */
function signalAll(
  group: number,
  { mark, name }: { readonly mark: string; readonly name: NodeJS.Signals | 0 },
): boolean {
  const outside = marked([mark]).filter((pid) => groupOf(pid) !== group);
  const inside = signal(-group, name);
  return outside.filter((pid) => signal(pid, name)).length > 0 || inside;
}

/** The group of a process; undefined for one that has ended. */
function groupOf(pid: number): number | undefined {
  try {
    const [, group] = /^\d+ \(.*\) \S+ \d+ (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return Number(group);
  } catch {
    return undefined;
  }
}

/** The processes with one of these marks. Systems other than Linux show none. */
function marked(marks: readonly string[]): readonly number[] {
  if (!existsSync('/proc/self/environ')) return [];
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      // Of another user it cannot be read, and of one that has ended it is empty.
      const variables = readFileSync(`/proc/${name}/environ`);
      return marks.some((mark) => variables.includes(mark)) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

/** Whether there is a process, or with a negative id a group, which gets the signal. */
function signal(id: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(id, name);
  } catch (error) {
    // A member that runs as another user is one.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
