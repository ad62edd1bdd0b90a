import { readFileSync } from 'node:fs';
import { runPoints } from '@tapedeck/runtime/crash-point';
import { expect, test } from 'vitest';
import { inTwoLanes } from '../support/fault-sweep.ts';
import { startProvider } from '../support/provider.ts';
import { type Death, effectsOf, faultsAfterRun, nextAnswer, runWorker } from '../support/run-crash.ts';
import { seeded } from '../support/seeded.ts';
import { soak } from '../support/soak.ts';
import { tempHome } from '../support/temp-home.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261122);

/** Deaths at each point that a whole run passed, one for each name, and every one around a call; all of them in a soak. */
function deathsAmong(passed: readonly string[]): Death[] {
  const random = seeded(seed);
  const names = [...new Set(passed)];
  const timesOf = (name: string) => passed.filter((point) => point === name).length;
  const every = (name: string) =>
    Array.from({ length: timesOf(name) }, (_, i) => ({ point: name, nth: i + 1 }));
  if (soak) return names.flatMap(every);
  const around = ['call/ran', 'answer/recorded'];
  return [
    ...names
      .filter((name) => !around.includes(name))
      .map((name) => ({ point: name, nth: 1 + random.below(timesOf(name)) })),
    ...around.flatMap(every),
  ];
}

test('a run that is killed anywhere is gone on with: no request is refused, no effect doubled, nothing told is lost (R10, G70)', {
  timeout: soak ? 3_600_000 : 900_000,
}, async () => {
  await using provider = await startProvider(nextAnswer);
  const common = { url: provider.url };
  const passed = await (async () => {
    using home = tempHome();
    const { lines } = await runWorker(home, { ...common, points: home.file('points') });
    expect(faultsAfterRun(home, lines)).toEqual([]);
    expect(effectsOf(home)).toEqual(['w1', 'r1', 'p1', 'w2', 'w3', 'r2', 'p2', 'w4', 'f1', 'w6']);
    return readFileSync(home.file('points'), 'utf8').split('\n').slice(0, -1);
  })();
  expect(runPoints.filter((point) => !passed.includes(point) && point !== 'batch/waiting')).toEqual([]);
  // On a store that answers later the order of things is another one: a few deaths show that it holds there too.
  const isLater = process.env.TAPEDECK_STORE === 'later';
  const deaths = deathsAmong(passed).filter((_, i) => !isLater || soak || i % 5 === seed % 5);
  const died: Death[] = [];
  const repeated = new Set<string>();
  const faults = await inTwoLanes(deaths, async (dieAt) => {
    using home = tempHome();
    const killed = await runWorker(home, { ...common, dieAt });
    if (killed.killed) died.push(dieAt);
    const after = await runWorker(home, common);
    const effects = effectsOf(home);
    for (const id of effects) if (effects.indexOf(id) !== effects.lastIndexOf(id)) repeated.add(id);
    const found = faultsAfterRun(home, [...killed.lines, ...after.lines]);
    return found.map((fault) => `killed at ${dieAt.point} for time ${dieAt.nth}: ${fault}`);
  });
  expect(faults).toEqual([]);
  expect(provider.refusals).toEqual([]);
  expect(died.length).toBeGreaterThanOrEqual(isLater ? 8 : 40);
  // How often live answers are saved depends on the time that they take: the last of these may not come.
  const missed = deaths.filter((death) => !died.includes(death)).map(({ point }) => point);
  expect(missed.filter((point) => !/^(?:stream|commit)\//.test(point))).toEqual([]);
  // What is safe to repeat was, where nobody knew what it had done.
  if (!isLater) expect([...repeated].sort()).toEqual(['r1', 'r2']);
});
