import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import type { Peer } from './peer.ts';
import type { Request, Result, Said, Task } from './program.ts';

const limitMs = 300_000;

/** Imports packages from the working directory, which is where the peer is installed. */
const start = `
  const [program, request] = process.argv.slice(1);
  const { run } = await import(program);
  await run((name) => import(name), JSON.parse(request));`;

/** What keeps the peers from sending anything anywhere. */
const quiet = {
  DO_NOT_TRACK: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  PI_OFFLINE: '1',
  PI_TELEMETRY: '0',
  MASTRA_OFFLINE: '1',
  MASTRA_TELEMETRY_DISABLED: '1',
  LANGCHAIN_TRACING_V2: 'false',
  LANGSMITH_TRACING: 'false',
};

/** Writes the program of the processes as JavaScript: taking types away would cost time and memory in each. */
export async function bundle(dir: string): Promise<string> {
  const bundled = await rolldown({ input: join(import.meta.dirname, 'program.ts'), platform: 'node' });
  await bundled.write({ dir, entryFileNames: 'program.mjs' });
  await bundled.close();
  return pathToFileURL(join(dir, 'program.mjs')).href;
}

/** A peer that can be run. */
export interface Installed {
  readonly peer: Peer;
  readonly program: string;
  /** Where its packages are. */
  readonly modules: string;
}

/** A session of a peer. */
export interface Place {
  readonly home: string;
  readonly session: string;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The lines that it said. */
  readonly said: readonly (Result & Said)[];
  readonly stderr: string;
}

/** Runs a process that does one task, with its home as the user's, perhaps below another program. */
export async function runProcess(
  { peer, program, modules }: Installed,
  home: string,
  task: Task,
  below: readonly string[] = [],
): Promise<Ended> {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const request: Request = { peer: peer.name, home, task };
  const node = [process.execPath, '--input-type=module', '-e', start, program, JSON.stringify(request)];
  const [command = '', ...args] = [...below, ...node];
  const child = spawn(command, args, {
    cwd: modules,
    env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: home, TAPE_TRUST_HOME: '1', ...quiet },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limitMs,
  });
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  return { code, signal, stderr, said: lines.map((line) => JSON.parse(line)) };
}

/** As `runProcess`, for a process that must end well: what it said last. */
export async function result(installed: Installed, home: string, task: Task): Promise<Result & Said> {
  const { code, signal, said, stderr } = await runProcess(installed, home, task);
  const last = said.at(-1);
  if (code === 0 && last !== undefined) return last;
  if (signal === 'SIGTERM') throw new Error(`it takes longer than ${limitMs / 1000} s`);
  const error = /^\w*Error: .*$/m.exec(stderr) ?? /FATAL ERROR: .*$/m.exec(stderr);
  throw new Error(`it ends with ${signal ?? code}: ${error?.[0] ?? stderr.slice(-200)}`);
}
