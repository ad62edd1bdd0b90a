/**
 * The states of sessions. `status.ts` reads them from the tape, the inbox and the lease, `active-writer.ts` and
 * `active-file.ts` hand the phases of runs from process to process, and `waits.ts` lists the calls of sessions below
 * that wait for answers. Imports `tools` and what lies below.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Lifecycle, type SessionInfo, TapeError, type TapeStore, type Task } from '@tapedeck/tape';
import { deliveryOf } from '@tapedeck/tape/internal';
import type { Delivery, Owner, SessionOwner } from '@tapedeck/tape/store';
import { requestOf, type WaitingCall } from '../stream/call.ts';
import type { RunStatus } from '../stream/events.ts';
import { interruptedAmong } from '../tools/interrupted.ts';
import { awaitsAnswer, awaitsChildren, openBatch } from '../tools/open-batch.ts';
import { type ActiveSession, isOf, readActive } from './active-file.ts';
import { runningChildren, waitingBelow, waitsBelow, waitsForTool } from './waits.ts';

/** The status of a session on three independent axes: run state, lifecycle, and task with delivery. */
export interface Status extends RunStatus {
  readonly session: string;
  readonly lifecycle: Lifecycle;
  /** The task of a delegated session; `delivery` says whether it was merged or discarded, and no undo reverted the merge. */
  readonly task?: Task;
  readonly delivery?: Delivery;
  /** The number of messages and answers in its inbox. */
  readonly queued: number;
  /** Calls that wait for a user or client, or for children. */
  readonly waiting: readonly WaitingCall[];
  /** The process that runs it. */
  readonly owner?: Owner;
  /** The sessions below it with running tasks, and the calls that wait in them. */
  readonly children?: readonly Pick<Status, 'session' | 'waiting'>[];
  /** What of the session cannot be read; its calls and its inbox are not shown then. */
  readonly damage?: string;
}

/** Sources of statuses: the store, and the home with the records of other processes. */
interface StatusSource {
  readonly store: TapeStore;
  readonly home?: string | undefined;
}

/**
 * The status of a session. `run` is its status in this process. For a session that another process runs, the
 * lease shows that it runs, and `run/sessions.json` of the home its phase.
 *
 * @example
 * ```ts
 * import { openDeck, statusOf } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * const { state, queued } = await statusOf({ store: deck.store }, { id: main.id });
 * console.log(state, queued); // idle 0
 * ```
 */
export async function statusOf(
  source: StatusSource,
  { id, run = { state: 'idle' } }: { readonly id: string; readonly run?: RunStatus | undefined },
): Promise<Status> {
  const info = await source.store.sessions.find(id);
  if (info === undefined) throw new TypeError('the session is not in the store');
  return await readOrDamaged(source.store, info, { run, ...(await observe(source, [info])) });
}

/**
 * The statuses of sessions that this process does not run.
 *
 * @example
 * ```ts
 * import { openDeck, statusesOf } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * await deck.session('main');
 * const statuses = await statusesOf({ store: deck.store }, await deck.sessions());
 * console.log(statuses.map(({ session, state }) => `${session}: ${state}`)); // [ 'main: idle' ]
 * ```
 */
export async function statusesOf(
  source: StatusSource,
  infos: readonly SessionInfo[],
): Promise<readonly Status[]> {
  const shown = await observe(source, infos);
  const statuses: Status[] = [];
  for (const info of infos) statuses.push(await readOrDamaged(source.store, info, shown));
  return statuses;
}

/**
 * Resolves when no process runs any of the sessions; with `any`, when at least one is idle. `ids` are ULIDs.
 *
 * @example
 * ```ts
 * import { openDeck, untilIdle } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.send('Plan the release.');
 * await untilIdle(deck.store, [main.id]);
 * console.log((await main.status()).state); // idle
 * ```
 */
