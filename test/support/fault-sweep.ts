import { chmodSync, cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type FaultPlace, faultPlace, type Workload, workloads } from './fault-acts.ts';
import { type Expected, expectedOf, faultsAfter, type Said } from './fault-check.ts';

/** A workload that is to be done again and again, each time with another fault. */
export interface Sweep {
  readonly name: string;
  readonly workload: Workload;
  readonly expected: Expected;
  /** A copy of the home that the workload begins with. */
  begin(run: string): FaultPlace;
}

export async function prepareSweep(name: string, dir: string): Promise<Sweep> {
  const workload = workloads[name];
  if (workload === undefined) throw new Error(`there is no workload ${name}`);
  const template = join(dir, 'template');
  mkdirSync(join(template, 'copies'), { recursive: true });
  workload.prepare(faultPlace(template));
  const begin = (run: string) => copyHome(template, join(dir, run));
  return { name, workload, expected: await expectedOf(workload, begin('expected')), begin };
}

export function copyHome(template: string, to: string): FaultPlace {
  cpSync(template, to, { recursive: true });
  const place = faultPlace(to);
  if (existsSync(place.dir)) chmodSync(place.dir, 0o700); // The copy does not keep it.
  return place;
}

/** A worker's end. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function saidIn({ stdout }: Pick<Ended, 'stdout'>): Said[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Said);
}

/** The faults of a worker's end, and of the home that it left. */
export async function judge(
  { workload, expected }: Sweep,
  place: FaultPlace,
  { run, killed, undone }: { run: Ended; killed: boolean; undone: boolean },
): Promise<string[]> {
  const said = saidIn(run);
  const found: string[] = [];
  if (killed ? run.signal !== 'SIGKILL' : run.code !== 0)
    found.push(`ended with ${run.code ?? run.signal}: ${run.stderr}`);
  for (const { act, error } of said)
    if (error !== undefined && !isTyped(error))
      found.push(`${act} failed with an error without a type: ${JSON.stringify(error)}`);
  try {
    found.push(...(await faultsAfter(workload, place, { expected, said, undone })));
  } catch (error) {
    found.push(`afterwards: ${error instanceof Error ? error.stack : String(error)}`);
  }
  return found;
}

function isTyped({ name, code }: NonNullable<Said['error']>): boolean {
  return /^(?:Tape|Graph)Error$/.test(name) && /^(?:TAPE|GRAPH)_/.test(String(code));
}

/** At most this many of a list, spread evenly over all of it: the same ones every time. */
export function spread<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  return all.filter(
    (_, i) => Math.floor((i * most) / all.length) !== Math.floor(((i - 1) * most) / all.length),
  );
}

/** One of each class, from the beginning of one and the end of another: the same ones every time. */
export function oneOfEach<T>(all: readonly T[], classOf: (item: T) => string): T[] {
  return [...Map.groupBy(all, classOf).values()].flatMap((items, i) => {
    const item = items[Math.floor(((i * 0.618) % 1) * items.length)];
    return item === undefined ? [] : [item];
  });
}

/** Does something with each, some at a time, and collects what it finds. */
export async function inLanes<T>(
  lanes: number,
  items: Iterable<T>,
  act: (item: T, i: number) => Promise<readonly string[]>,
): Promise<string[]> {
  const found: string[] = [];
  const queue = Iterator.from(items).map((item, i) => [i, item] as const);
  const lane = async () => {
    for (const [i, item] of queue) found.push(...(await act(item, i)));
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return found;
}
