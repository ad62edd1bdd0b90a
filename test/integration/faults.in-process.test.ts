import { afterAll, describe, expect, test } from 'vitest';
import { workloads } from '../support/fault-acts.ts';
import { draftsLeft } from '../support/fault-check.ts';
import { type FaultKind, InjectedRuns, notedCalls } from '../support/fault-inject.ts';
import { inLanes, judge, prepareSweep, type Sweep, saidIn, spread } from '../support/fault-sweep.ts';
import { sized } from '../support/size.ts';
import { tracing } from '../support/strace.ts';
import { tempDir } from '../support/temp-dir.ts';

/**
 * Where system calls can be made to fail too, this need not be all: it stops between statements, and writes half a
 * line.
 */
const pointsEach =
  tracing === 'works' ? sized(1, 6, Number.POSITIVE_INFINITY) : sized(20, 60, Number.POSITIVE_INFINITY);

const halvesEach = sized(1, 4, Number.POSITIVE_INFINITY);

const runs = new InjectedRuns();
afterAll(() => runs[Symbol.dispose]());

describe('a fault at any statement or file call', () => {
  test.each(Object.keys(workloads))(
    'of %s loses no acknowledged entry, leaves no half-written act, and undoes what it refuses',
    async (name) => {
      using dir = tempDir();
      const sweep = await prepareSweep(name, dir.path);
      const log = dir.file('calls');
      const run = await runs.run(name, sweep.begin('count'), { log });
      expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
      expect(saidIn(run).filter(({ error }) => error !== undefined)).toEqual([]);
      const points = notedCalls(log).flatMap((call, i) =>
        kindsFor(call).map((kind) => ({ call, i: i + 1, kind })),
      );
      // Half a line is the rarest: most of these, and a share of the others.
      const [half, other] = [points.filter(isHalf), points.filter((point) => !isHalf(point))];
      const chosen = [...spread(half, halvesEach), ...spread(other, pointsEach)];
      expect(chosen.length).toBeGreaterThanOrEqual(sized(1, 6, 10));
      expect(await inLanes(2, chosen, (point, i) => tryPoint(sweep, `${i}`, point))).toEqual([]);
    },
    1_200_000,
  );
});

test('a redaction whose log cannot be emptied is done, and says so', async () => {
  using dir = tempDir();
  const sweep = await prepareSweep('redact', dir.path);
  const log = dir.file('calls');
  await runs.run('redact', sweep.begin('count'), { log });
  const at = notedCalls(log).indexOf('pragma wal_checkpoint(TRUNCATE)') + 1;
  expect(at).toBeGreaterThan(0);
  const place = sweep.begin('fault');
  const run = await runs.run('redact', place, { point: `${at}:EIO` });
  expect(saidIn(run).map(({ act, logEmptied }) => [act, logEmptied])).toEqual([
    ['alpha', false],
    ['beta', true],
    ['gamma', true],
    ['close', undefined],
  ]);
  expect(await judge(sweep, place, { run, killed: false, undone: true })).toEqual([]);
});

interface Point {
  readonly call: string;
  readonly i: number;
  readonly kind: FaultKind;
}

function isHalf({ kind }: Point): boolean {
  return kind === 'SHORT' || kind === 'TORN';
}

function kindsFor(call: string): readonly FaultKind[] {
  if (/^(?:get|all) /.test(call)) return ['EIO'];
  if (call.startsWith('writeSync ')) return ['SIGKILL', 'EIO', 'ENOSPC', 'SHORT', 'TORN'];
  return ['SIGKILL', 'EIO', 'ENOSPC'];
}

async function tryPoint(sweep: Sweep, dir: string, { call, i, kind }: Point): Promise<string[]> {
  const place = sweep.begin(dir);
  const run = await runs.run(sweep.name, place, { point: `${i}:${kind}` });
  const killed = kind === 'SIGKILL' || kind === 'TORN';
  const found = await judge(sweep, place, { run, killed, undone: true });
  if (!killed) {
    if (!call.startsWith('rmSync')) for (const draft of draftsLeft(place)) found.push(`left: ${draft}`);
    for (const { act, error } of saidIn(run))
      if (error !== undefined && call.endsWith(place.graph))
        found.push(`${act} failed because of the graph file alone: ${JSON.stringify(error)}`);
  }
  return found.map((text) => `${kind} at ${i}, ${call}: ${text}\n    ${run.stdout.trim()}`);
}
