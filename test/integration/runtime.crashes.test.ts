import { readFileSync } from 'node:fs';
import { runPoints } from '@tapedeck/runtime/testing';
import { expect, test } from 'vitest';
import { inLanes } from '../support/fault-sweep.ts';
import { startProvider } from '../support/provider.ts';
import { type Death, effectsOf, faultsAfterRun, nextAnswer, runWorker } from '../support/run-crash.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { dirInside, tempDir } from '../support/temp-dir.ts';
import { homeIn, memoryHome, type TempHome } from '../support/temp-home.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261122);

// On a store that answers later the order of things is another one: a few deaths show that it holds there too.
const isLater = process.env.TAPEDECK_STORE === 'later';
const isPush = sized(true, false, false);
const timeout = sized(900_000, 900_000, 3_600_000);

/** The points that a whole run passed, and the calls that it ran. */
interface Whole {
  readonly passed: readonly string[];
  readonly effects: readonly string[];
}

/**
 * Deaths at the points that a whole run passed. On a push one at each of its own points, and right after the calls that
 * are safe to repeat; in full one for each of them and for every eighth other name, and right after the last call; in a soak all
 * of them.
 */
function deathsAmong({ passed, effects }: Whole): Death[] {
  const random = seeded(seed);
  const names = [...new Set(passed)];
  const timesOf = (name: string) => passed.filter((point) => point === name).length;
  const every = (name: string) =>
    Array.from({ length: timesOf(name) }, (_, i) => ({ point: name, nth: i + 1 }));
  const oneOf = (name: string) => ({ point: name, nth: 1 + random.below(timesOf(name)) });
  const repeated = every('call/ran').filter((_, i) => effects[i]?.startsWith('r'));
  const around = ['call/ran', 'answer/recorded'];
  const own = (name: string) => (runPoints as readonly string[]).includes(name);
  return sized(
    [
      ...names.filter((name) => own(name) && name !== 'call/ran').map((point) => ({ point, nth: 1 })),
      ...repeated,
    ],
    [
      ...names.filter((name, i) => !around.includes(name) && (own(name) || i % 8 === 0)).map(oneOf),
      ...repeated,
      ...every('call/ran').slice(-1),
      oneOf('answer/recorded'),
    ],
    names.flatMap(every),
  );
}

/** Does a whole run, which copies its home into a directory whenever it passes a point of its own. */
async function wholeRun(url: string, copies?: string): Promise<Whole> {
  using home = memoryHome();
  await runWorker([home], {
    url,
    points: home.file('points'),
    ...(copies !== undefined && { copies: { dir: copies, points: runPoints } }),
  });
  expect(faultsAfterRun(home)).toEqual([]);
  const effects = effectsOf(home);
  expect(effects).toEqual(['w1', 'r1', 'p1', 'w2', 'w3', 'r2', 'p2', 'w4', 'f1', 'w6']);
  const passed = readFileSync(home.file('points'), 'utf8').split('\n').slice(0, -1);
  expect(runPoints.filter((point) => !passed.includes(point) && point !== 'batch/waiting')).toEqual([]);
  return { passed, effects };
}

/** What is wrong with homes that were completed after a death each. */
function faultsOf(homes: readonly TempHome[], deaths: readonly Death[]): string[] {
  return homes.flatMap((home, i) =>
    faultsAfterRun(home).map((fault) => `after ${JSON.stringify(deaths[i])}: ${fault}`),
  );
}

/** The calls that were run more than once in a home. */
function repeatedIn(homes: readonly TempHome[]): string[] {
  const repeated = homes.flatMap((home) => effectsOf(home).filter((id, i, all) => all.indexOf(id) !== i));
  return [...new Set(repeated)].sort();
}

// In place of the processes that the full size kills: each of them would cost half a second.
test.runIf(isPush)(
  'what a run has written when it passes any point resumes: no request is refused, no effect repeated, nothing is lost',
  { timeout },
  async () => {
    await using provider = await startProvider(nextAnswer);
    using copies = tempDir();
    const deaths = deathsAmong(await wholeRun(provider.url, copies.path));
    const homes = deaths.map(({ point, nth }) =>
      homeIn(dirInside(copies, `${point.replace('/', ' ')} ${nth}`)),
    );
    await runWorker(homes, { url: provider.url });
    expect(faultsOf(homes, deaths)).toEqual([]);
    expect(provider.refusals).toEqual([]);
    expect(homes.length).toBeGreaterThanOrEqual(12);
    expect(repeatedIn(homes)).toEqual(['r1', 'r2']);
  },
);

test.skipIf(isPush)(
  'a run killed at any point resumes: no request is refused, no effect repeated, no reported entry lost',
  { timeout },
  async () => {
    await using provider = await startProvider(nextAnswer);
    const { url } = provider;
    const whole = await wholeRun(url);
    const few = isLater && sized(true, true, false);
    const deaths = deathsAmong(whole).filter((_, i) => !few || i % 3 === seed % 3);
    const died: Death[] = [];
    using stack = new DisposableStack();
    const homes = deaths.map(() => stack.use(memoryHome()));
    await inLanes(2, homes.entries(), async ([i, home]) => {
      const dieAt = deaths[i];
      if (dieAt !== undefined && (await runWorker([home], { url, dieAt }))) died.push(dieAt);
      return [];
    });
    // A process completes many of them, in a fraction of the time that one for each would take.
    for (let i = 0; i < homes.length; i += 100) await runWorker(homes.slice(i, i + 100), { url });
    expect(faultsOf(homes, deaths)).toEqual([]);
    expect(provider.refusals).toEqual([]);
    expect(died.length).toBeGreaterThanOrEqual(isLater ? sized(6, 6, 40) : sized(20, 15, 40));
    // How often live answers are saved depends on the time that they take: the last of these may not come.
    const missed = deaths.filter((death) => !died.includes(death)).map(({ point }) => point);
    expect(missed.filter((point) => !/^(?:stream|commit)\//.test(point))).toEqual([]);
    // Calls that are safe to repeat were repeated, where their outcome was unknown.
    if (!isLater) expect(repeatedIn(homes)).toEqual(['r1', 'r2']);
  },
);
