import { readFileSync } from 'node:fs';
import { runPoints } from '@tapedeck/runtime/testing';
import { expect, test } from 'vitest';
import { inLanes } from '../support/fault-sweep.ts';
import { startProvider } from '../support/provider.ts';
import { type Death, effectsOf, faultsAfterRun, nextAnswer, runWorker } from '../support/run-crash.ts';
import type { RunLine } from '../support/run-worker.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261122);

/**
 * Deaths at each point that a whole run passed; those of one list befall processes that work one after another in the
 * same home. On a push one at each of its own points, in one home, and right after the calls that are safe to repeat;
 *  in full one for each of
 * them and for every second other name, and every one around a call, each in its own home; in a soak all of them.
 */
function deathsAmong(passed: readonly string[], effects: readonly string[]): Death[][] {
  const random = seeded(seed);
  const names = [...new Set(passed)];
  const timesOf = (name: string) => passed.filter((point) => point === name).length;
  const every = (name: string) =>
    Array.from({ length: timesOf(name) }, (_, i) => ({ point: name, nth: i + 1 }));
  const oneOf = (name: string) => ({ point: name, nth: 1 + random.below(timesOf(name)) });
  const repeated = every('call/ran').filter((_, i) => effects[i]?.startsWith('r'));
  const around = ['call/ran', 'answer/recorded'];
  const own = (name: string) => (runPoints as readonly string[]).includes(name);
  const alone = (deaths: readonly Death[]) => deaths.map((death) => [death]);
  return sized(
    [
      names.filter((name) => own(name) && name !== 'call/ran').map((point) => ({ point, nth: 1 })),
      ...alone(repeated),
    ],
    alone([
      ...names.filter((name, i) => !around.includes(name) && (own(name) || i % 2 === 0)).map(oneOf),
      ...around.flatMap(every),
    ]),
    alone(names.flatMap(every)),
  );
}

test('a run killed at any point resumes: no request is refused, no effect repeated, no reported entry lost', {
  timeout: sized(900_000, 900_000, 3_600_000),
}, async () => {
  await using provider = await startProvider(nextAnswer);
  const common = { url: provider.url };
  const { passed, effects } = await (async () => {
    using home = tempHome();
    const { lines } = await runWorker(home, { ...common, points: home.file('points') });
    expect(faultsAfterRun(home, lines)).toEqual([]);
    const effects = effectsOf(home);
    expect(effects).toEqual(['w1', 'r1', 'p1', 'w2', 'w3', 'r2', 'p2', 'w4', 'f1', 'w6']);
    return { passed: readFileSync(home.file('points'), 'utf8').split('\n').slice(0, -1), effects };
  })();
  expect(runPoints.filter((point) => !passed.includes(point) && point !== 'batch/waiting')).toEqual([]);
  // On a store that answers later the order of things is another one: a few deaths show that it holds there too.
  const isLater = process.env.TAPEDECK_STORE === 'later';
  const few = isLater && sized(true, true, false);
  const chains = deathsAmong(passed, effects).filter((_, i) => !few || i % 5 === seed % 5);
  const died: Death[] = [];
  const repeated = new Set<string>();
  const runKilled = async (chain: readonly Death[]): Promise<string[]> => {
    using home = tempHome();
    const lines: RunLine[] = [];
    let done = 0;
    for (const dieAt of chain) {
      const ended = await runWorker(home, { ...common, dieAt });
      lines.push(...ended.lines);
      done += 1;
      if (!ended.killed) break;
      died.push(dieAt);
    }
    const after = await runWorker(home, common);
    const effects = effectsOf(home);
    for (const id of effects) if (effects.indexOf(id) !== effects.lastIndexOf(id)) repeated.add(id);
    const at = chain.slice(0, done).map(({ point, nth }) => `${point} for time ${nth}`);
    const found = faultsAfterRun(home, [...lines, ...after.lines]);
    const rest = chain.slice(done);
    return [
      ...found.map((fault) => `killed at ${at.join(', then ')}: ${fault}`),
      // A process that ended by itself left nothing to do for those after it.
      ...(rest.length > 0 ? await runKilled(rest) : []),
    ];
  };
  const faults = await inLanes(2, chains, runKilled);
  expect(faults).toEqual([]);
  expect(provider.refusals).toEqual([]);
  expect(died.length).toBeGreaterThanOrEqual(sized(12, isLater ? 6 : 30, 40));
  // How often live answers are saved depends on the time that they take: the last of these may not come.
  const missed = chains
    .flat()
    .filter((death) => !died.includes(death))
    .map(({ point }) => point);
  expect(missed.filter((point) => !/^(?:stream|commit)\//.test(point))).toEqual([]);
  // Calls that are safe to repeat were repeated, where their outcome was unknown.
  if (!isLater) expect([...repeated].sort()).toEqual(['r1', 'r2']);
});
