import type { Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { clientCalls } from '@tapedeck/tape/internal';
import type { OpenCall } from '../stream/call.ts';
import { openCallsOf } from '../tools/open-batch.ts';

/** A session under audit. */
export interface Subject {
  readonly store: TapeStore;
  readonly info: SessionInfo;
  /**
   * It is of another realm than the one that the store was opened for: its name is that of another session, or of
   * none.
   */
  readonly isAbroad: boolean;
  /** What findings call a session of its tree: the name, or the id where the name is not found. */
  readonly ref: (one: Pick<SessionInfo, 'id' | 'session'>) => string;
  /** A process holds its lease, so its work is in progress. */
  readonly isRun: boolean;
  /** The open calls at its end; empty while a process runs it. */
  readonly open: readonly PlacedCall[];
}

/** An open call, with the position of the message that contains it. */
export interface PlacedCall extends OpenCall {
  readonly seq: Seq;
}

const pageSize = 200;

/** All sessions of all realms, or one with its descendants; parents before children. */
export async function* sessionsOf(
  store: TapeStore,
  session: string | undefined,
): AsyncGenerator<SessionInfo> {
  if (session === undefined) {
    yield* pages(store, { allRealms: true });
    return;
  }
  // `resolve`, unlike `find`, throws for an unknown session.
  await store.entries.resolve(session, 'head');
  const root = await store.sessions.find(session);
  if (root === undefined) return;
  yield root;
  const parents = [root.id];
  for (const parent of parents)
    for await (const child of pages(store, { parent })) {
      yield child;
      parents.push(child.id);
    }
}

async function* pages(
  store: TapeStore,
  only: { readonly parent?: string; readonly allRealms?: true },
): AsyncGenerator<SessionInfo> {
  for (let after: string | null = null; ; ) {
    const page: readonly SessionInfo[] = await store.sessions.list({
      ...only,
      all: true,
      after,
      limit: pageSize,
    });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = last.id;
  }
}

/** What was read of a store for many sessions: it holds until something is written. */
export interface Seen {
  readonly changes: number;
  readonly running: ReadonlySet<string>;
  /** Whether the sessions of a realm are found by their names here. */
  readonly isAbroad: Map<string, boolean>;
}

/** Reads what holds for all sessions, or returns it as it was read when nothing was written since. */
export async function seenIn(store: TapeStore, before: Seen | undefined): Promise<Seen> {
  const changes = await store.changes();
  if (before?.changes === changes) return before;
  const running = new Set((await store.leases.list()).map(({ id }) => id));
  return { changes, running, isAbroad: before?.isAbroad ?? new Map() };
}

/** Reads a session for the audit; undefined if it no longer exists. */
export async function lookAt(store: TapeStore, id: string, seen: Seen): Promise<Subject | undefined> {
  const isRun = seen.running.has(id);
  const info = await store.sessions.find(id);
  if (info === undefined) return undefined;
  const realm = realmOf(info);
  const isAbroad = seen.isAbroad.get(realm) ?? (await isOfOther(store, info));
  seen.isAbroad.set(realm, isAbroad);
  const ref = (one: Pick<SessionInfo, 'id' | 'session'>) => (isAbroad ? one.id : one.session);
  return {
    store,
    info,
    isAbroad,
    ref,
    isRun,
    open: isRun ? [] : await openCalls(store, info),
  };
}

async function isOfOther(store: TapeStore, info: SessionInfo): Promise<boolean> {
  const named = await store.sessions.find(info.session);
  return named === undefined || realmOf(named) !== realmOf(info);
}

function realmOf({ tape }: SessionInfo): string {
  return tape.slice(0, tape.indexOf(':'));
}

async function openCalls(
  store: TapeStore,
  { id, settled, head }: SessionInfo,
): Promise<readonly PlacedCall[]> {
  if (settled === head) return [];
  const entries = await Array.fromAsync(store.entries.read(id, { from: settled + 1 }));
  return openCallsOf(entries).map((call) => ({
    ...call,
    seq: entries.findLast(({ payload }) => clientCalls(payload).includes(call.toolCallId))?.seq ?? head,
  }));
}
