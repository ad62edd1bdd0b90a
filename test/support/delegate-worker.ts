import { appendFileSync, writeSync } from 'node:fs';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import {
  approveBelow,
  type DelegateHome,
  delegateAll,
  delegateDeck,
  runMain,
  settleMain,
  untilReported,
} from './delegate-acts.ts';
import { watchJournal } from './journal-points.ts';
import { preciseNow, sentAtHeader } from './provider/server.ts';

/**
 * A process that works in several homes at once: `delegate-worker.ts ORDER`, where the order is a `DelegateOrder` as
 * JSON. It prints `ready` when it begins, and ends when all is done.
 */
export interface DelegateOrder {
  /** The address of the provider. */
  readonly url: string;
  readonly homes: readonly DelegateHome[];
  /** All work, that of the first or of the second of two processes, or to recover what others left. */
  readonly act: 'work' | 'first' | 'second' | 'recover';
  /** Where every point that it passes is listed, after the act. */
  readonly points?: string | undefined;
  /** Kills itself when it passes the point for the nth time, from 1. */
  readonly dieAt?: { readonly point: string; readonly nth: number } | undefined;
}

const { url, homes, act, points, dieAt } = JSON.parse(process.argv[2] ?? '') as DelegateOrder;

const send = globalThis.fetch;
globalThis.fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set(sentAtHeader, String(preciseNow()));
  return await send(input, { ...init, headers });
};

const passed = new Map<string, number>();
const pass = (point: string) => {
  const nth = (passed.get(point) ?? 0) + 1;
  passed.set(point, nth);
  if (points !== undefined) appendFileSync(points, `${act} ${point}\n`);
  if (dieAt?.point === point && dieAt.nth === nth) process.kill(process.pid, 'SIGKILL');
};

async function work(home: DelegateHome): Promise<void> {
  await using deck = await delegateDeck(home, url);
  const here = { deck, home };
  if (act === 'recover') {
    const report = await deck.recover();
    writeSync(1, `${JSON.stringify({ home: home.id, scene: home.scene, report })}\n`);
    const main = home.scene === 'waits' ? await deck.find('main') : undefined;
    if (main !== undefined) await settleMain(deck, main);
    return;
  }
  if (home.scene === 'program') await delegateAll(here);
  else if (home.scene === 'call') await runMain(here);
  else if (home.scene === 'waits') {
    if (act !== 'second') await runMain(here);
    else await approveBelow(deck, await deck.session('main'));
  } else if (home.scene === 'elsewhere')
    await Promise.all([act !== 'second' && runMain(here), act !== 'first' && delegateAll(here)]);
  else if (act !== 'second') {
    await runMain(here);
    await untilReported(here);
  }
}

for (const [i, { graph }] of homes.entries())
  watchJournal(graph, { passed: pass, cut: (bytes) => (i % 2 === 0 ? bytes : Math.ceil(bytes / 3)) });
onCrashPoint(pass);
writeSync(1, 'ready\n');
await Promise.all(homes.map(work));
