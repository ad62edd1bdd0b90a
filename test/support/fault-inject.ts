import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FaultPlace } from './fault-acts.ts';
import type { Ended } from './fault-sweep.ts';
import { program } from './programs.ts';

/**
 * How a call of the store goes wrong. `SHORT` and `TORN` take half of a write; then the disk is full, or the process
 * gone.
 */
export type FaultKind = 'SIGKILL' | 'EIO' | 'ENOSPC' | 'SHORT' | 'TORN';

/** Runs a `fault-worker.ts` with `fault-preload.ts`: one call goes wrong, or all are noted in a log. */
export async function runInjected(
  workload: string,
  place: FaultPlace,
  how: { readonly point: string } | { readonly log: string },
): Promise<Ended> {
  const child = spawn(
    process.execPath,
    [
      ...['--import', join(import.meta.dirname, 'fault-preload.ts'), ...program('fault-worker.ts')],
      ...[dirname(place.dir), workload],
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
      env: {
        ...process.env,
        ...('log' in how ? { FAULT_LOG: how.log } : { FAULT_POINT: how.point }),
      },
    },
  );
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, ...said };
}

/** The calls that were noted, in order. */
export function notedCalls(log: string): string[] {
  if (!existsSync(log)) return [];
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as string);
}
