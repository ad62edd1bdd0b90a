import { setTimeout as sleep } from 'node:timers/promises';
import { TapeError } from '@tapedeck/tape';
import { runPoint } from '../crash-point.ts';
import { messageOf, SessionError } from '../errors.ts';
import { hasTaken, isDone, isEnded } from '../merge/spawn-calls.ts';
import { rowAfter } from '../run/run.ts';
import type { ChildrenElsewhere } from './elsewhere.ts';
import type { Forked } from './fork-tasks.ts';
import { runOptionsOf } from './options.ts';
import type { RunEnd } from './outcome.ts';
import { messageMeta, orderedRun, traceparentHere } from './run-spec.ts';
import type { DelegationScope } from './scope.ts';

/** How often a child is looked at that something else runs, in milliseconds. */
const pollMs = 50;

/**
 * Runs a child on the deck's engine, and waits for its end.
 * @param onStarted called once the engine has it
 */
export async function runChild(
  scope: DelegationScope,
  forked: Forked,
  onStarted: () => void,
): Promise<RunEnd> {
  const { parts, parent, signal, elsewhere } = scope;
  const { child, task, depth } = forked;
  const { startedChildren, engine } = parts;
  for (;;) {
    const started = startedChildren.get(child.name);
    if (started === undefined) break;
    const end = await started.end;
    // Two tasks with the same key are one child: it starts once, and both wait for its end.
    if (task.resume === undefined) return end;
    // A second task for a child that runs waits until the result of the first is merged.
    await sleep(pollMs);
  }
  if (elsewhere !== undefined) return await runElsewhere({ ...scope, elsewhere }, forked, onStarted);
  const { promise: end, resolve } = Promise.withResolvers<RunEnd>();
  const run = async (cancelled: AbortSignal) => {
    resolve(await runHere(scope, forked, AbortSignal.any([signal, cancelled])));
  };
  startedChildren.set(child.name, { run, end });
  await engine.start({
    id: child.name,
    parent: parent.name,
    depth,
    ...(task.priority !== undefined && { priority: task.priority }),
  });
  runPoint('child/started');
  onStarted();
  return await end;
}

async function runElsewhere(
  {
    parts: { store, startedChildren, engine },
    parent,
    delegated: { options },
    signal,
    elsewhere,
  }: DelegationScope & { readonly elsewhere: ChildrenElsewhere },
  forked: Forked,
  onStarted: () => void,
): Promise<RunEnd> {
  const { child, depth, isStarted } = forked;
  const ordered = orderedRun(
    parent,
    { session: child.name, id: child.id, depth },
    { ...forked, options, traceparent: await traceparentHere() },
  );
  const end = elsewhere.end(ordered, signal);
  startedChildren.set(child.name, { run: async () => {}, end });
  // A lead that is done again also finds children that have ended.
  const isQueued = isStarted === true || (await isDone(store, await child.info(), ordered.order.message));
  if (!isQueued) await engine.start(ordered);
  onStarted();
  return await end;
}

async function runHere(
  { parts, parent, delegated, events, progress }: DelegationScope,
  { child, task, earlier, senders }: Forked,
  signal: AbortSignal,
): Promise<RunEnd> {
  const { key, resume } = task;
  const meta = messageMeta(parent, { task, options: delegated.options, senders });
  const options = {
    ...runOptionsOf(parts, parent, { task, options: delegated.options }),
    ...(Object.keys(meta).length > 0 && { meta }),
    signal,
  };
  const isTaken = key !== undefined && (await hasTaken(parts.store, child, key));
  const again = resume !== undefined && !isTaken;
  // Found by its key. Its merge reports why it has none.
  if (earlier.repeated === true && (await child.info()).delivery === 'discarded') return {};
  for (;;) {
    try {
      const run = again
        ? child.run(task.task, options)
        : child.run(undefined, { ...options, unlessEnded: true });
      for await (const event of run) {
        events.push({ type: 'child-event', session: child.name, event });
        progress.take(child.name, event);
      }
      const result = await run;
      const { usage, error, finish } = result;
      if (finish === 'waiting') return { usage, waits: true };
      const row = run.following === undefined ? rowAfter.get(result) : undefined;
      return {
        usage,
        ...(error !== undefined && { error: error.message, code: error.code }),
        ...(row !== undefined && { row }),
      };
    } catch (error) {
      const code = error instanceof SessionError || error instanceof TapeError ? error.code : undefined;
      const isArchived = code === 'TAPE_ARCHIVED';
      // An earlier delegation with the same key has already run this child to its end.
      if (code === 'SESSION_ENDED' || (isArchived && isEnded(await child.info()))) return {};
      // The child has not begun; recovery runs it.
      const failed = { error: messageOf(error), ...(code !== undefined && { code }) };
      if (code === 'SESSION_CLOSED' || isArchived) return { ...failed, closed: true };
      // The run could not start or could not be recorded. The parent receives the failure in any case.
      if (code !== 'SESSION_BUSY') return { ...failed, broken: true };
      // Another process delegated the same key and runs the child: wait for it.
      if (signal.aborted) return failed;
      await sleep(pollMs);
    }
  }
}
