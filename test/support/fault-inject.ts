import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { FaultPlace } from './fault-acts.ts';
import type { Fault } from './fault-calls.ts';
import type { Ended } from './fault-sweep.ts';
import { program } from './programs.ts';

/**
 * How a call of the store goes wrong. `SHORT` and `TORN` take half of a write; then the disk is full, or the process
 * gone.
 */
export type FaultKind = 'SIGKILL' | 'EIO' | 'ENOSPC' | 'SHORT' | 'TORN';

/** A workload for an `injected-worker.ts`, in a directory as `faultPlace` has it. */
export interface InjectedOrder extends Fault {
  readonly workload: string;
}

/** What an `injected-worker.ts` prints behind each workload. */
export const doneLine = '{"done":true}\n';

interface Worker {
  readonly child: ChildProcessWithoutNullStreams;
  readonly said: { stdout: string; stderr: string };
  readonly closed: Promise<[number | null, NodeJS.Signals | null]>;
}

/** Processes that do workloads with a fault in each, one after another until a fault kills them. */
export class InjectedRuns implements Disposable {
  readonly #idle: Worker[] = [];

  /** Does a workload in a process: one call goes wrong, or all are noted in a log. */
  async run(
    workload: string,
    place: FaultPlace,
    how: { readonly point: string } | { readonly log: string },
  ): Promise<Ended> {
    const worker = this.#idle.pop() ?? startWorker();
    const { child, said, closed } = worker;
    Object.assign(said, { stdout: '', stderr: '' });
    const order: InjectedOrder = { dir: dirname(place.dir), workload, ...how };
    const late = setTimeout(() => child.kill(), 60_000);
    child.stdin.write(`${JSON.stringify(order)}\n`);
    const ended = await Promise.race([isDone(worker), closed]);
    clearTimeout(late);
    if (ended !== true) return { code: ended[0], signal: ended[1], ...said };
    this.#idle.push(worker);
    return { code: 0, signal: null, stdout: said.stdout.slice(0, -doneLine.length), stderr: said.stderr };
  }

  [Symbol.dispose](): void {
    for (const { child } of this.#idle) child.stdin.end();
  }
}

function startWorker(): Worker {
  const child = spawn(process.execPath, [...program('injected-worker.ts')]);
  // A process that a fault kills does not fail its stdin.
  child.stdin.on('error', () => {});
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  return { child, said, closed: once(child, 'close') as Worker['closed'] };
}

/** Resolves when the process has done a workload. */
async function isDone({ child, said }: Worker): Promise<true> {
  return await new Promise((resolve) => {
    const look = () => {
      if (!said.stdout.endsWith(doneLine)) return;
      child.stdout.off('data', look);
      resolve(true);
    };
    child.stdout.on('data', look);
  });
}

/** The calls that were noted, in order. */
export function notedCalls(log: string): string[] {
  if (!existsSync(log)) return [];
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as string);
}
