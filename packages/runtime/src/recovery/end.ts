import { processOwner, type SessionInfo } from '@tapedeck/tape';
import type { DelegationParts } from '../delegation/parts.ts';
import { type Ended, hasTask, settle } from '../delegation/settle.ts';
import { hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { answerSpawns } from '../merge/answer-spawns.ts';
import { isAnswerable, isEnded } from '../merge/spawn-calls.ts';
import type { ModelSpec } from '../model/spec.ts';
import { endOnTape } from '../run/end-on-tape.ts';
import type { RunOptions } from '../run/options.ts';
import type { Run, RunResult } from '../run/run.ts';
import { openBatch } from '../tools/open-batch.ts';
import { closeOrphans } from '../tools/orphans.ts';

/** What a recovery runs sessions with. */
export interface Continuing {
  readonly model: ModelSpec | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Continues a session from the last step that its tape records, and then runs its inbox. A task that has ended
 * is not run again.
 * @throws what the run throws, and its error when it failed without a task, which would record it
 */
export async function resume(
  parts: DelegationParts,
  info: SessionInfo,
  continuing: Continuing,
): Promise<Ended> {
  if (!hasTask(info)) return await resumeRun(parts, info, continuing);
  if (isEnded(info)) return undefined;
  // A task whose tape shows its end needs no model.
  if ((await endOnTape(parts.store, await parts.worker(info).facts(info))) !== undefined)
    return await settle(parts, info, { abort: false });
  try {
    const child = parts.child(info, { onUnmerged: 'keep' });
    const { finish } = await child.run(undefined, { unlessEnded: true, ...optionsOf(continuing) });
    return finish === 'waiting' ? 'waiting' : 'resumed';
  } catch (error) {
    // Its tape shows its end, or another process ended it meanwhile.
    if ((error as { code?: unknown }).code === 'SESSION_ENDED') return undefined;
    throw error;
  }
}

/** Continues the interrupted run of a session, whatever its task, and then runs its inbox. */
export async function resumeRun(
  { worker, newId }: DelegationParts,
  info: SessionInfo,
  continuing: Continuing & {
    /** Continues calls that wait for children or for their tool, too. */
    readonly waiting?: boolean;
  },
): Promise<Ended> {
  const options = optionsOf(continuing);
  const started =
    continuing.waiting === true
      ? { run: worker(info).start({ run: newId(), options }) }
      : await worker(info).startQueued(options, { cutOff: true });
  if (started === undefined) return undefined;
  const { finish, error } = await lastResult(started.run);
  await worker(info).idle();
  await worker(info).delivered;
  if (error !== undefined) throw error;
  return finish === 'waiting' ? 'waiting' : 'resumed';
}

/** The result of the last of the runs that follow each other. */
async function lastResult(first: Run): Promise<RunResult> {
  let result = await first;
  for (let run = first.following; run !== undefined; run = run.following) result = await run;
  return result;
}

function optionsOf({ model, signal }: Continuing): RunOptions {
  return { ...(model !== undefined && { model }), ...(signal !== undefined && { signal }) };
}

/** Gives results to the calls that a run left open which is over, and starts no run. */
export async function answerOrphans({ store, newId }: DelegationParts, { id }: SessionInfo): Promise<void> {
  const held = await hold(store, id, { owner: processOwner(newId()) });
  try {
    const info = await store.sessions.find(id);
    if (info === undefined) return;
    await settleLeftovers(store, id, held);
    const keep: string[] = [];
    for (const call of await openBatch(store, id))
      if (!(await isAnswerable(store, info, call))) keep.push(call.toolCallId);
    await answerSpawns(store, id, { hold: held, keep });
    await closeOrphans(store, id, { hold: held, keep });
  } finally {
    await held.release();
  }
}
