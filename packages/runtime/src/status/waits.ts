import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { type OpenCall, requestOf, type WaitingCall } from '../stream/call.ts';
import { isInterrupted } from '../tools/interrupted.ts';
import { awaitsAnswer, awaitsTool, isOrphan, openBatch } from '../tools/open-batch.ts';
import { refOf } from '../ui/child-calls.ts';

/** A call that waits for the answer of a person or a client. */
export interface Wait {
  /** The session whose call it is. */
  readonly session: SessionInfo;
  readonly call: OpenCall;
  /** The name of the call above its session: providers give calls of different sessions the same id. */
  readonly ref: string;
}

/**
 * The calls of sessions below that wait for answers: of children with unfinished tasks, and of their children, in the
 * order of the forks. Everything that lists or answers what a session waits for below it asks here.
 */
export async function* waitsBelow(store: TapeStore, id: string): AsyncGenerator<Wait> {
  for (const session of await runningChildren(store, id)) {
    for (const call of await openBatch(store, session))
      if (awaitsAnswer(call)) yield { session, call, ref: refOf(session.session, call.toolCallId) };
    yield* waitsBelow(store, session.id);
  }
}

/** The children whose tasks run, or wait. */
export async function runningChildren(store: TapeStore, id: string): Promise<readonly SessionInfo[]> {
  const children = await store.sessions.list({ parent: id, all: true, pending: true });
  return children.filter(({ task, delivery }) => task === 'running' && delivery !== 'discarded');
}

/**
 * The session that has an answer to go on with and that no process runs, of a session and those to which it delegates: its
 * process died, or none could run it. The deepest first.
 */
export async function leftAfterAnswer(store: TapeStore, id: string): Promise<SessionInfo | undefined> {
  for (const child of await runningChildren(store, id)) {
    const below = await leftAfterAnswer(store, child.id);
    if (below !== undefined) return below;
  }
  const info = await store.sessions.find(id);
  return info !== undefined && (await hasAnswerLeft(store, info)) ? info : undefined;
}

/**
 * Whether a session that no process runs has an answer to go on with. `hasTool`: which tools can run here; an approved call
 * waits for a process that has its own.
 */
export async function hasAnswerLeft(
  store: TapeStore,
  info: SessionInfo,
  hasTool: (name: string) => boolean = () => false,
): Promise<boolean> {
  const { id } = info;
  if ((await store.leases.list()).some((owner) => owner.id === id)) return false;
  const isAnswered = (call: OpenCall) =>
    isOrphan(call) || (call.decision !== undefined && (call.for !== 'tool' || hasTool(call.toolName)));
  return (
    (await isInterrupted(store, id)) ||
    (await openBatch(store, info)).some(isAnswered) ||
    (await store.inbox.list(id)).some(({ body }) => body.type === 'answer')
  );
}

/** The calls of a session, and of those to which it delegates, that are approved and wait for a process with their tool. */
export async function* waitsForTool(store: TapeStore, info: SessionInfo): AsyncGenerator<Wait> {
  for (const call of await openBatch(store, info))
    if (awaitsTool(call)) yield { session: info, call, ref: refOf(info.session, call.toolCallId) };
  for (const child of await runningChildren(store, info.id)) yield* waitsForTool(store, child);
}

/** A call below as the sessions above it show it. */
export function waitingBelow({ session, call, ref }: Wait): readonly WaitingCall[] {
  const { toolName: name, input, for: what } = call;
  if (what === undefined) return [];
  return [{ toolCallId: ref, name, input, for: what, session: session.session, ...requestOf(call) }];
}

/**
 * Finds the calls below that an id means: the id as the sessions above show it, or that of the call itself, which several
 * sessions can have.
 */
export async function findBelow(store: TapeStore, id: string, call: string): Promise<readonly Wait[]> {
  const waits = await Array.fromAsync(waitsBelow(store, id));
  const named = waits.filter(({ ref }) => ref === call);
  return named.length > 0 ? named : waits.filter((wait) => wait.call.toolCallId === call);
}
