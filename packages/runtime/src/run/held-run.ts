import type { SessionInfo } from '@tapedeck/tape';
import type { InboxItem } from '@tapedeck/tape/store';
import type { Hold } from '../lease/hold.ts';
import type { RunStatus } from '../stream/events.ts';
import { modelFor, type RunModel } from '../terms/model-for.ts';
import type { Origin } from '../terms/terms.ts';
import { wasInterrupted } from '../tools/interrupted.ts';
import type { WorkerParts } from './parts.ts';
import { perform } from './perform.ts';
import type { Publisher } from './publisher.ts';
import { decide, type QueuePoint } from './queue.ts';
import { withoutRefused } from './refused.ts';
import { infoOf, type RunRequest, type RunScope } from './request.ts';
import type { Run, RunControl, RunResult } from './run.ts';
import { endIfComplete } from './unfinished.ts';
import { recordUnusable } from './unusable.ts';

/** A started run and its control. */
export interface Started {
  readonly request: RunRequest;
  readonly run: Run;
  readonly control: RunControl;
}

/** A run to perform, and its lease. */
export interface HeldRun {
  readonly held: Hold;
  readonly started: Started;
}

/** The queue point and status of a session after a run. */
export interface AfterRun {
  readonly point: Extract<QueuePoint, 'ended' | 'stopped'>;
  readonly status: RunStatus;
}

/** The queue point and status after a result. */
export function endOf(result: RunResult): AfterRun {
  const { finish } = result;
  return {
    point: finish === 'error' || finish === 'aborted' ? 'stopped' : 'ended',
    status: statusAfter(result),
  };
}

/** What a run needs of its worker. */
export interface RunHost {
  readonly parts: WorkerParts;
  readonly session: { readonly name: string; readonly id: string };
  readonly origin: Origin;
  /** Reads the line of the session. */
  readonly line: RunScope['line'];
  readonly publisher: Publisher;
  readonly enter: (status: RunStatus) => void;
  /** Called with the instructions of each model call. */
  readonly onInstructions: (instructions: string) => void;
}

/** Known before a run begins: the session's row, read under the lease, and the model. */
export interface KnownAtStart {
  readonly info: SessionInfo;
  readonly chosen: RunModel;
}

/** Performs a run up to its recorded end. */
export async function performHeld(
  { held, started: { request, run, control } }: HeldRun,
  { parts, session, origin, line, publisher, enter, onInstructions }: RunHost,
  known?: KnownAtStart,
): Promise<RunResult> {
  let base: Pick<RunStatus, 'run' | 'startedAt' | 'servers'> = { run: request.run, startedAt: parts.now() };
  const scope: RunScope = {
    parts,
    session,
    origin,
    line,
    hold: held,
    signal: control.signal,
    emit: (chunk) => publisher.emit(control, chunk),
    enter: (phase) => enter({ state: 'busy', phase, ...base }),
    retrying: (attempt, message) => enter({ state: 'retrying', attempt, message, ...base }),
    uses: (servers) => {
      base = { ...base, servers };
      enter({ state: 'busy', phase: 'processing', ...base });
    },
    abort: (reason) => run.abort(reason),
    onInstructions,
  };
  scope.enter('processing');
  const info = known?.info ?? (await infoOf(scope));
  let chosen = known?.chosen;
  try {
    chosen ??= await modelFor(
      parts,
      { info, origin, above: async () => (await line(info)).slice(1) },
      request,
    );
  } catch (error) {
    return await recordUnusable(scope, request, error);
  }
  const asked = await withoutRefused(scope, request);
  const now = asked === request ? info : await infoOf(scope);
  return (await endIfComplete(scope, asked, now)) ?? (await perform(scope, asked, { chosen, info: now }));
}

/** What a run without input finds in the inbox. */
export interface FoundInInbox {
  /** The items that it takes up. Undefined without items, or when an interrupted run has to continue first. */
  readonly items?: readonly InboxItem[];
  readonly inboxIsEmpty?: boolean;
}

/** Reads the inbox for a run without input; a run with input leaves it for later. */
export async function waitingFor(
  { input }: RunRequest,
  held: Hold,
  { store, id }: { readonly store: WorkerParts['store']; readonly id: string },
): Promise<FoundInInbox> {
  if (input !== undefined) return {};
  const inbox = await held.inbox();
  const decision = decide(inbox, 'ended', held.lease.owner);
  if (decision.do !== 'start') return { inboxIsEmpty: inbox.length === 0 };
  const isAnswer = decision.items.some(({ body }) => body.type === 'answer');
  return !isAnswer && (await wasInterrupted(store, id)) ? {} : { items: decision.items };
}

/** The status after a run: idle, unless it waits for an answer or failed. */
function statusAfter({ run, finish, error }: RunResult): RunStatus {
  if (finish === 'waiting') return { state: 'waiting', run };
  if (finish === 'error')
    return { state: 'error', run, ...(error !== undefined && { message: error.message }) };
  return { state: 'idle' };
}
