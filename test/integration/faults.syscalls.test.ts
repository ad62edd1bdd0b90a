import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type FaultPlace, workloads } from '../support/fault-acts.ts';
import { draftsLeft } from '../support/fault-check.ts';
import {
  inLanes,
  judge,
  oneOfEach,
  prepareSweep,
  type Sweep,
  saidIn,
  spread,
} from '../support/fault-sweep.ts';
import { sized } from '../support/size.ts';
import { type Call, type Injection, skipsTracing, type Traced, trace } from '../support/strace.ts';
import { tempDir } from '../support/temp-dir.ts';

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
/** The acts that a full disk can stop. */
const grows = ['write', 'pwrite64', 'ftruncate', 'fallocate', 'openat', 'mkdir', 'mkdirat', 'link', 'linkat'];
const followed = [...writes, ...reads, 'access', 'faccessat', 'faccessat2'];
const worker = 'fault-worker.ts';

/**
 * Every system call that a workload makes on the files of a home is in one run the last before SIGKILL, fails in one
 * with EIO and, where a full disk can stop it, in one with ENOSPC.
 */
describe.skipIf(skipsTracing('faults at system calls'))('a fault at any system call', () => {
  test.each(Object.keys(workloads))(
    'of %s loses no acknowledged entry and leaves no half-written act',
    async (name) => {
      using dir = tempDir();
      const sweep = await prepareSweep(name, dir.path);
      const all = pointsOf(await callsOf(sweep));
      // A share of one death and one failure of each call on each file, and in a soak all.
      const share = (most: number) => spread(oneOfEach(all, classOf), most);
      const points = sized(share(2), share(22), all);
      expect(points.length).toBeGreaterThan(sized(1, 10, 10));
      expect(await inLanes(2, points, (point, i) => tryPoint(sweep, sweep.begin(`${i}`), point))).toEqual([]);
    },
    1_200_000,
  );
});

/** The calls of a run without faults after it is ready. */
async function callsOf(sweep: Sweep): Promise<readonly Call[]> {
  const { calls, ...run } = await traced(sweep, sweep.begin('count'));
  expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
  expect(saidIn(run).filter(({ error }) => error !== undefined)).toEqual([]);
  const ready = calls.findIndex(({ text }) => text.includes('/marker"'));
  expect(ready).toBeGreaterThanOrEqual(0);
  return calls.slice(ready + 1);
}

async function traced({ name }: Sweep, place: FaultPlace, inject?: Injection): Promise<Traced> {
  const { db, graph, copy, marker, dir } = place;
  const copies = [copy, `${db}.schema-0`].flatMap((path) => [path, `${path}.000000000000.part`]);
  const databases = [db, ...copies].flatMap((path) =>
    ['', '-wal', '-shm', '-journal'].map((end) => path + end),
  );
  const paths = [...databases, graph, marker, dir, dirname(dir), dirname(copy)];
  const log = join(dirname(dir), 'strace.log');
  return await trace(worker, [dirname(dir), name], {
    paths,
    syscalls: followed,
    log,
    ...(inject !== undefined && { inject }),
  });
}

interface Point extends Injection {
  readonly file: string;
}

function pointsOf(calls: readonly Call[]): Point[] {
  return calls
    .filter(({ syscall }) => writes.includes(syscall) || reads.includes(syscall))
    .flatMap(({ syscall, ordinal, text }) =>
      kindsFor(syscall).map((kind) => ({ syscall, ordinal, kind, file: fileOf(text) })),
    );
}

function classOf({ syscall, file, kind }: Point): string {
  return `${syscall} ${file} ${kind === 'SIGKILL'}`;
}

/** The last part of the path that a call names, or that its descriptor has. */
function fileOf(text: string): string {
  const path = /"(\/[^"]+)"/.exec(text)?.[1] ?? /^\w+\(\d+<([^>]+)>/.exec(text)?.[1] ?? '';
  return path.slice(path.lastIndexOf('/') + 1);
}

function kindsFor(syscall: string): readonly Injection['kind'][] {
  if (reads.includes(syscall)) return ['EIO'];
  return grows.includes(syscall) ? ['SIGKILL', 'EIO', 'ENOSPC'] : ['SIGKILL', 'EIO'];
}

async function tryPoint(sweep: Sweep, place: FaultPlace, point: Injection): Promise<string[]> {
  const run = await traced(sweep, place, point);
  const { syscall, ordinal, kind } = point;
  const hit = run.calls.find((call) => call.syscall === syscall && call.ordinal === ordinal)?.text ?? '';
  const killed = kind === 'SIGKILL';
  // A failed sync leaves in doubt what is on disk; whole or not at all is what can be promised then.
  const found = await judge(sweep, place, { run, killed, undone: false });
  if (!killed) found.push(...afterFailure(run, place, { syscall, hit }));
  return found.map(
    (text) => `${kind} at ${syscall} ${ordinal}: ${text}\n    ${hit}\n    ${run.stdout.trim()}`,
  );
}

/** The outcomes that are forbidden when a call failed and the process continued. */
function* afterFailure(
  run: Traced,
  place: FaultPlace,
  { syscall, hit }: { syscall: string; hit: string },
): Generator<string> {
  if (!hit.includes('(INJECTED)')) yield 'the fault was not met';
  for (const { act, error } of saidIn(run))
    if (error !== undefined && hit.includes(place.graph))
      yield `${act} failed because of the graph file alone: ${JSON.stringify(error)}`;
  // A draft that cannot be removed stays.
  const stuck = syscall.startsWith('unlink') && hit.includes('.part');
  if (!stuck) for (const draft of draftsLeft(place)) yield `left: ${draft}`;
}
