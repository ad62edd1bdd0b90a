import type { Entry, SessionInfo } from '@tapedeck/tape';
import { clientCalls, isObject, select } from '@tapedeck/tape/internal';
import { wasInterrupted } from '../tools/interrupted.ts';
import { openBatch } from '../tools/open-batch.ts';
import { noUsage } from '../usage/usage.ts';
import { endOnTape } from './end-on-tape.ts';
import { infoOf, type RunRequest, type RunScope } from './request.ts';
import type { RunResult } from './run.ts';

/**
 * Ends a run without input whose session has nothing to continue: no model is called, and no entry is written.
 * Undefined when there is something: a run that was cut off, failed or was stopped, open calls, a task that has not
 * begun, or a message that has no answer.
 */
export async function endIfComplete(
  scope: RunScope,
  request: RunRequest,
  info: SessionInfo,
): Promise<RunResult | undefined> {
  const { input, items, options, inboxIsEmpty, run } = request;
  // With `unlessEnded`, the state of the task decides.
  if (input !== undefined || items !== undefined || options.unlessEnded === true) return undefined;
  const { parts, session, hold, origin } = scope;
  const { store } = parts;
  if ((await openBatch(store, info)).length > 0 || (await wasInterrupted(store, session.id)))
    return undefined;
  // Merges that wait are messages without an answer.
  if (inboxIsEmpty !== true) await hold.drain();
  const now = inboxIsEmpty === true ? info : await infoOf(scope);
  const shown = select(await Array.fromAsync(store.views.entries(now.id)), 'last-boundary').entries;
  if (isOpen(shown, origin.terms.output !== undefined)) return undefined;
  if (now.task === 'running') {
    // The process of the task died before it recorded the end.
    const task = (await endOnTape(store, { ...scope, info: now })) ?? 'completed';
    await store.sessions.update(now.id, { task }, { lease: hold.lease });
  }
  return {
    run,
    session: session.name,
    text: '',
    finish: 'stop',
    steps: 0,
    usage: noUsage,
    from: now.head + 1,
    to: now.head,
    nothingToContinue: true,
  };
}

/** Whether the entries of a view, in order, end with something that a model has not answered. Pure. */
function isOpen(shown: readonly Entry[], owesResult: boolean): boolean {
  for (const entry of shown.toReversed()) {
    const found = isOpenAt(entry, owesResult);
    if (found !== undefined) return found;
  }
  return false;
}

/** Notes of runs that did not come to their answer. */
const cutOff: ReadonlySet<string> = new Set(['run/aborted', 'run/error', 'run/halted', 'run/interrupted']);

/** How an answer finished that is not whole. */
const cutAnswers: ReadonlySet<unknown> = new Set(['length', 'content-filter', 'error']);

/** Whether an entry leaves something open; undefined when it does not decide. Pure. */
function isOpenAt({ kind, name = '', payload, meta }: Entry, owesResult: boolean): boolean | undefined {
  if (kind === 'event') return cutOff.has(name) ? true : undefined;
  if (kind === 'result') return meta.run === undefined ? undefined : false;
  if (kind === 'anchor') return name === 'intention' ? true : undefined;
  if (meta.context === false) return undefined;
  if (kind === 'tool-result') return true;
  if (kind !== 'message' || !isObject(payload) || payload.role === 'system') return undefined;
  if (payload.role !== 'assistant') return true;
  return (
    owesResult || meta.partial === true || cutAnswers.has(meta.finish) || clientCalls(payload).length > 0
  );
}
