import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { script } from './programs.ts';

/** A program of ours in a process of its own. */
export interface Process extends AsyncDisposable {
  readonly child: ChildProcess;
  /** Its output so far. */
  readonly printed: () => string;
  /** Resolves once it has printed a line with the text, or rejects when it ends without. */
  prints(text: string): Promise<void>;
  /** Ends it as a crash does: nothing is cleaned up. */
  kill(): Promise<void>;
  /** Resolves when it ends by itself; rejects when it fails. */
  done(): Promise<void>;
}

/** Runs a module's text, which may import the packages; `process.argv.slice(1)` are the arguments. */
export function startProcess(text: string, ...args: readonly string[]): Process {
  return start(script(text), args);
}

/** As `startProcess`, with each module of the packages loaded by itself, from its source. */
export function startFromSources(text: string, ...args: readonly string[]): Process {
  return start(script(text, { fromSources: true }), args);
}

function start(node: ReturnType<typeof script>, args: readonly string[]): Process {
  const child = spawn(process.execPath, [...node.args, ...args], {
    cwd: node.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      for (const look of waiting) look();
    });
  const exited = once(child, 'close') as Promise<[number | null]>;
  const prints = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!printed.includes(text)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
      exited.then(() => reject(new Error(`the process ended without saying ${text}:\n${printed}`)), reject);
    });
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  return {
    child,
    printed: () => printed,
    prints,
    kill,
    done: async () => {
      const [code] = await exited;
      if (code !== 0) throw new Error(`the process ended with ${code}:\n${printed}`);
    },
    [Symbol.asyncDispose]: kill,
  };
}
