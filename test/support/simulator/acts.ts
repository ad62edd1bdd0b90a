import { type Lease, type SessionInfo, type SqliteTapeStore, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { appends } from './appends.ts';
import { append, attempt, drainOwnerless, merge, post, write } from './requests.ts';
import type { Runtime } from './runtime.ts';
import type { Scene, World } from './world.ts';

type Act = (scene: Scene) => void;

const sessionsMax = 12;
const leaseTtlMs = 30_000;

const acts: Readonly<Record<string, Act>> = {
  rewind: (scene) => {
    const { store, session, lease, world } = scene;
    const { floor, head } = store.sessions.find(session) ?? { floor: 0, head: 1 };
    const to = floor + 1 + world.random.below(head - floor);
    write(scene, () => store.history.rewind(session, to, { lease }));
  },
  unrewind: (scene) =>
    write(scene, () => scene.store.history.unrewind(scene.session, { lease: scene.lease })),
  fork: ({ world, store, session, key }) => {
    if (store.sessions.list({ all: true }).length >= sessionsMax) return;
    attempt(world, store, (under) => [
      { act: 'fork', parent: session, key, receipt: under.lineage.fork(session, { key }) },
    ]);
  },
  merge,
  redact: (scene) => {
    const { world, store, session, key, lease } = scene;
    const said = [...store.entries.read(session, { own: true, kind: 'message' })].filter(
      ({ payload, meta }) => isObject(payload) && payload.role === 'user' && meta.of === undefined,
    );
    if (said.length === 0) return;
    const { seq } = world.random.of(said);
    write(scene, () => {
      const receipt = store.entries.redact(session, seq, key, { lease });
      world.acks.push({ act: 'redaction', session, seq, by: receipt.by });
    });
  },
  archive: ({ store, session }) => {
    // Taken back the next time: an archived parent takes no merge in.
    store.sessions.update(session, {
      lifecycle: store.sessions.find(session)?.lifecycle === 'archived' ? 'active' : 'archived',
    });
  },
  post,
  'post a merge': ({ world, store, session, key }) => {
    const children = store.sessions.list({ parent: session, all: true });
    if (children.length === 0) return;
    const child = world.random.of(children).session;
    const { id, owner } = store.inbox.post(session, { body: { type: 'merge', draft: { child } }, key });
    world.acks.push({ act: 'request', parent: session, child, id });
    if (owner === undefined) drainOwnerless(world, store, session);
  },
  drain: ({ store, lease }) => {
    if (lease !== undefined) store.inbox.drain(lease);
  },
  acquire: ({ world, runtime, store, session, id, key }) => {
    const live = world.leases.live(id, world.clock.now());
    const lease = store.leases.acquire(session, { id: `${runtime.name} ${key}` }, { ttlMs: leaseTtlMs });
    if (live !== undefined) world.faults.push(`'${session}' was taken while ${live.owner} had it`);
    world.faults.push(...world.leases.taken(lease));
    runtime.leases.set(session, lease);
  },
  extend: ({ world, runtime, store, lease }) => {
    if (lease === undefined) return;
    const over = world.leases.isOver(lease);
    const extended = store.leases.extend(lease, { ttlMs: leaseTtlMs });
    if (over) world.faults.push(`a lease that was over was extended: ${JSON.stringify(lease)}`);
    world.leases.held(extended);
    runtime.leases.set(lease.session, extended);
  },
  release: ({ world, runtime, store, lease }) => {
    if (lease === undefined) return;
    for (let i = 0; i < 3; i += 1) {
      const waiting = store.inbox.list(lease.id).filter(({ body }) => body.type === 'append');
      // Between its commit and its answer, others may have seen that the session is free.
      world.leases.doubt(lease);
      if (store.leases.release(lease)) {
        if (waiting.length > 0) world.faults.push(`'${lease.session}' was given back with a full inbox`);
        world.leases.over([lease]);
        runtime.leases.delete(lease.session);
        return;
      }
      world.leases.held(lease);
      store.inbox.drain(lease);
    }
    world.faults.push(`the lease of '${lease.session}' could not be given back after three drains`);
  },
  /** A process that lost its lease continues as if it had it. */
  late: ({ world, store, key }) => {
    const over: Lease[] = world.leases.all.filter((lease) => world.leases.isOver(lease));
    if (over.length === 0) return;
    const lease = world.random.of(over);
    store.entries.append(lease.id, [user(`${key} late`)], { lease });
    world.faults.push(`a lease that was over wrote: ${JSON.stringify(lease)}`);
  },
  'ask again': ({ world, store }) => {
    const request = world.cutOff.shift();
    if (request !== undefined) attempt(world, store, request);
  },
  ...Object.fromEntries(
    Object.entries(appends).map(([name, drafts]): [string, Act] => [
      name,
      (scene) => append(scene, drafts(scene)),
    ]),
  ),
};

/** These are done more often than the others. */
const often = ['append', 'results', 'fork', 'merge', 'merge', 'post', 'acquire', 'ask again'];
const names = [...Object.keys(acts), ...often];

/** One act of a runtime that is up, on a session of its choice. */
export function chooseAct(world: World, runtime: Runtime): { name: string; act: () => void } {
  const { store, leases } = runtime;
  const name = world.random.of(names);
  const { session, id } = world.random.of(sessionsOf(store));
  const lease = leases.get(session);
  const scene: Scene = { world, runtime, store, session, id, lease, key: world.key() };
  return { name: `${name} ${session}`, act: () => acts[name]?.(scene) };
}

function sessionsOf(store: SqliteTapeStore): readonly SessionInfo[] {
  return store.sessions.list({ all: true, after: null });
}
