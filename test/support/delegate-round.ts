import { setTimeout as sleep } from 'node:timers/promises';
import {
  type DelegateHome,
  delegateAll,
  delegateDeck,
  runMain,
  settleMain,
  untilReported,
} from './delegate-acts.ts';
import { faultsOfDelegation } from './delegate-faults.ts';
import { lastText, type Scene, scenes } from './delegate-scenes.ts';
import type { DelegateServer } from './delegate-server.ts';
import type { DelegateOrder } from './delegate-worker.ts';
import { startWorker } from './killed-worker.ts';
import { tempHome } from './temp-home.ts';

/** Where a process dies, or how many milliseconds after it began. */
export type DelegateDeath = NonNullable<DelegateOrder['dieAt']> | { readonly afterMs: number };

/** A process that works in all homes of a round; one that does not die runs to its end. */
export interface DelegateWork {
  readonly act: DelegateOrder['act'];
  readonly death?: DelegateDeath;
}

/** The processes in the same homes, one after another, and in each stage at once. */
export interface DelegateRound {
  /** Distinguishes its homes from those of other rounds. */
  readonly id: string;
  readonly stages: readonly (readonly DelegateWork[])[];
  readonly scenes?: readonly Scene[];
}

/** The outcome of a round. */
export interface RoundEnd {
  readonly faults: readonly string[];
  /** The deaths of processes, each of which worked in several homes. */
  readonly deaths: readonly DelegateDeath[];
}

export interface RoundPlace {
  readonly server: DelegateServer;
  readonly points?: string;
}

/** Does a round in new homes, runs their parents again, and says what is wrong. */
export async function delegateRound(place: RoundPlace, round: DelegateRound): Promise<RoundEnd> {
  using stack = new DisposableStack();
  const homes = (round.scenes ?? scenes).map((scene, i): DelegateHome => {
    const { path, db, graph, file } = stack.use(tempHome());
    return { id: `${round.id}-${i}`, scene, path, db, graph, effects: file('effects') };
  });
  const deaths: DelegateDeath[] = [];
  for (const stage of round.stages)
    await Promise.all(
      stage.map(async (work) => {
        const killed = await runWork(place, homes, work);
        if (killed && work.death !== undefined) deaths.push(work.death);
      }),
    );
  const { server } = place;
  const faults: string[] = [];
  for (const home of homes) {
    faults.push(
      ...faultsOfDelegation(home, server.asked(home.id), 'recovered').map((fault) => `recovered: ${fault}`),
    );
    await continueText(home, server.url);
    faults.push(...faultsOfDelegation(home, server.asked(home.id), 'over'));
  }
  return { faults, deaths };
}

/** Whether the process was killed. */
async function runWork(
  { server, points }: RoundPlace,
  homes: readonly DelegateHome[],
  { act, death }: DelegateWork,
): Promise<boolean> {
  const order: DelegateOrder = {
    url: server.url,
    homes,
    act,
    points,
    ...(death !== undefined && 'point' in death && { dieAt: death }),
  };
  const worker = startWorker('delegate-worker.ts', order);
  if (death !== undefined && 'afterMs' in death) {
    await worker.begun;
    await Promise.race([sleep(death.afterMs), worker.ended]);
    worker.kill();
  }
  return (await worker.ended).killed;
}

/** Settles the parent, repeats the delegations of a program, and sends the parent one more message. */
async function continueText(home: DelegateHome, url: string): Promise<void> {
  await using deck = await delegateDeck(home, url);
  const here = { deck, home };
  const main = await deck.session('main');
  if (home.scene === 'program') await settleMain(deck, main);
  else await runMain(here);
  if (home.scene === 'program' || home.scene === 'elsewhere') await delegateAll(here);
  if (home.scene === 'notice') await untilReported(here);
  await main.run(lastText);
  await main.idle();
}
