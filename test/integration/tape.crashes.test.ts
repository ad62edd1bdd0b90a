import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { crashPoints } from '@tapedeck/tape/crash-point';
import { expect, test } from 'vitest';
import { crashRound, type HomeAtPoint, homesAtPoints, warmUp } from '../support/crash-round.ts';
import { oneOfEach, spread } from '../support/fault-sweep.ts';
import { graphPrefix } from '../support/graph-agrees.ts';
import { journalPoints } from '../support/journal-points.ts';
import { rawDb } from '../support/raw-db.ts';
import { faultsAfterRecovery } from '../support/recovered.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { memoryHome } from '../support/temp-home.ts';

/** Rounds that are done, and how many more at most until a process has died at every point that is wanted. */
const [least, most] = sized([1, 5], [4, 24], [1_000, 1_000]);
const seed = Number(process.env.TAPEDECK_SEED ?? 20261121);
// tape.bundle-crashes.test.ts stops imports of bundles.
const points: readonly string[] = [...crashPoints, ...journalPoints].filter(
  (point) => !point.startsWith('bundle/'),
);

/**
 * Where processes die in any case, since each is a process of its own: on a push at some points, in full at one of each kind
 * of act. Copies that are taken at every point are recovered at each size.
 */
const deadly: readonly string[] = sized(
  spread(points, 8),
  oneOfEach(points, (point) => point.split('/')[0] ?? ''),
  points,
);

const linesOf = (log: string): string[] => readFileSync(log, 'utf8').split('\n');

/**
 * Where a round's workers die: the points at which the fewest died so far, or, every fifth round, at a moment that has
 * nothing to do with a point.
 */
function deathsOf(round: number, log: readonly string[]): string[] {
  const workers = round % 10 === 9 ? 6 : sized(8, 4, 2);
  if (round % 5 === 4) return Array.from({ length: workers }, () => 'outside');
  return deadly
    .map((point) => ({ point, deaths: log.filter((line) => line === `died ${point}`).length }))
    .sort((a, b) => a.deaths - b.deaths)
    .slice(0, workers)
    .map(({ point }) => point);
}

/** Of the copies before the commits of one act, the first and the last; and all others. */
function atEnds(homes: readonly HomeAtPoint[]): HomeAtPoint[] {
  const nthOf = ({ act = '' }: HomeAtPoint) => Number(/\d*$/.exec(act)?.[0]);
  const byAct = Map.groupBy(homes, ({ act, point }) => act?.replace(/ \d+$/, '') ?? point);
  return [...byAct.values()].flatMap((of) =>
    of.toSorted((a, b) => nthOf(a) - nthOf(b)).filter((_, i) => i === 0 || i === of.length - 1),
  );
}

const timeout = sized(900_000, 900_000, 6 * 3_600_000);

test('what a process has written when it passes any point is whole once it is recovered, and has what was acknowledged', {
  timeout,
}, async () => {
  using home = memoryHome();
  const homes = await homesAtPoints({ home, points: home.file('points'), random: seeded(seed) });
  expect([...new Set(homes.map(({ point }) => point))].sort()).toEqual(points.toSorted());
  expect(homes.filter(({ act }) => act !== undefined).length).toBeGreaterThan(10);
  // The first commit of a home makes its tables.
  const before = homes.filter(({ act }) => act !== undefined && !act.startsWith('open '));
  for (const { act, db, graph } of before) {
    using raw = rawDb(db);
    // Its recovery would set a line aside that is not in the database.
    const text = existsSync(graph) ? readFileSync(graph, 'utf8') : '';
    expect({ act, ahead: graphPrefix(text, raw) }).toEqual({ act, ahead: [] });
  }
  for (const { point, act, acks, ...copy } of sized(atEnds(homes), atEnds(homes), homes))
    expect({ point, act, faults: faultsAfterRecovery(copy, acks) }).toEqual({ point, act, faults: [] });
  expect(Math.max(...homes.map(({ acks }) => acks.length))).toBeGreaterThan(15);
});

test('a kill of any process at any point loses and doubles no acknowledged entry, and leaves no half-written act', {
  timeout,
}, async () => {
  using shared = tempDir();
  const log = shared.file('points');
  writeFileSync(log, '');
  {
    using home = memoryHome();
    await warmUp({ home, points: log, random: seeded(seed) });
  }
  const never = (what: string) => {
    const lines = linesOf(log);
    return deadly.filter((point) => !lines.includes(`${what} ${point}`));
  };
  let acknowledged = 0;
  let round = 0;
  for (; round < least || (round < most && never('died').length > 0); round += 1) {
    using home = memoryHome();
    const random = seeded(seed + round);
    const deaths = deathsOf(round, linesOf(log));
    const acks = await crashRound({ home, points: log, random, deaths });
    acknowledged += acks.length;
    const faults = faultsAfterRecovery(home, acks);
    expect(faults, `round ${round} of TAPEDECK_SEED=${seed}, deaths: ${deaths.join(', ')}`).toEqual([]);
  }
  expect(never('passed'), 'points that no process passed').toEqual([]);
  expect(never('died'), 'points at which no process was killed').toEqual([]);
  expect(acknowledged).toBeGreaterThan(round * 20);
});
