import { copyFileSync, existsSync, mkdirSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
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
  readonly homes: readonly DelegateHome[];
  /** All work, that of the first or of the second of two processes, or to recover what others left. */
  readonly act: 'work' | 'first' | 'second' | 'recover';
  /** Kills itself when it passes the point for the nth time, from 1. */
  readonly dieAt?: { readonly point: string; readonly nth: number } | undefined;
  /** Where it copies a home as a kill would leave it. It then works in one home after another. */
  readonly copies?: DelegateCopies | undefined;
}

export interface DelegateCopies {
  /** The directory in which each copy is a directory, 'NUMBER OF THE HOME, POINT'. */
  readonly dir: string;
  /** A copy is taken when it first passes one of these. */
  readonly points: readonly string[];
}

const { homes, act, dieAt, copies } = JSON.parse(process.argv[2] ?? '') as DelegateOrder;

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
  if (dieAt?.point === point && dieAt.nth === nth) process.kill(process.pid, 'SIGKILL');
  if (copies !== undefined) copyAt(point, copies);
};

let current = 0;

function copyAt(point: string, { dir, points }: DelegateCopies): void {
  const home = homes[current];
  if (home === undefined || passed.get(point) !== 1 || !points.includes(point)) return;
  const copy = join(dir, `${current} ${point.replace('/', ' ')}`);
  mkdirSync(copy, { mode: 0o700 });
  for (const file of [home.db, `${home.db}-wal`, home.graph, home.effects])
    if (existsSync(file)) copyFileSync(file, join(copy, basename(file)));
}

async function work(home: DelegateHome): Promise<void> {
  await using deck = await delegateDeck(home);
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
if (copies === undefined) await Promise.all(homes.map(work));
else
  for (const [i, home] of homes.entries()) {
    current = i;
    await work(home);
  }
