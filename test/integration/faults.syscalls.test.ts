import { chmodSync, cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type FaultPlace, faultPlace, type Workload, workloads } from '../support/fault-acts.ts';
import { draftsLeft, type Expected, expectedOf, faultsAfter, type Said } from '../support/fault-check.ts';
import { soak } from '../support/soak.ts';
import { type Call, type Injection, spread, type Traced, trace, traceFault } from '../support/strace.ts';
import { tempDir } from '../support/temp-dir.ts';

/**
 * T4: every system call that a workload makes on the files of a home is once the last one before SIGKILL, fails once with EIO
 * and, where a full disk can stop it, with ENOSPC.
 */
const fault = traceFault();
if (fault !== undefined) console.warn(`the sweep of system calls is skipped: ${fault}`);

/** How many points of each workload are tried on every push; a soak tries all of them. */
const pointsPerWorkload = soak ? Number.POSITIVE_INFINITY : 17;

const writes = [
  ...[
    'write',
    'pwrite64',
    'ftruncate',
    'fallocate',
    'fsync',
    'fdatasync',
    'open',
    'openat',
    'mkdir',
    'mkdirat',
  ],
  ...['link', 'linkat', 'unlink', 'unlinkat', 'rename', 'renameat', 'renameat2', 'chmod', 'fchmod'],
];
const reads = ['pread64'];
const full = new Set(['write', 'pwrite64', 'ftruncate', 'fallocate', 'openat', 'mkdir', 'link', 'linkat']);
const seen = [...writes, ...reads, 'access', 'faccessat', 'faccessat2'];
const worker = join(import.meta.dirname, '../support/fault-worker.ts');

describe.skipIf(fault !== undefined && process.env.CI !== 'true')('a fault at any system call (T4)', () => {
  beforeAll(() => {
    expect(fault, 'a CI has strace: .ci/run installs it').toBeUndefined();
  });

  test.each(Object.entries(workloads))(
    'of %s loses nothing acknowledged and leaves nothing half',
    async (name, workload) => {
      using dir = tempDir();
      const sweep = await prepareSweep(name, workload, dir.file);
      const points = spread(pointsOf(sweep.calls), pointsPerWorkload);
      expect(points.length).toBeGreaterThan(10);
      const queue = points.entries();
      const found: string[] = [];
      const lane = async () => {
        for (const [i, point] of queue)
          for (const text of await tryPoint(sweep, dir.file(`${i}`), point))
            found.push(`${point.kind} at ${point.syscall} ${point.ordinal}: ${text}`);
      };
      await Promise.all([lane(), lane()]);
      expect(found).toEqual([]);
    },
    600_000,
  );
});

interface Sweep {
  readonly name: string;
  readonly workload: Workload;
  readonly expected: Expected;
  /** The home that each run begins with a copy of. */
  readonly template: string;
  /** What a run without faults does once it is ready. */
  readonly calls: readonly Call[];
}

async function prepareSweep(
  name: string,
  workload: Workload,
  file: (name: string) => string,
): Promise<Sweep> {
  const template = file('template');
  mkdirSync(join(template, 'copies'), { recursive: true });
  workload.prepare(faultPlace(template));
  const expected = await expectedOf(workload, copyHome(template, file('expected')));
  const { calls, ...run } = await traced(name, copyHome(template, file('count')), file('count.log'));
  expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
  expect(saidIn(run).filter(({ error }) => error !== undefined)).toEqual([]);
  const ready = calls.findIndex(({ text }) => text.includes('/marker"'));
  expect(ready).toBeGreaterThanOrEqual(0);
  return { name, workload, expected, template, calls: calls.slice(ready + 1) };
}

function copyHome(template: string, to: string): FaultPlace {
  cpSync(template, to, { recursive: true });
  const place = faultPlace(to);
  if (existsSync(place.dir)) chmodSync(place.dir, 0o700); // The copy does not keep it.
  return place;
}

async function traced(name: string, place: FaultPlace, log: string, inject?: Injection): Promise<Traced> {
  const { db, graph, copy, marker } = place;
  const draft = `${copy}.000000000000.part`;
  const databases = [db, draft, copy].flatMap((path) =>
    ['', '-wal', '-shm', '-journal'].map((end) => path + end),
  );
  const paths = [...databases, graph, marker, place.dir, join(copy, '..')];
  return await trace(worker, [join(marker, '..'), name], {
    paths,
    syscalls: seen,
    log,
    ...(inject !== undefined && { inject }),
  });
}

function saidIn({ stdout }: Pick<Traced, 'stdout'>): Said[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Said);
}

function pointsOf(calls: readonly Call[]): Injection[] {
  const kinds = (syscall: string): Injection['kind'][] =>
    reads.includes(syscall)
      ? ['EIO']
      : ['SIGKILL', 'EIO', ...(full.has(syscall) ? (['ENOSPC'] as const) : [])];
  return calls
    .filter(({ syscall }) => writes.includes(syscall) || reads.includes(syscall))
    .flatMap(({ syscall, ordinal }) => kinds(syscall).map((kind) => ({ syscall, ordinal, kind })));
}

async function tryPoint(
  { name, workload, expected, template }: Sweep,
  dir: string,
  point: Injection,
): Promise<string[]> {
  const place = copyHome(template, dir);
  const run = await traced(name, place, `${dir}.log`, point);
  const said = saidIn(run);
  const hit = run.calls.find(
    ({ syscall, ordinal }) => syscall === point.syscall && ordinal === point.ordinal,
  );
  const found: string[] = [];
  if (hit === undefined) found.push('the call was not made');
  if (point.kind === 'SIGKILL') {
    if (run.signal !== 'SIGKILL') found.push(`not killed: ${run.code} ${run.stderr}`);
  } else {
    if (hit?.text.includes('(INJECTED)') === false) found.push(`not injected: ${hit.text}`);
    if (run.code !== 0) found.push(`ended with ${run.code ?? run.signal}: ${run.stderr}`);
    for (const { act, error } of said) {
      if (error === undefined) continue;
      if (!/^(?:Tape|Graph)Error$/.test(error.name) || !/^(?:TAPE|GRAPH)_/.test(String(error.code)))
        found.push(`${act} failed with an error without a type: ${JSON.stringify(error)}`);
      if (hit?.text.includes(place.graph) === true)
        found.push(`${act} failed because of the graph file alone: ${JSON.stringify(error)}`);
    }
    // A draft that cannot be removed stays.
    if (hit?.text.includes('.part') === false || point.syscall !== 'unlink')
      found.push(...draftsLeft(place).map((draft) => `left: ${draft}`));
  }
  try {
    found.push(...(await faultsAfter(workload, place, { expected, said })));
  } catch (error) {
    found.push(`afterwards: ${error instanceof Error ? error.stack : String(error)}`);
  }
  return found.map((text) => `${text}\n    hit: ${hit?.text}\n    said: ${run.stdout.trim()}`);
}
