import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { main } from '@tapedeck/cli';
import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { bufferedIo, type Given } from './buffered-io.ts';
import { compileCache } from './compile-cache.ts';
import { checkContract } from './contract.ts';
import { isFirstInRun } from './once.ts';
import { assertRunLineAgrees } from './parsers.ts';
import { tapeProgram } from './programs.ts';
import { sized } from './size.ts';

export interface CliOptions extends Omit<Given, 'isTerminal' | 'stdinIsTerminal' | 'terminal'> {
  /** For node itself, before the script. */
  readonly node?: readonly string[];
}

/** As `CliOptions`, for a command line in this process, whose stdout may be taken for a terminal. */
export type HereOptions = Given;

/** The output and exit code of a command. */
export interface CliResult {
  readonly stdout: string;
  readonly stderr: string;
  /** As the shell has it: 128 and the signal's number for a process that a signal ended. */
  readonly code: number;
}

/** A `tape` that is running. */
export interface Running {
  readonly child: ChildProcess;
  readonly done: Promise<CliResult>;
  /** Resolves once stdout or stderr has the text; rejects when the process ends without. */
  until(text: string): Promise<void>;
}

/**
 * Runs `tape` as a test of what a verb does may: on a push from the sources in this process, which is quicker by far;
 * in full the first command line of each verb as a process of its own; in a soak each.
 */
export async function tape(
  args: readonly string[],
  options: Omit<CliOptions, 'node'> = {},
): Promise<CliResult> {
  return await sized(tapeHere, firstOfVerb, tapeProcess)(args, options);
}

/** Returns how to run command lines: the first of each verb in a run as a process of its own, all others in this way. */
export function firstAsProcess(way: string, others: typeof tapeHere): typeof tapeHere {
  return async (args, options) => {
    const verb = args.find((word) => !word.startsWith('-')) ?? '';
    return await (isFirstInRun(`${way} ${verb}`) ? tapeProcess : others)(args, options);
  };
}

const firstOfVerb = firstAsProcess('here', tapeHere);

/** Runs `tape` as a process of its own: from the bundle that the build made. */
export async function tapeProcess(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const { child, done } = startTape(args, options);
  child.stdin?.end(options.stdin ?? '');
  return await done;
}

/** Runs the command line in this process, from its sources. */
export async function tapeHere(args: readonly string[], options: HereOptions = {}): Promise<CliResult> {
  const { io, said } = bufferedIo(options);
  const code = await main(args, io);
  await assertRunLineAgrees(args);
  checkContract(args, { ...said, code });
  return { ...said, code };
}

/** Starts `tape` with stdin open. */
export function startTape(args: readonly string[], options: CliOptions = {}): Running {
  const { home, env, cwd, node = [] } = options;
  const child = spawn(process.execPath, [...node, tapeProgram, ...args], {
    cwd,
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      // Tests make homes with the library, which records none of them.
      TAPE_TRUST_HOME: '1',
      NODE_COMPILE_CACHE: compileCache,
      ...(home !== undefined && { TAPE_HOME: home }),
      ...env,
    },
  });
  // A process that ends before it has read everything does not fail its stdin.
  child.stdin.on('error', () => {});
  const said = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
      for (const look of watchers) look();
    });
  const done = new Promise<CliResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', async (code, signal) => {
      const ended = { ...said, code: code ?? 128 + (signal === null ? 0 : constants.signals[signal]) };
      try {
        await assertRunLineAgrees(args);
        checkContract(args, ended);
        resolve(ended);
      } catch (fault) {
        reject(fault);
      }
    });
  });
  const until = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!said.stdout.includes(text) && !said.stderr.includes(text)) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
      done.then(({ stderr }) => reject(new Error(`tape ended without saying ${text}: ${stderr}`)), reject);
    });
  return { child, done, until };
}

/** The one JSON document on stdout. */
export function json<T = JsonObject>({ stdout, stderr, code }: CliResult): T {
  try {
    return JSON.parse(stdout) as T;
  } catch (cause) {
    throw new Error(`no JSON on stdout; exit ${code}, stderr: ${stderr}`, { cause });
  }
}

/** The objects on the lines of stdout. */
export function jsonLines<T = JsonObject>({ stdout }: CliResult): T[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

/** An error as `--json` has it on stderr. */
export interface CliError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly data: JsonObject;
}

/** The error that `--json` gave: one document on stderr, and nothing on stdout. */
export function jsonError({ stdout, stderr }: CliResult): CliError {
  if (stdout !== '') throw new Error(`stdout is not empty: ${stdout}`);
  const value: Json = JSON.parse(stderr);
  if (!isObject(value) || !isObject(value.error) || Object.keys(value).length !== 1)
    throw new Error(`not an error document: ${stderr}`);
  return value.error as unknown as CliError;
}
