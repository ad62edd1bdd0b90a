import { delegationPoints, runPoints } from '@tapedeck/runtime/testing';
import { crashPoints } from '@tapedeck/tape/crash-point';
import { expect, test } from 'vitest';
import { recoverCopies } from '../support/delegate-copies.ts';
import {
  type DelegateDeath,
  type DelegateRound,
  type DelegateWork,
  delegateRound,
} from '../support/delegate-round.ts';
import { scenes } from '../support/delegate-scenes.ts';
import { type DelegateServer, startDelegateServer } from '../support/delegate-server.ts';
import { inLanes } from '../support/fault-sweep.ts';
import { journalPoints } from '../support/journal-points.ts';
import { type Random, seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261122);
// On a store that answers later the order of things is another one: a few kills show that it holds there too.
const isLater = process.env.TAPEDECK_STORE === 'later';
const isPush = sized(true, false, false);
const timeout = sized(900_000, 900_000, 6 * 3_600_000);

/** The points that processes pass here: of those that other tests cover too, an eighth of the near ones, and all in a soak. */
const passed: readonly string[] = [
  ...delegationPoints,
  ...runPoints,
  ...crashPoints,
  ...journalPoints,
].filter((point) => !/^(?:call\/approved|(?:alias|publish|redact|bundle)\/.*)$/.test(point));
const own = passed.filter((point) => (delegationPoints as readonly string[]).includes(point));
const near = passed.filter((point) => /^(?:fork|merge|inbox|run|answer|call)\//.test(point));
const points = sized(own, [...own, ...near.filter((_, i) => i % 8 === 0)], passed);

/** The points that a first process alone passes. */
const isFirst = (point: string) => /^(?:session|spawn)\/|^child\/started|^parent\/woken/.test(point);
const isRecovery = (point: string) => /^recover\/|^parent\/settled/.test(point);
/** Whether these are passed depends on how long things take. */
const isRare = (point: string) => /^(?:stream\/|inbox\/ownerless)/.test(point);

/** Each point is to get so many deaths. */
const least = sized(1, 1, 5);

/** Chooses where to die, so that every point gets its deaths in few rounds. */
class Deaths {
  readonly #random: Random;
  readonly #tries = new Map<string, number>();
  readonly #died = new Map<string, number>();
  #open: Set<string> = new Set();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Begins a round, in which each point that misses deaths is to get one. */
  beginRound(): void {
    this.#open = new Set(this.missed());
  }

  /** Where the fewest died so far; a point that was not reached in time, at its first pass. */
  next(isPassed: (point: string) => boolean): DelegateDeath | undefined {
    const count = (counts: ReadonlyMap<string, number>, point: string) => counts.get(point) ?? 0;
    const [point] = points
      .filter((one) => isPassed(one) && this.#open.has(one))
      .toSorted(
        (a, b) =>
          count(this.#died, a) - count(this.#died, b) || count(this.#tries, a) - count(this.#tries, b),
      );
    if (point === undefined) return undefined;
    this.#open.delete(point);
    const vain = count(this.#tries, point) - count(this.#died, point);
    this.#tries.set(point, count(this.#tries, point) + 1);
    return { point, nth: vain > 0 || isRecovery(point) ? 1 : 1 + this.#random.below(sized(1, 1, 6)) };
  }

  add(deaths: readonly DelegateDeath[]): void {
    for (const death of deaths)
      if ('point' in death) this.#died.set(death.point, (this.#died.get(death.point) ?? 0) + 1);
  }

  /** Where too few died. */
  missed(): string[] {
    return points.filter((point) => !isRare(point) && (this.#died.get(point) ?? 0) < least);
  }
}

/** Does rounds, some at a time, as long as there are any, and collects what is wrong. */
async function faultsOf(
  server: DelegateServer,
  rounds: Iterable<DelegateRound>,
  told: (deaths: readonly DelegateDeath[]) => void,
  lanes: number,
): Promise<string[]> {
  const faults = await inLanes(lanes, rounds, async (round) => {
    const { faults, deaths } = await delegateRound(server, round);
    told(deaths);
    return faults.map((fault) => `${round.id} of TAPEDECK_SEED=${seed}, ${JSON.stringify(deaths)}: ${fault}`);
  });
  return [...faults, ...server.refusals];
}

// In place of the processes that the full size kills: each of them would cost half a second.
test.runIf(isPush && !isLater)(
  'what processes have written when they pass any point loses no child once it is recovered, and reports none twice',
  { timeout },
  async () => {
    const { points: cut, faults } = await recoverCopies(['program', 'notice', 'waits'], points);
    expect(faults).toEqual([]);
    expect(points.filter((point) => !cut.includes(point))).toEqual([]);
  },
);

test.skipIf(isPush || isLater)(
  'a kill of any process at any point loses no child, and reports no child twice',
  { timeout },
  async () => {
    await using server = await startDelegateServer();
    const deaths = new Deaths(seeded(seed));
    /** A process with its death; none where no death is left. */
    const dying = (act: DelegateWork['act'], isPassed: (point: string) => boolean): DelegateWork[] => {
      const death = deaths.next(isPassed);
      return death === undefined ? [] : [{ act, death }];
    };
    const rounds = function* (): Generator<DelegateRound> {
      for (let i = 0; i < 60 * least && deaths.missed().length > 0; i += 1) {
        deaths.beginRound();
        const begun = dying(i % 4 === 2 ? 'work' : 'first', (point) => !isRecovery(point));
        // A second one dies at a point that a first one alone passes: a round less.
        const alsoFirst = dying('first', isFirst);
        const more = () => dying('second', (point) => !isRecovery(point) && !isFirst(point));
        const recovering = () => dying('recover', (point) => !isFirst(point));
        yield {
          id: `point${i}`,
          stages: [
            [
              ...(begun.length > 0 ? begun : [{ act: 'first' } as const]),
              ...(alsoFirst.length > 0 ? alsoFirst : more()),
              ...more(),
            ],
            ...Array.from({ length: 4 }, recovering).filter((stage) => stage.length > 0),
            i % 3 > 0 ? [{ act: 'recover' }] : [{ act: 'recover' }, { act: 'recover' }],
          ],
        };
      }
    };
    // One round after another wastes no death on a point that another round is about to reach.
    expect(await faultsOf(server, rounds(), (found) => deaths.add(found), 1)).toEqual([]);
    expect(deaths.missed()).toEqual([]);
  },
);

// On a push each named point is reached once, and no moment between them.
test.skipIf(isPush)(
  'a kill at any other moment does neither, while several processes take over from each other and recover',
  {
    timeout,
  },
  async () => {
    await using server = await startDelegateServer();
    const began = performance.now();
    const undisturbed = {
      id: 'undisturbed',
      stages: [[{ act: 'work' }], [{ act: 'recover' }]],
    } as const;
    expect(await faultsOf(server, [undisturbed], () => {}, 1)).toEqual([]);
    const tookMs = performance.now() - began;
    const random = seeded(seed);
    const within = (share: number): DelegateDeath => ({ afterMs: random.below(tookMs * share) });
    const [few, enough] = isLater ? [sized(1, 1, 20), 0] : [sized(1, 1, 70), sized(4, 4, 600)];
    let kills = 0;
    // A process that was quicker than its kill does not count: then more rounds follow.
    const rounds = function* (): Generator<DelegateRound> {
      for (let i = 0; i < few || (kills <= enough && i < 3 * few); i += 1)
        yield {
          id: `moment${i}`,
          stages: [
            [
              { act: 'first', death: within(0.6) },
              { act: 'second', death: within(0.6) },
            ],
            i % 2 === 0
              ? [{ act: 'recover', death: within(0.3) }]
              : [
                  { act: 'work', death: within(0.6) },
                  { act: 'recover', death: within(0.3) },
                ],
            [{ act: 'recover' }, { act: 'recover' }],
          ],
        };
    };
    // Each process ran in a home of each scene.
    const count = (deaths: readonly DelegateDeath[]) => {
      kills += scenes.length * deaths.length;
    };
    expect(await faultsOf(server, rounds(), count, 2)).toEqual([]);
    expect(kills).toBeGreaterThan(enough);
  },
);
