import { clientCalls, type Seq, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import type { OpenCall } from '../stream/call.ts';
import { openCallsOf } from '../tools/open-batch.ts';

/** A session that is audited, as it stands. */
export interface Subject {
  readonly store: TapeStore;
  readonly info: SessionInfo;
  /** Somebody holds its lease: what it does is under way. */
  readonly isRun: boolean;
  /** The calls without a result at its end; of a session that is run, none. */
  readonly open: readonly PlacedCall[];
}

/** An open call, and the position of the message that asked for it. */
export interface PlacedCall extends OpenCall {
  readonly seq: Seq;
}

const pageSize = 200;

/** Every session, or one and all that came from it; parents come before their children. */
export async function* sessionsOf(
  store: TapeStore,
  session: string | undefined,
): AsyncGenerator<SessionInfo> {
  if (session === undefined) {
    yield* pages(store, {});
    return;
  }
  // Resolving, unlike finding, throws when there is no such session.
  await store.resolve(session, 'head');
  const root = await store.find(session);
  if (root === undefined) return;
  yield root;
  const parents = [root.id];
  for (const parent of parents)
    for await (const child of pages(store, { parent })) {
      yield child;
      parents.push(child.id);
    }
}

async function* pages(store: TapeStore, only: { readonly parent?: string }): AsyncGenerator<SessionInfo> {
  for (let after: string | null = null; ; ) {
    const page: readonly SessionInfo[] = await store.sessions({ ...only, all: true, after, limit: pageSize });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = last.id;
  }
}

/** Reads what is under way in a session; `undefined` when it is gone. */
export async function lookAt(store: TapeStore, id: string): Promise<Subject | undefined> {
  const isRun = (await store.owners()).some((owner) => owner.id === id);
  const info = await store.find(id);
  if (info === undefined) return undefined;
  return { store, info, isRun, open: isRun ? [] : await openCalls(store, info) };
}

async function openCalls(
  store: TapeStore,
  { id, settled, head }: SessionInfo,
): Promise<readonly PlacedCall[]> {
  if (settled === head) return [];
  const entries = await Array.fromAsync(store.read(id, { from: settled + 1 }));
  return openCallsOf(entries).map((call) => ({
    ...call,
    seq: entries.findLast(({ payload }) => clientCalls(payload).includes(call.toolCallId))?.seq ?? head,
  }));
}
