import { onCrashPoint } from '@tapedeck/tape/crash-point';
import { graphPrefix } from '../graph-agrees.ts';
import { facts, rawDb } from '../raw-db.ts';
import { seeded } from '../seeded.ts';
import { tempDir } from '../temp-dir.ts';
import { chooseAct } from './acts.ts';
import { faultsAfterHealing } from './heal.ts';
import type { Runtime } from './runtime.ts';
import { createWorld, type World } from './world.ts';

/** The outcome of a simulation; equal for equal seeds. */
export interface Simulated {
  readonly faults: readonly string[];
  readonly history: readonly string[];
  /** All tapes, entries and lineage rows, and the text of the graph file. */
  readonly facts: string;
  readonly graph: string;
}

const stepsMin = 40;
const stepsMore = 60;
const hourMs = 3_600_000;

/** Plays one history of several processes on one store, with faults, and then heals it. */
export function simulate(seed: number): Simulated {
  using dir = tempDir();
  const random = seeded(seed);
  const path = dir.file('tape.db');
  using world = createWorld(path, random, (during, acting) => {
    const runtime = random.of(during.runtimes);
    if (runtime !== acting && runtime.isUp) step(during, runtime, 'meanwhile ');
  });
  onCrashPoint(world.passed);
  try {
    world.runtimes[0]?.start();
    world.runtimes[0]?.store.sessions.open('main');
    using db = rawDb(path);
    const steps = stepsMin + random.below(stepsMore);
    for (let i = 0; i < steps && world.faults.length === 0; i += 1) {
      disturb(world);
      step(world, random.of(world.runtimes), '');
      world.faults.push(...graphPrefix(world.graph.text, db));
    }
    onCrashPoint(undefined);
    const { faults, history, graph } = world;
    faults.push(...faultsAfterHealing(world, db));
    return { faults, history, facts: facts(db), graph: graph.text };
  } catch (error) {
    const faults = [...world.faults, error instanceof Error ? (error.stack ?? '') : String(error)];
    return { faults, history: world.history, facts: '', graph: world.graph.text };
  } finally {
    onCrashPoint(undefined);
  }
}

/** One act of one process; one that is down starts first, and that is all it does then. */
function step(world: World, runtime: Runtime, when: string): void {
  if (runtime.isUp) {
    const { name, act } = chooseAct(world, runtime);
    const outcome = world.run(runtime, act);
    world.history.push(`${when}${runtime.name} ${name}: ${outcome}`);
    return;
  }
  // Opening drains inboxes, and takes sessions over for that.
  world.leases.unsure();
  const outcome = world.run(runtime, () => runtime.start());
  world.history.push(`${when}${runtime.name} starts: ${outcome}`);
}

/** Time passes or jumps; a process or the graph file is set to fail. */
function disturb({ random, clock, graph, runtimes, history }: World): void {
  if (random.chance(25)) clock.advance(random.below(20_000));
  if (random.chance(4)) {
    const ms = random.of([hourMs, -hourMs]);
    clock.advance(ms);
    history.push(`the clock jumps by ${ms} ms`);
  }
  if (random.chance(10)) random.of(runtimes).crashAfter(1 + random.below(25));
  if (random.chance(5)) {
    const fault = random.of(['short', 'full', 'torn'] as const);
    graph.fail(fault, 1 + random.below(3));
    history.push(`the graph file fails: ${fault}`);
  }
  if (random.chance(3)) random.of(runtimes).stop();
}
