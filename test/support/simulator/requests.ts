import { type Draft, type SqliteTapeStore, user } from '@tapedeck/tape';
import { Crash } from './crash.ts';
import type { Request, Scene, World } from './world.ts';

/** Does an act that can be repeated, and keeps it when a crash cuts it off. */
export function attempt(world: World, store: SqliteTapeStore, request: Request): void {
  try {
    world.acks.push(...request(store));
  } catch (error) {
    if (error instanceof Crash) world.cutOff.push(request);
    throw error;
  }
}

/**
 * A write of a session. Under a lease that is over it must fail, and without one while another surely holds the
 * session; and it ends all leases before it.
 */
export function write({ world, id, lease, session }: Scene, act: () => unknown): void {
  const { leases } = world;
  const live = leases.live(id, world.clock.now());
  const before = leases.of(id);
  const over = lease !== undefined && leases.isOver(lease);
  act();
  if (over) world.faults.push(`a lease that was over wrote '${session}'`);
  if (lease !== undefined) return;
  if (live !== undefined) world.faults.push(`'${session}' was written past the live lease of ${live.owner}`);
  leases.over(before);
}

export function append(scene: Scene, drafts: readonly Draft[]): void {
  if (drafts.length === 0) return;
  const { world, store, session, lease, key } = scene;
  write(scene, () =>
    attempt(world, store, (again) => {
      const o = { key, lease: again === store ? lease : undefined };
      return [{ act: 'append', session, key, drafts, receipt: again.entries.append(session, drafts, o) }];
    }),
  );
}

/** Merges a child of the session that acts. */
export function merge({ world, store, session, lease }: Scene): void {
  const children = store.sessions.list({ parent: session, all: true });
  if (children.length === 0) return;
  const child = world.random.of(children).session;
  attempt(world, store, (again) => {
    const { seq, parent } = again.lineage.merge(child, {}, again === store ? { lease } : {});
    return [{ act: 'delivery', parent, child, seq }];
  });
}

export function post({ world, store, session, key }: Scene): void {
  const drafts = [user(`${key} posted`)];
  attempt(world, store, (again) => {
    const { owner } = again.inbox.post(session, { body: { type: 'append', drafts }, key });
    if (owner === undefined) drainOwnerless(world, again, session);
    return [{ act: 'post', session, key, drafts }];
  });
}

/** A process that drains an ownerless inbox takes the session over for that long, even when it drains no item. */
export function drainOwnerless({ leases }: World, store: SqliteTapeStore, session: string): void {
  const id = store.sessions.find(session)?.id ?? '';
  const before = leases.of(id);
  if (store.inbox.drain(session) !== undefined) leases.over(before);
}
