import { setTimeout as sleep } from 'node:timers/promises';
import type { Delivery, Lifecycle, Owner, SessionInfo, SessionOwner, TapeStore, Task } from '@tapedeck/tape';
import type { WaitingCall } from '../stream/call.ts';
import type { RunStatus } from '../stream/events.ts';
import { awaitsAnswer, openBatch } from '../tools/open-batch.ts';
import { type ActiveSession, isOf, readActive } from './active-file.ts';

/** Where a session stands, on three axes that do not mix (K15). */
export interface Status extends RunStatus {
  readonly session: string;
  readonly lifecycle: Lifecycle;
  /** How the task of a delegated session stands, and whether its parent has its result. */
  readonly task?: Task;
  readonly delivery?: Delivery;
  /** Messages and answers that wait in its inbox. */
  readonly queued: number;
  /** Calls that wait for a person or a client. */
  readonly waiting: readonly WaitingCall[];
  /** The process that runs it. */
  readonly owner?: Owner;
  /** Children whose tasks have not ended, and what they wait for. */
  readonly children?: readonly Pick<Status, 'session' | 'waiting'>[];
}

/** Where statuses are read: a store, and the home beside it, which shows what other processes are at. */
interface Source {
  readonly store: TapeStore;
  readonly home?: string | undefined;
}

/**
 * Where a session stands. `run` is what this process knows of it; of what another process runs, the lease tells that it
 * does, and `run/sessions.json` of the home what it is at.
 */
export async function statusOf(
  source: Source,
  { id, run = { state: 'idle' } }: { readonly id: string; readonly run?: RunStatus | undefined },
): Promise<Status> {
  const info = await source.store.find(id);
  if (info === undefined) throw new TypeError('a session that has a status exists');
  return await standing(source.store, info, { run, ...(await seen(source)) });
}

/** Where sessions stand, of which this process runs none. */
export async function statusesOf(source: Source, infos: readonly SessionInfo[]): Promise<readonly Status[]> {
  const shown = await seen(source);
  const statuses: Status[] = [];
  for (const info of infos) statuses.push(await standing(source.store, info, shown));
  return statuses;
}

/** Resolves when no process runs any of the sessions, or with `any` not all of them. `ids` are ULIDs. */
export async function untilIdle(
  store: TapeStore,
  ids: readonly string[],
  { any = false, signal }: { readonly any?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  for (;;) {
    const running = new Set((await store.owners()).map(({ id }) => id));
    const isRunning = (id: string) => running.has(id);
    if (any ? !ids.every(isRunning) : !ids.some(isRunning)) return;
    await sleep(idlePollMs, undefined, { signal });
  }
}

const idlePollMs = 50;

/** What can be known of other processes. */
interface Seen {
  readonly owners: readonly SessionOwner[];
  readonly active: readonly ActiveSession[];
}

async function seen({ store, home }: Source): Promise<Seen> {
  return { owners: await store.owners(), active: home === undefined ? [] : readActive(home) };
}

async function standing(
  store: TapeStore,
  { id, name: session, lifecycle, task, delivery }: SessionInfo,
  { owners, active, run = { state: 'idle' } }: Seen & { readonly run?: RunStatus },
): Promise<Status> {
  const waiting = await waitingCalls(store, id);
  const children: Pick<Status, 'session' | 'waiting'>[] = [];
  for (const child of await store.sessions({ parent: id, all: true }))
    if (child.task === 'running')
      children.push({ session: child.name, waiting: await waitingCalls(store, child.id) });
  const owned = owners.find((writing) => writing.id === id);
  const shown = owned === undefined ? undefined : active.find((one) => isOf(one, owned));
  const queued = (await store.inbox(id)).filter(
    ({ body: { type } }) => type === 'input' || type === 'answer',
  );
  return {
    session,
    ...axis({ run, shown, isOwned: owned !== undefined, isWaiting: waiting.length > 0 }),
    lifecycle,
    ...(task !== undefined && { task }),
    ...(delivery !== undefined && { delivery }),
    queued: queued.length,
    waiting,
    ...(owned !== undefined && { owner: owned.owner }),
    ...(children.length > 0 && { children }),
  };
}

async function waitingCalls(store: TapeStore, id: string): Promise<readonly WaitingCall[]> {
  return (await openBatch(store, id))
    .filter((call) => awaitsAnswer(call) || call.for === 'tool')
    .flatMap(({ toolCallId, toolName: name, input, for: what }) =>
      what === undefined ? [] : [{ toolCallId, name, input, for: what }],
    );
}

/** The first axis, from what this process knows, what the store shows of others, and what those show of themselves. Pure. */
function axis({
  run,
  shown,
  isOwned,
  isWaiting,
}: {
  run: RunStatus;
  shown: ActiveSession | undefined;
  isOwned: boolean;
  isWaiting: boolean;
}): RunStatus {
  if (run.state === 'busy' || run.state === 'retrying') return run;
  if (shown !== undefined) return shown.status;
  if (isOwned) return { state: 'busy' };
  return isWaiting ? { state: 'waiting' } : run.state === 'waiting' ? { state: 'idle' } : run;
}
