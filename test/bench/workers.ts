import { pgBoss } from '@tapedeck/runtime/pg-boss';
import type { TapeStore } from '@tapedeck/tape';
import { bossCrew, recordOf } from '../support/boss.ts';
import bundlePrograms from '../support/bundle-programs.ts';
import { serverPlace } from '../support/postgres.ts';
import { median } from './measure.ts';
import { type Bench, counted, type Row } from './topic.ts';

/** Children in workers, on a real server of this machine. */
export async function workers(bench: Bench): Promise<Row[]> {
  // From the sources, a worker would strip types while it works, and miss its heartbeats on a busy machine.
  await bundlePrograms();
  return [await dispatch(bench), await many(bench), await afterKill(bench)];
}

/** From the start of a run to the worker that takes it. */
async function dispatch(bench: Bench): Promise<Row> {
  await using place = await serverPlace();
  const engine = pgBoss(place.url);
  const worker = pgBoss(place.url, { concurrency: 1 });
  let taken = Promise.withResolvers<number>();
  await worker.work(async () => taken.resolve(performance.now()));
  const times: number[] = [];
  for (let i = 0; i < bench.size(50, 3); i += 1) {
    taken = Promise.withResolvers();
    const began = performance.now();
    await engine.start({ id: `run-${i}`, depth: 1 });
    times.push((await taken.promise) - began);
    // The worker has sent the next request meanwhile, and waits.
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
  await engine.stop();
  await worker.stop();
  return counted(median(times.slice(1)), 50, {
    work: 'start of a run to the worker that takes it',
    against: 'a budget of 50 ms',
    unit: 'ms',
    goal: { most: 1 },
  });
}

/** Many children of one parent, against a tenth of them: what a child costs must not grow with their number. */
async function many(bench: Bench): Promise<Row> {
  const [children, few] = [bench.size(1_000, 8), bench.size(100, 4)];
  // At first the workers compile what they run.
  const limit = await rateOf(few, ['first', 'lead']);
  return counted(await rateOf(children, ['lead']), limit, {
    work: `${children} children of four steps on 4 workers`,
    against: `${few} children`,
    unit: '/s',
    goal: { least: 0.8 },
  });
}

/** How many children a second four workers end, of the last of some leads. The workers run already. */
async function rateOf(children: number, leads: readonly string[]): Promise<number> {
  await using place = await serverPlace();
  await using store = await place.open();
  await using crew = await bossCrew(
    { url: place.url, store },
    { children, stepMs: 0, workers: 4, concurrency: 8 },
  );
  await crew.fill();
  let rate = 0;
  for (const name of leads) {
    const began = performance.now();
    const [outcome] = await (await crew.lead(name)).delegation;
    rate = (1000 * children) / (performance.now() - began);
    if (outcome?.status !== 'completed') throw new Error(`${name} is ${outcome?.status}`);
    await assertMerged(store, children, name);
  }
  return rate;
}

/** The worker that holds the parent is killed: until all is merged, what was left of the work included. */
async function afterKill(bench: Bench): Promise<Row> {
  const children = bench.size(20, 3);
  await using place = await serverPlace();
  await using store = await place.open();
  await using crew = await bossCrew({ url: place.url, store }, { children, stepMs: 250 });
  const lead = await crew.lead();
  await lead.busy(3);
  (await lead.holder()).signal('SIGKILL');
  const killed = performance.now();
  await lead.delegation;
  const ms = performance.now() - killed;
  await assertMerged(store, children);
  return counted(ms, 15_000, {
    work: 'kill of the worker that holds the parent, to all merged',
    against: '15 seconds',
    unit: 'ms',
    goal: { most: 1 },
  });
}

async function assertMerged(store: TapeStore, children: number, lead?: string): Promise<void> {
  const { results, merges, repeatedMerges } = await recordOf(store, lead);
  if (results !== children || merges !== children || repeatedMerges > 0)
    throw new Error(`of ${children} children ${results} have results and ${merges} are merged`);
}
