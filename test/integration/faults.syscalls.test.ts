import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type FaultPlace, workloads } from '../support/fault-acts.ts';
import { draftsLeft } from '../support/fault-check.ts';
import { inLanes, judge, prepareSweep, type Sweep, saidIn } from '../support/fault-sweep.ts';
import { program } from '../support/programs.ts';
import { sized } from '../support/size.ts';
import { type Call, type Injection, skipsTracing, type Traced, trace } from '../support/strace.ts';
import { chosen, draftOf, followed, hitOf, pointsOf, withLogs } from '../support/syscall-points.ts';
import { tempDir } from '../support/temp-dir.ts';

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
      const points = chosen(pointsOf(await callsOf(sweep)), { push: 2, full: 4 });
      expect(points.length).toBeGreaterThan(sized(1, 3, 10));
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

async function traced({ name, workload }: Sweep, place: FaultPlace, inject?: Injection): Promise<Traced> {
  const { db, graph, copy, marker, dir } = place;
  const databases = [
    db,
    ...[copy, `${db}.schema-${workload.older}`].flatMap((path) => [path, draftOf(path)]),
  ];
  const paths = [...databases.flatMap(withLogs), graph, marker, dir, dirname(dir), dirname(copy)];
  const log = join(dirname(dir), 'strace.log');
  return await trace([...program('fault-worker.ts'), dirname(dir), name], {
    paths,
    syscalls: followed,
    log,
    ...(inject !== undefined && { inject }),
  });
}

async function tryPoint(sweep: Sweep, place: FaultPlace, point: Injection): Promise<string[]> {
  const run = await traced(sweep, place, point);
  const { syscall, ordinal, kind } = point;
  const hit = hitOf(run.calls, point);
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
