import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Given } from './buffered-io.ts';
import { type CliResult, firstAsProcess, tapeProcess } from './cli.ts';
import { compileCache } from './compile-cache.ts';
import { checkContract } from './contract.ts';
import { sized } from './size.ts';

/** A command line for `tape-host.ts`. */
export interface HostOrder {
  readonly args: readonly string[];
  readonly options: Given;
}

let host: ChildProcess | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs the built `tape` where Node.js itself loads configurations: on a push in one process for all command lines, one
 * after another; in full the first of each verb in a process of its own; in a soak each.
 */
export async function tapeInNode(args: readonly string[], options: Given = {}): Promise<CliResult> {
  return await sized(queued, firstOfVerb, tapeProcess)(args, options);
}

const firstOfVerb = firstAsProcess('in node', queued);

async function queued(args: readonly string[], options: Given = {}): Promise<CliResult> {
  const result = last.then(async () => await ask({ args, options }));
  last = result.catch(() => {});
  return await result;
}

async function ask(order: HostOrder): Promise<CliResult> {
  host ??= start();
  const answer = once(host, 'message') as Promise<[CliResult]>;
  host.send(order);
  const [result] = await answer;
  checkContract(order.args, result);
  return result;
}

function start(): ChildProcess {
  const child = fork(join(import.meta.dirname, 'tape-host.ts'), {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache },
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  // The tests end when they are done, and the host with them.
  child.unref();
  child.channel?.unref();
  return child;
}
