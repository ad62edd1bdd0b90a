import {
  assistant,
  type Lease,
  TapeError,
  type TapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import type { Random } from './seeded.ts';

/** What an act returned on one store: a value, or the code of its error. */
type Result = unknown;

/** An act on a store; `lease` finds the lease of a number, as that store gave it. */
type Act = (store: TapeStore, leases: Leases) => unknown;

/** The leases that a store has given, by the number of the act that took them. */
export type Leases = Map<number, Lease>;

const call = { toolCallId: 'c1', toolName: 'read' };

/** Chooses the next act of a history: mostly of owners, and of others that come between. */
export function nextAct(random: Random, at: number, taken: readonly number[]): Act {
  const session = random.of(['main', 'main', 'one', 'two', 'other']);
  const named = random.of(['one', 'two']);
  const lifecycle = random.chance(80) ? ('active' as const) : ('archived' as const);
  const text = `text ${at}`;
  const held = taken.length === 0 ? -1 : random.of(taken.slice(-4));
  const key = random.chance(30) ? `key-${random.below(12)}` : `key-${at}`;
  const withLease = (leases: Leases) => {
    const lease = leases.get(held);
    return lease === undefined ? {} : { lease };
  };
  const owned = (leases: Leases) => leases.get(held)?.session ?? session;
  const append =
    (batch: Parameters<TapeStore['entries']['append']>[1], more = {}): Act =>
    (store, leases) =>
      store.entries.append(owned(leases), batch, { ...withLease(leases), ...more });
  const acts: readonly Act[] = [
    append([user(text)]),
    append([user(text), assistant(text)], { key }),
    append([assistant([toolCall(`c${at}`, 'read', { at })])]),
    append([toolResult({ ...call, toolCallId: `c${at - 1}` }, text)]),
    append([assistant(text)], { key: `key-${at}` }),
    (store) => store.entries.append(session, [user(text)]),
    (store) => store.sessions.open(session),
    async (store, leases) => {
      const lease = await store.leases.acquire(session, { id: `owner-${at}` }, { ttlMs: 20_000 });
      leases.set(at, lease);
      return lease;
    },
    async (store, leases) => {
      const lease = leases.get(held);
      return lease === undefined ? undefined : await store.leases.release(lease);
    },
    async (store, leases) => {
      const lease = leases.get(held);
      return lease === undefined ? undefined : (await store.leases.extend(lease, { ttlMs: 20_000 })).epoch;
    },
    (store) =>
      store.inbox.post(session, { body: { type: 'append', drafts: [user(text)] }, key, source: 'cli' }),
    async (store, leases) => {
      const lease = leases.get(held);
      return lease === undefined ? await store.inbox.drain(session) : await store.inbox.drain(lease);
    },
    (store) => store.lineage.fork(session, { name: `child-${at}`, key, deliver: 'merge' }),
    (store) => store.lineage.fork(session, { name: named }),
    async (store) => {
      const [child] = await store.sessions.list({ parent: session, all: true });
      if (child === undefined) return undefined;
      await store.entries.append(child.id, [assistant(text)]);
      return await store.lineage.merge(child.id);
    },
    (store, leases) => store.sessions.update(owned(leases), { task: 'running' }, withLease(leases)),
    (store, leases) => store.sessions.update(owned(leases), { task: 'completed' }, withLease(leases)),
    (store) => store.sessions.update(session, { lifecycle }),
    (store) => store.sessions.update(session, { alias: { name: `alias-${at % 3}`, reason: 'manual' } }),
    (store) => store.entries.append(`alias-${at % 3}`, [user(text)]),
    (store, leases) => store.history.rewind(owned(leases), 2, withLease(leases)),
    (store) => store.history.unrewind(session),
    (store) => store.sessions.find(session),
    (store) => Array.fromAsync(store.entries.read(session, { last: 3 })),
    (store) => store.inbox.list(session),
  ];
  // What an owner does comes more often than anything else.
  return random.chance(40) ? random.of(acts.slice(0, 5)) : random.of(acts);
}

/** Runs an act; an error of the store is its code. */
export async function resultOf(act: Act, store: TapeStore, leases: Leases): Promise<Result> {
  try {
    return (await act(store, leases)) ?? null;
  } catch (error) {
    if (error instanceof TapeError) return { error: error.code };
    throw error;
  }
}

/** All that a store has, for readers: each session with its entries, its view and its inbox, and the lineage. */
export async function contentOf(store: TapeStore): Promise<Result> {
  const sessions = await store.sessions.list({ all: true });
  const byTime = sessions.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return {
    sessions: await Promise.all(
      byTime.map(async (info) => ({
        info,
        entries: await Array.fromAsync(store.entries.read(info.id)),
        messages: view(await Array.fromAsync(store.views.entries(info.id))).messages,
        inbox: await store.inbox.list(info.id),
      })),
    ),
    lines: await Array.fromAsync(store.lineage.read()),
  };
}

/** The same text for values that differ only in ids and hashes: each is replaced by the number of its first place. */
export function withoutIds(value: Result): string {
  const seen = new Map<string, string>();
  return JSON.stringify(value, (name, held) => (/hash/i.test(name) ? undefined : held), 1)?.replace(
    /\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{64}\b|(?<=\bmerge-)[0-9a-f]{8}\b/g,
    (id) => {
      const known = seen.get(id) ?? `#${seen.size}`;
      seen.set(id, known);
      return known;
    },
  );
}
