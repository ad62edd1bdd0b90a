import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { program } from './programs.ts';

/** A running `tape-worker.ts`. */
export interface Worker {
  readonly pid: number;
  /** Its output so far. */
  readonly output: readonly unknown[];
  /** Lets it do its act. */
  go(): void;
  /** Waits until it has printed this many lines. */
  until(count: number): Promise<void>;
  kill(): Promise<void>;
  /** Waits for its end. @throws when it failed, with what it wrote to stderr */
  done(): Promise<readonly unknown[]>;
}

/** Starts a worker and waits until it is ready to act. */
export async function startWorker(path: string, act: string, ...args: readonly string[]): Promise<Worker> {
  const child = spawn(process.execPath, [...program('tape-worker.ts'), path, act, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const output: unknown[] = [];
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => output.push(JSON.parse(line)));
  const closed = once(child, 'close');
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  const until = async (count: number) => {
    while (output.length < count + 1) {
      if (ended()) throw new Error(`the worker ended early: ${errors}`);
      await Promise.race([once(lines, 'line'), closed]);
    }
  };
  await until(0);
  return {
    pid: pidOf(child),
    get output() {
      return output.slice(1);
    },
    go: () => {
      child.stdin.write('go\n');
    },
    until,
    kill: async () => {
      child.kill('SIGKILL');
      await closed;
    },
    done: async () => {
      child.stdin.end();
      await closed;
      if (child.exitCode !== 0)
        throw new Error(`the worker ended with ${child.exitCode ?? child.signalCode}: ${errors}`);
      return output.slice(1);
    },
  };
}

function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('the worker did not start');
  return pid;
}
