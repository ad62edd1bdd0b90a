import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Acknowledged } from './acknowledged.ts';
import { crashActs } from './crash-acts.ts';
import { program } from './programs.ts';
import type { Random } from './seeded.ts';
import { sized } from './size.ts';
import type { TempHome } from './temp-home.ts';

/** The order of a `crash-worker.ts`. */
export interface CrashOrder {
  readonly db: string;
  readonly graph: string;
  /** Where it notes what was acknowledged to it, and which points it passed. */
  readonly acks: string;
  readonly points: string;
  readonly who: string;
  readonly seed: number;
  readonly acts: number;
  /** Ends at this point after this many acts, and at any other with this chance in a hundred. */
  readonly dieAt: string;
  readonly armAfter: number;
  readonly diePercent: number;
  /** The directory in which it copies the home the first time that it passes a point, and each act's commit. */
  readonly copies?: string;
}

export interface CrashRound {
  readonly home: TempHome;
  /** The file in which every process notes the points that it passed and where it died. */
  readonly points: string;
  readonly random: Random;
  /** Where each worker is to die; 'outside': it is killed at a moment that has nothing to do with a point. */
  readonly deaths: readonly string[];
}

/** Every kind of act, and a new opening, occurs once in this many. */
const actsPerCycle = Object.keys(crashActs).length + 1;
/** What each worker does that is not killed before. */
const acts = sized(actsPerCycle + 6, actsPerCycle + 6, 40);
const recoveriesMax = 3;

/**
 * Workers on one home, each killed, and then recoveries, which are killed too, until one ends by itself or enough
 * have. Returns what was acknowledged to the workers.
 */
export async function crashRound(round: CrashRound): Promise<Acknowledged[]> {
  const { home, random, deaths } = round;
  const workers = deaths.map((death, i) => {
    const order = orderOf(round, `w${i}`, {
      acts,
      dieAt: death,
      armAfter: death.startsWith('open/') ? 0 : random.below(acts - actsPerCycle),
    });
    return run(order, death === 'outside' ? random.below(150) : undefined);
  });
  await Promise.all(workers);
  for (let i = 0; i < recoveriesMax; i += 1)
    if (!(await run(orderOf(round, `recovery${i}`, { diePercent: 30 })))) break;
  return deaths.flatMap((_, i) => acknowledgements(home.file(`w${i}.acks`)));
}

/** Runs one worker to its end by itself, so that those after it start quickly. */
export async function warmUp(round: Omit<CrashRound, 'deaths'>): Promise<void> {
  await run(orderOf(round, 'warm', { acts: actsPerCycle }));
}

/** A copy of a home as a kill at a point leaves it, and what was acknowledged before. */
export interface HomeAtPoint {
  readonly point: string;
  /** What it did there, at the point before a commit. */
  readonly act: string | undefined;
  readonly db: string;
  readonly graph: string;
  readonly acks: readonly Acknowledged[];
}

/** Runs one worker to its end by itself, which copies its home at each point that it passes. */
export async function homesAtPoints(round: Omit<CrashRound, 'deaths'>): Promise<HomeAtPoint[]> {
  const { home } = round;
  const copies = home.file('copies');
  mkdirSync(copies);
  await run(orderOf(round, 'copying', { acts: 2 * actsPerCycle, copies }));
  return readdirSync(copies).map((name) => {
    const copy = (file: string) => join(copies, name, basename(file));
    const [point = '', act] = name.split(' in ');
    return {
      point: point.replace(' ', '/'),
      act,
      db: copy(home.db),
      graph: copy(home.graph),
      acks: acknowledgements(copy(home.file('copying.acks'))),
    };
  });
}

function orderOf(
  { home, points, random }: Omit<CrashRound, 'deaths'>,
  who: string,
  more: Partial<CrashOrder>,
): CrashOrder {
  return {
    db: home.db,
    graph: home.graph,
    acks: home.file(`${who}.acks`),
    points,
    who,
    seed: random.below(2 ** 32),
    acts: 0,
    dieAt: '',
    armAfter: 0,
    diePercent: 0,
    ...more,
  };
}

/** Whether it was killed. @throws when it failed by itself, with what it wrote to stderr */
async function run(order: CrashOrder, killAfterMs?: number): Promise<boolean> {
  const child = spawn(process.execPath, [...program('crash-worker.ts'), JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const closed = once(child, 'close');
  if (killAfterMs !== undefined) await killSoon(child, closed, killAfterMs);
  await closed;
  if (child.signalCode === 'SIGKILL') return true;
  if (child.exitCode !== 0) throw new Error(`the worker of ${JSON.stringify(order)} failed: ${errors}`);
  return false;
}

async function killSoon(child: ChildProcess, closed: Promise<unknown>, ms: number): Promise<void> {
  if (child.stdout !== null) await Promise.race([once(child.stdout, 'data'), closed]);
  await setTimeout(ms);
  child.kill('SIGKILL');
}

/** A line that a kill cut off was not acknowledged. */
function acknowledgements(file: string): Acknowledged[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Acknowledged);
}