export async function untilIdle(
  store: TapeStore,
  ids: readonly string[],
  { any = false, signal }: { readonly any?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  for (;;) {
    const running = new Set((await store.leases.list()).map(({ id }) => id));
    const isRunning = (id: string) => running.has(id);
    if (any ? !ids.every(isRunning) : !ids.some(isRunning)) return;
    await sleep(idlePollMs, undefined, { signal });
  }
}

const idlePollMs = 50;

/** Leases and records of all processes, and the sessions whose processes died. */
interface Processes {
  readonly owners: ReadonlyMap<string, SessionOwner>;
  readonly active: readonly ActiveSession[];
  readonly interrupted: ReadonlySet<string>;
}

async function observe({ store, home }: StatusSource, infos: readonly SessionInfo[]): Promise<Processes> {
  const owners = new Map((await store.leases.list()).map((owner) => [owner.id, owner]));
  const active = home === undefined ? [] : readActive(home);
  return { owners, active, interrupted: await interruptedAmong(store, infos) };
}

/** What was found out about a session before its tape is read. */
interface Seen extends Processes {
  /** Its status in this process. */
  readonly run?: RunStatus;
}

/** The status of a session, or what is known of one whose stored texts cannot be read. */
async function readOrDamaged(store: TapeStore, info: SessionInfo, seen: Seen): Promise<Status> {
  try {
    return await readStatus(store, info, seen);
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    const { session, lifecycle, task } = info;
    const delivery = deliveryOf(info);
    const { at, owned } = outside(info, { ...seen, isWaiting: false });
    return {
      session,
      ...at,
      lifecycle,
      ...(task !== undefined && { task }),
      ...(delivery !== undefined && { delivery }),
      queued: 0,
      waiting: [],
      ...(owned !== undefined && { owner: owned.owner }),
      damage: error.message,
    };
  }
}

/** The run state of a session as its processes show it, and its owner. Pure. */
function outside(
  { id }: SessionInfo,
  { owners, active, run = { state: 'idle' }, isWaiting }: Seen & { readonly isWaiting: boolean },
): { readonly at: RunStatus; readonly owned: SessionOwner | undefined } {
  const owned = owners.get(id);
  const shown = owned === undefined ? undefined : active.find((one) => isOf(one, owned));
  return { at: axis({ run, shown, isOwned: owned !== undefined, isWaiting }), owned };
}

async function readStatus(store: TapeStore, info: SessionInfo, seen: Seen): Promise<Status> {
  const { id, session, lifecycle, task } = info;
  const delivery = deliveryOf(info);
  const waiting = await waitingCalls(store, id);
  const children = await Array.fromAsync(childrenOf(store, id));
  const { at, owned } = outside(info, { ...seen, isWaiting: waiting.length > 0 });
  const queued = (await store.inbox.list(id)).filter(
    ({ body: { type } }) => type === 'input' || type === 'answer',
  );
  const isCut = at.state === 'idle' && lifecycle === 'active' && seen.interrupted.has(id);
  // What was saved of an answer is continued from: one that cannot be read is damage.
  if (isCut) await store.live.read(id);
  return {
    session,
    ...at,
    ...(isCut && { state: 'interrupted' as const }),
    lifecycle,
    ...(task !== undefined && { task }),
    ...(delivery !== undefined && { delivery }),
    queued: queued.length,
    waiting,
    ...(owned !== undefined && { owner: owned.owner }),
    ...(children.length > 0 && { children }),
  };
}

/**
 * What a session waits for: calls of its own, then calls of sessions below that wait for answers, or for a process with their
 * tool.
 */
export async function waitsOf(store: TapeStore, id: string): Promise<readonly WaitingCall[]> {
  const below = await Array.fromAsync(waitsBelow(store, id));
  for (const child of await runningChildren(store, id))
    below.push(...(await Array.fromAsync(waitsForTool(store, child))));
  return [...(await waitingCalls(store, id)), ...below.flatMap(waitingBelow)];
}

/** The sessions below with running tasks. */
async function* childrenOf(
  store: TapeStore,
  id: string,
): AsyncGenerator<Pick<Status, 'session' | 'waiting'>> {
  for (const child of await runningChildren(store, id)) {
    yield { session: child.session, waiting: await waitingCalls(store, child.id) };
    yield* childrenOf(store, child.id);
  }
}

async function waitingCalls(store: TapeStore, id: string): Promise<readonly WaitingCall[]> {
  return (await openBatch(store, id))
    .filter((call) => awaitsAnswer(call) || awaitsChildren(call) || call.for === 'tool')
    .flatMap((call) => {
      const { toolCallId, toolName: name, input, for: what } = call;
      return what === undefined ? [] : [{ toolCallId, name, input, for: what, ...requestOf(call) }];
    });
}

/** The run state, from this process, the lease, and the record of the process that has it. Pure. */
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
