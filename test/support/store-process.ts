import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { program } from './programs.ts';

/** A running `store-worker.ts`; it is killed at the end of its block. */
export interface StoreProcess extends AsyncDisposable {
  readonly pid: number;
  /**
   * Has it do an act, and resolves with its outcome.
   * @throws StoreProcessError with the code of the error there
   */
  ask<T = unknown>(act: string, args?: Readonly<Record<string, unknown>>): Promise<T>;
  /** Calls a method of the store that it has open. */
  call<T = unknown>(method: string, ...args: readonly unknown[]): Promise<T>;
  signal(signal: NodeJS.Signals): void;
  kill(): Promise<void>;
}

/** The refusal of an act in the other process. */
class StoreProcessError extends Error {
  readonly code: string | null;

  constructor(code: string | null, message: string) {
    super(message);
    this.code = code;
  }
}

interface Answer {
  readonly value?: unknown;
  readonly error?: { readonly code: string | null; readonly message: string };
}

/** Starts one; `under` is a command that runs it, such as `unshare`. */
export async function startStore({ under = [] }: { under?: readonly string[] } = {}): Promise<StoreProcess> {
  const [command = '', ...args] = [...under, process.execPath, ...program('store-worker.ts')];
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { pid, stdin } = child;
  if (pid === undefined) throw new Error('the process did not start');
  stdin.on('error', () => {}); // it was killed
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  const closed = once(child, 'close');
  const waiting: ((answer: Answer) => void)[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => waiting.shift()?.(JSON.parse(line) as Answer));
  lines.on('close', () => {
    for (const resolve of waiting.splice(0))
      resolve({ error: { code: null, message: `the process ended: ${errors}` } });
  });
  const next = async <T>(): Promise<T> => {
    const { value, error } = await new Promise<Answer>((resolve) => waiting.push(resolve));
    if (error !== undefined) throw new StoreProcessError(error.code, error.message);
    return value as T;
  };
  const ask = async <T>(act: string, args: Readonly<Record<string, unknown>> = {}): Promise<T> => {
    const answer = next<T>();
    stdin.write(`${JSON.stringify({ act, ...args })}\n`);
    return await answer;
  };
  const kill = async () => {
    child.kill('SIGKILL');
    await closed;
  };
  await next();
  return {
    pid,
    ask,
    call: (method, ...args) => ask('call', { method, args }),
    signal: (signal) => {
      child.kill(signal);
    },
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

/** Several of them, started at once. */
export async function startStores(count: number): Promise<StoreProcess[] & AsyncDisposable> {
  const started = await Promise.all(Array.from({ length: count }, async () => await startStore()));
  return Object.assign(started, {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(started.map((one) => one.kill()));
    },
  });
}
