import { type Lease, openTapeStore, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import type { Acknowledged } from '../acknowledged.ts';
import { type Clock, fixedClock } from '../clock.ts';
import { countedIds, countedSalts } from '../ids.ts';
import type { Random } from '../seeded.ts';
import { Crash } from './crash.ts';
import { SimulatedGraph } from './graph.ts';
import { LeaseBook } from './leases.ts';
import { Runtime } from './runtime.ts';

/** An act that the next process can repeat under the same keys after a crash. */
export type Request = (store: SqliteTapeStore) => readonly Acknowledged[];

/** Who acts where. */
export interface Scene {
  readonly world: World;
  readonly runtime: Runtime;
  readonly store: SqliteTapeStore;
  readonly session: string;
  readonly id: string;
  /** The runtime's lease on the session, if it believes that it has one. */
  readonly lease: Lease | undefined;
  readonly key: string;
}

/** One store file, one graph file, one clock, and the processes that work on them. */
export interface World extends Disposable {
  readonly random: Random;
  readonly clock: Clock;
  readonly graph: SimulatedGraph;
  readonly runtimes: readonly Runtime[];
  readonly leases: LeaseBook;
  readonly acks: Acknowledged[];
  /** Requests that a crash cut off: whether they were done is unknown. */
  readonly cutOff: Request[];
  readonly faults: string[];
  /** What happened, step by step. */
  readonly history: string[];
  /** A key that was not given before. */
  key(): string;
  /** Lets a process act, to its end or to its crash; says how it ended. */
  run(runtime: Runtime, act: () => void): string;
  /** Which process passes a crash point now. */
  passed(point: string): void;
}

/** Refusals that a correct store may answer with. */
const refusals = new Set([
  'TAPE_BUSY',
  'TAPE_FENCED',
  'TAPE_UNSETTLED',
  'TAPE_CONFLICT',
  'TAPE_ARCHIVED',
  'TAPE_BAD_POINT',
  'TAPE_BAD_ENTRY',
]);

export function createWorld(
  path: string,
  random: Random,
  meanwhile: (world: World, acting: Runtime) => void,
): World {
  const clock = fixedClock();
  const graph = new SimulatedGraph(random);
  const sources = { now: clock.now, newId: countedIds(), salt: countedSalts() };
  const open = () => openTapeStore(path, { journal: graph, durability: 'fast', ...sources });
  const acting: Runtime[] = [];
  let keys = 0;
  const world: World = {
    random,
    clock,
    graph,
    runtimes: Array.from({ length: 2 + random.below(3) }, (_, i) => new Runtime(`r${i}`, open)),
    leases: new LeaseBook(),
    acks: [],
    cutOff: [],
    faults: [],
    history: [],
    key: () => {
      keys += 1;
      return `k${keys}`;
    },
    run: (runtime, act) => {
      acting.push(runtime);
      try {
        act();
        return 'done';
      } catch (error) {
        if (error instanceof TapeError && refusals.has(error.code)) return error.code;
        if (!(error instanceof Crash)) throw error;
        runtime.stop();
        world.leases.unsure();
        return `crashed at ${error.message}`;
      } finally {
        acting.pop();
      }
    },
    passed: (point) => {
      const [outer, inner] = acting;
      (inner ?? outer)?.passed(point);
      // The lock is free now: another process may write in between.
      if (point === 'commit/after' && outer !== undefined && inner === undefined && random.chance(15))
        meanwhile(world, outer);
    },
    [Symbol.dispose]: () => {
      for (const runtime of world.runtimes) runtime.stop();
    },
  };
  return world;
}
