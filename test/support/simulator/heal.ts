import type { SqliteTapeStore } from '@tapedeck/tape';
import { lostOrDoubled } from '../acknowledged.ts';
import { graphDifferences } from '../graph-agrees.ts';
import { halves } from '../halves.ts';
import { facts, type RawDb } from '../raw-db.ts';
import { refusal } from '../store.ts';
import { results } from './appends.ts';
import { attempt } from './requests.ts';
import type { Runtime } from './runtime.ts';
import type { World } from './world.ts';

/** Rounds of healing after which all must be well. */
const roundsMax = 3;

/**
 * Faults stop, time passes, every process starts anew. Returns what is wrong then: after these few rounds every
 * request must be done, every session must be free, and nothing that was acknowledged may be lost.
 */
export function faultsAfterHealing(world: World, db: RawDb): string[] {
  world.graph.heal();
  const [{ last } = { last: null }] = db.all<{ last: number | null }>(
    'SELECT max(expires_at) AS last FROM lease',
  );
  world.clock.advance(Math.max(0, (last ?? 0) - world.clock.now()) + 1);
  for (const runtime of world.runtimes) runtime.start();
  const faults: string[] = [];
  let left: string[] = [];
  for (let round = 0; round < roundsMax; round += 1) {
    for (const runtime of world.runtimes) left = settle(world, runtime);
    if (left.length === 0) break;
  }
  faults.push(...left.map((what) => `after ${roundsMax} rounds of healing: ${what}`));
  const { store } = world.random.of(world.runtimes);
  faults.push(...faultsOf(world, store, db));
  const before = facts(db);
  faults.push(...world.acks.flatMap((ack) => lostOrDoubled(store, ack)));
  if (facts(db) !== before) faults.push('asking for what was done already changed something');
  return faults;
}

/** Does what waits, and takes every session once; returns what still waits. */
function settle(world: World, runtime: Runtime): string[] {
  const { store } = runtime;
  for (const request of world.cutOff.splice(0)) world.run(runtime, () => attempt(world, store, request));
  const left: string[] = [];
  for (const { session: name, id } of store.sessions.list({ all: true })) {
    const lease = store.leases.acquire(name, { id: `healing ${world.key()}` });
    world.faults.push(...world.leases.taken(lease));
    const open = results(store, name, world.key());
    if (open.length > 0) store.entries.append(name, open, { lease });
    store.inbox.drain(lease);
    if (store.leases.release(lease)) world.leases.over([lease]);
    else left.push(`'${name}' cannot be given back`);
    if (store.inbox.list(id).length > 0) left.push(`the inbox of '${name}' is not empty`);
    if (store.sessions.find(id)?.settled !== store.sessions.find(id)?.head)
      left.push(`'${name}' has open calls`);
  }
  for (const finding of store.examine()) store.mend(finding);
  return left;
}

/** The faults that a process finds in the healed store. */
function faultsOf(world: World, store: SqliteTapeStore, db: RawDb): string[] {
  const faults = [
    ...[...store.verify()].map(({ code, message }) => `${code}: ${message}`),
    ...[...store.examine()].map(({ code, message }) => `${code}: ${message}`),
    ...halves(db),
    ...graphDifferences(world.graph.text, db),
  ];
  for (const lease of world.leases.all)
    for (const act of [
      () => store.entries.append(lease.id, [{ kind: 'event', name: 'late', payload: {} }], { lease }),
      () => store.inbox.drain(lease),
      () => store.leases.extend(lease),
      () => store.leases.release(lease),
    ]) {
      const { code } = refusal(act);
      if (code !== 'TAPE_FENCED') faults.push(`an owner of '${lease.session}' that lost it got ${code}`);
    }
  return faults;
}
