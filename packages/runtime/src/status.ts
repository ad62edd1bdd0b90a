import type { Delivery, Lifecycle, Owner, TapeStore, Task } from '@tapedeck/tape';
import type { WaitingCall } from './events.ts';
import { awaitsAnswer, openBatch } from './open-batch.ts';

/** What a run is at: reading its tape, hearing its model, summarising, or writing what was answered (N29, N30). */
export type Phase = 'processing' | 'streaming' | 'compacting' | 'completing';

/** Whether a session is at work. Not stored: a session that no process runs is idle, or waits (G78-G80, K15). */
export interface RunStatus {
  readonly state: 'idle' | 'busy' | 'waiting' | 'retrying' | 'error';
  readonly phase?: Phase;
  readonly run?: string;
  /** Milliseconds since the epoch. */
  readonly startedAt?: number;
  /** Of a model call that is made again, from 1. */
  readonly attempt?: number;
  /** Why it is made again, or what the last run failed of. */
  readonly message?: string;
}

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
}

/**
 * Where a session stands. `run` is what this process knows of it; when another process runs it, that it does is all there is
 * to know.
 */
export async function statusOf(
  { store }: { readonly store: TapeStore },
  { id, run = { state: 'idle' } }: { readonly id: string; readonly run?: RunStatus | undefined },
): Promise<Status> {
  const info = await store.find(id);
  if (info === undefined) throw new TypeError('a session that has a status exists');
  const waiting = (await openBatch(store, id))
    .filter(awaitsAnswer)
    .flatMap(({ toolCallId, toolName: name, input, for: what }) =>
      what === undefined ? [] : [{ toolCallId, name, input, for: what }],
    );
  const owner = (await store.owners()).find((writing) => writing.id === id)?.owner;
  const { lifecycle, task, delivery, name: session } = info;
  return {
    session,
    ...axis({ run, isOwned: owner !== undefined, isWaiting: waiting.length > 0 }),
    lifecycle,
    ...(task !== undefined && { task }),
    ...(delivery !== undefined && { delivery }),
    queued: (await store.inbox(id)).length,
    waiting,
    ...(owner !== undefined && { owner }),
  };
}

/** The first axis, from what this process knows and what the store shows of others. Pure. */
function axis({
  run,
  isOwned,
  isWaiting,
}: {
  run: RunStatus;
  isOwned: boolean;
  isWaiting: boolean;
}): RunStatus {
  if (run.state === 'busy' || run.state === 'retrying') return run;
  if (isOwned) return { state: 'busy' };
  return isWaiting ? { state: 'waiting' } : run.state === 'waiting' ? { state: 'idle' } : run;
}
