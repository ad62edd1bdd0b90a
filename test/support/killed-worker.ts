import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { program } from './programs.ts';

/** A worker script under way, which may be killed at any time, or kill itself. */
export interface KilledWorker {
  /** Resolves once it has printed anything, or has ended. */
  readonly begun: Promise<unknown>;
  /** Resolves when it has ended. Rejects when it failed by itself, with what it wrote to stderr. */
  readonly ended: Promise<WorkerEnd>;
  kill(): void;
}

export interface WorkerEnd {
  readonly killed: boolean;
  /** The lines that it printed whole: one that a kill cut off does not count. */
  readonly lines: readonly string[];
}

/** Starts `test/support/{script}` with an order as JSON. */
export function startWorker(script: string, order: object): KilledWorker {
  const args = [...program(script), JSON.stringify(order)];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text;
    });
  const closed = once(child, 'close');
  const ended = closed.then((): WorkerEnd => {
    const killed = child.signalCode === 'SIGKILL';
    if (!killed && child.exitCode !== 0)
      throw new Error(`the worker of ${JSON.stringify(order)} failed: ${printed.stderr}`);
    return { killed, lines: printed.stdout.split('\n').slice(0, -1) };
  });
  return {
    begun: Promise.race([once(child.stdout, 'data'), closed]),
    ended,
    kill: () => {
      child.kill('SIGKILL');
    },
  };
}
