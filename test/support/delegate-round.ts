import { join } from 'node:path';
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
import { lastText, scenes } from './delegate-scenes.ts';
import type { Asked, DelegateServer } from './delegate-server.ts';
import type { DelegateOrder } from './delegate-worker.ts';
import { startWorker } from './killed-worker.ts';
import { memoryHome, type TempHome } from './temp-home.ts';

/** Where a process dies, or how many milliseconds after it began. */
export type DelegateDeath = NonNullable<DelegateOrder['dieAt']> | { readonly afterMs: number };

/** A process that works in all homes of a round; one that does not die runs to its end. */
export interface DelegateWork {
  readonly act: DelegateOrder['act'];
  readonly death?: DelegateDeath;
  readonly copies?: DelegateOrder['copies'];
}

/** The processes in the same homes, one after another, and in each stage at once. */
export interface DelegateRound {
  /** Distinguishes its homes from those of other rounds. */
  readonly id: string;
  readonly stages: readonly (readonly DelegateWork[])[];
}

/** The outcome of a round. */
export interface RoundEnd {
  readonly faults: readonly string[];
  /** The deaths of processes, each of which worked in several homes. */
  readonly deaths: readonly DelegateDeath[];
}

/** Does a round in new homes, runs their parents again, and says what is wrong. */
export async function delegateRound(server: DelegateServer, round: DelegateRound): Promise<RoundEnd> {
  using stack = new DisposableStack();
  const homes = scenes.map((scene, i) =>
    delegateHome(stack.use(memoryHome()), { id: `${round.id}-${i}`, scene, url: server.url }),
  );
  const deaths: DelegateDeath[] = [];
  for (const stage of round.stages)
    await Promise.all(
      stage.map(async (work) => {
        const killed = await runWork(homes, work);
        if (killed && work.death !== undefined) deaths.push(work.death);
      }),
    );
  const faults: string[] = [];
  for (const home of homes) faults.push(...(await faultsInTheEnd(home, () => server.asked(home.id))));
  return { faults, deaths };
}

/** A home with a scene, in a new directory or in a copy of one. */
export function delegateHome(
  { path, db, graph }: Pick<TempHome, 'path' | 'db' | 'graph'>,
  more: Pick<DelegateHome, 'id' | 'scene' | 'url'>,
): DelegateHome {
  return { ...more, path, db, graph, effects: join(path, 'effects') };
}

/** Whether the process was killed. */
export async function runWork(
  homes: readonly DelegateHome[],
  { act, death, copies }: DelegateWork,
): Promise<boolean> {
  const order: DelegateOrder = {
    homes,
    act,
    copies,
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

/** What is wrong with a home that was recovered, and once its parent has run again. */
export async function faultsInTheEnd(home: DelegateHome, asked: () => readonly Asked[]): Promise<string[]> {
  const recovered = faultsOfDelegation(home, asked(), 'recovered').map((fault) => `recovered: ${fault}`);
  await continueText(home);
  return [...recovered, ...faultsOfDelegation(home, asked(), 'over')];
}

/** Settles the parent, repeats the delegations of a program, and sends the parent one more message. */
async function continueText(home: DelegateHome): Promise<void> {
  await using deck = await delegateDeck(home);
  const here = { deck, home };
  const main = await deck.session('main');
  if (home.scene === 'program') await settleMain(deck, main);
  else await runMain(here);
  if (home.scene === 'program' || home.scene === 'elsewhere') await delegateAll(here);
  if (home.scene === 'notice') await untilReported(here);
  await main.run(lastText);
  await main.idle();
}
