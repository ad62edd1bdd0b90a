import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { CliResult } from './cli.ts';
import { compileCache } from './compile-cache.ts';
import { checkContract } from './contract.ts';
import { mountPoint, unmount, unmountLeft } from './mounts.ts';
import { tapeProgram } from './programs.ts';

/** Something in the way of a command: a disk that is full, or may not be written. */
export interface Obstacle {
  /** Puts it in the way of uses of a directory in which no process has open files. */
  readonly put: (dir: string) => void;
  readonly lift: (dir: string) => void;
  /** The prefix of a command. */
  readonly under: readonly string[];
  /** Where Node.js does not even start under that: what to try instead, in order. */
  readonly orUnder?: readonly (readonly string[])[];
  /** Whether a directory must be a disk of its own. */
  readonly ownDisk: boolean;
}

const none = () => {};
const limited = (limit: string) => ['bash', '-c', `ulimit ${limit}; exec "$0" "$@"`];

export const obstacles: Readonly<Record<'ENOSPC' | 'EFBIG' | 'EROFS' | 'EACCES' | 'EMFILE', Obstacle>> = {
  ENOSPC: {
    put: (dir) => fill(join(dir, 'ballast')),
    lift: (dir) => rmSync(join(dir, 'ballast')),
    under: [],
    ownDisk: true,
  },
  // Files of at most 40 KiB: shared memory fits, the log of a change does not.
  EFBIG: { put: none, lift: none, under: limited('-f 40'), ownDisk: false },
  EROFS: { put: (dir) => remount(dir, 'ro'), lift: (dir) => remount(dir, 'rw'), under: [], ownDisk: true },
  EACCES: {
    put: (dir) => modes(dir, { directory: 0o500, file: 0o400 }),
    lift: (dir) => modes(dir, { directory: 0o700, file: 0o600 }),
    // Root may do what modes forbid, unless it gives that up.
    under: isRoot() ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--'] : [],
    ownDisk: false,
  },
  // Node itself needs some twenty: the first of these with which it starts.
  EMFILE: {
    put: none,
    lift: none,
    under: limited('-n 20'),
    orUnder: Array.from({ length: 20 }, (_, i) => limited(`-n ${21 + i}`)),
    ownDisk: false,
  },
};

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** A small disk of its own, until the block ends. Needs root. */
export function smallDisk(dir: string): Disposable & { readonly path: string } {
  const path = mountPoint(dir, 'small');
  mkdirSync(path);
  run('mount', '-t', 'tmpfs', '-o', 'size=4m,mode=700', 'tmpfs', path);
  return { path, [Symbol.dispose]: () => unmount(path) };
}

/** Why there can be no small disks here, or undefined when there can. */
export function diskFault(dir: string): string | undefined {
  if (!isRoot()) return 'mounting takes root';
  unmountLeft();
  try {
    using _ = smallDisk(dir);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function run(program: string, ...args: readonly string[]): void {
  const { error, status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (error !== undefined || status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`);
}

function remount(dir: string, mode: 'ro' | 'rw'): void {
  run('mount', '-o', `remount,${mode}`, dir);
}

/** Takes all that is free, to the last byte. */
function fill(file: string): void {
  const fd = openSync(file, 'wx', 0o600);
  for (let size = 64 * 1024; size >= 1; ) {
    try {
      if (writeSync(fd, Buffer.alloc(size)) < size) size = Math.floor(size / 2);
    } catch {
      size = Math.floor(size / 2);
    }
  }
  closeSync(fd);
}

function modes(dir: string, { directory, file }: { directory: number; file: number }): void {
  const home = join(dir, 'home');
  chmodSync(home, 0o700);
  for (const name of readdirSync(home)) chmodSync(join(home, name), file);
  chmodSync(home, directory);
}

/** Runs the built `tape` under an obstacle; `tmp` is its directory for temporary files. */
export async function tapeUnder(
  { under, orUnder = [] }: Obstacle,
  args: readonly string[],
  options: { home: string; stdin: string; tmp?: string },
): Promise<CliResult> {
  let result = await runUnder(under, args, options);
  for (const other of orUnder) {
    if (result.code === 0 || result.stderr.startsWith('{')) break;
    result = await runUnder(other, args, options);
  }
  checkContract(args, result);
  return result;
}

async function runUnder(
  under: readonly string[],
  args: readonly string[],
  { home, stdin, tmp }: { home: string; stdin: string; tmp?: string },
): Promise<CliResult> {
  const [program = process.execPath, ...rest] = [...under, process.execPath, tapeProgram, ...args];
  const child = spawn(program, rest, {
    timeout: 60_000,
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      TAPE_HOME: home,
      ...(tmp !== undefined && { TMPDIR: tmp }),
      NODE_COMPILE_CACHE: compileCache,
    },
  });
  child.stdin.on('error', none);
  child.stdin.end(stdin);
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  const [code] = (await once(child, 'close')) as [number | null];
  return { ...said, code: code ?? -1 };
}
