/**
 * Delegation: children that work on tasks. `delegation.ts` forks one child for each task (`fork-tasks.ts`,
 * `spawn.ts`, within `fork-limits.ts`), runs them on an engine (`engine.ts`), shows the parent how each does
 * (`progress.ts`), and merges each when it ends (`deliver.ts`). These files know sessions and children only as the
 * interfaces of `parts.ts`. Imports `run` and what lies below.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { note, type SessionInfo, TapeError } from '@tapedeck/tape';
import PQueue from 'p-queue';
import { runPoint } from '../crash-point.ts';
import { isOfDatabase, messageOf, SessionError } from '../errors.ts';
import { recordFailure } from '../merge/failure.ts';
import { childIsBusy } from '../merge/merge.ts';
import { resultOf } from '../merge/outcome.ts';
import { settleParent } from '../merge/settle-parent.ts';
import { hasTaken, isDone, isEnded } from '../merge/spawn-calls.ts';
import { outputOf } from '../model/output.ts';
import { rowAfter } from '../run/run.ts';
import { EventLog } from '../stream/event-log.ts';
import type { SessionEvent } from '../stream/events.ts';
import { assertOutsideRun } from '../tools/current-call.ts';
import { childCallChunks, childCallsOf } from '../ui/child-calls.ts';
import { progressOf } from '../ui/children.ts';
import { type StartedChild, spawned } from '../ui/started.ts';
import { type Delivered, deliver } from './deliver.ts';
import { ChildrenElsewhere } from './elsewhere.ts';
import { type Forked, forkTasks, lineFor } from './fork-tasks.ts';
import { onceBack } from './once-back.ts';
import { type Delegated, type DelegateTask, runOptionsOf } from './options.ts';
import type { ChildEvent, ChildOutcome, RunEnd } from './outcome.ts';
import type { DelegationParts, Delegator } from './parts.ts';
import { DelegationProgress } from './progress.ts';
import { messageMeta, orderedRun, traceparentHere } from './run-spec.ts';

const pollMs = 50;

/**
 * A running delegation. Iterate it for its events; await it for the outcomes of the children, in the order of
 * the tasks. It runs without a reader, too. It rejects, before anything is forked, when a model cannot be
 * used or one of the children cannot be forked.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * const delegation = main.delegate(['Check the tests.', 'Check the changelog.']);
 * for await (const event of delegation) if (event.type === 'child-merged') console.log(event.merged.state);
 * // merged
 * // merged
 * console.log((await delegation).map(({ status }) => status)); // [ 'completed', 'completed' ]
 * ```
 */
export class Delegation<Outcomes extends readonly ChildOutcome<unknown>[] = readonly ChildOutcome[]>
  implements AsyncIterable<ChildEvent>, PromiseLike<Outcomes>
{
  readonly #parts: DelegationParts;
  readonly #parent: Delegator;
  readonly #delegated: Delegated;
  readonly #signal: AbortSignal;
  readonly #events = new EventLog<ChildEvent>();
  readonly #controller = new AbortController();
  readonly #children: string[] = [];
  /** What those who watch the parent see of the children. */
  readonly #progress: DelegationProgress;
  /** Waits for the children, where the deck's engine runs them elsewhere. */
  readonly #elsewhere: ChildrenElsewhere | undefined;
  readonly #forked = Promise.withResolvers<readonly string[]>();
  readonly #started = Promise.withResolvers<void>();
  /** How many children the engine does not have yet. */
  #left = 0;
  readonly #outcomes: Promise<Outcomes>;

  constructor(parts: DelegationParts, parent: Delegator, delegated: Delegated) {
    this.#parts = parts;
    this.#parent = parent;
    this.#delegated = delegated;
    this.#elsewhere = parts.engine.isElsewhere === true ? new ChildrenElsewhere(parts) : undefined;
    this.#progress = new DelegationProgress(delegated.options, (event) =>
      parts.worker({ session: parent.name, id: parent.id }).emitEvent(event),
    );
    // A child that starts after its parent's run was aborted must see the abort, too.
    const signals = [
      delegated.options.signal,
      parts.worker({ session: parent.name, id: parent.id }).forChildren,
    ].filter((signal) => signal !== undefined);
    this.#signal = AbortSignal.any([this.#controller.signal, ...signals]);
    this.#outcomes = this.#work().finally(() => this.#events.close());
    this.#outcomes.catch((error) => {
      this.#forked.reject(error);
      this.#started.reject(error);
    });
    const { delegations } = parts;
    const outcomes = this.#outcomes;
    delegations.add(outcomes);
    const over = () => delegations.delete(outcomes);
    outcomes.then(over, over);
    this.#forked.promise.catch(() => {});
    this.#started.promise.catch(() => {});
  }

  /** The names of the children forked so far. */
  get children(): readonly string[] {
    return this.#children;
  }

  /** Resolves with the names of the children once all are forked. Rejects when one cannot be. */
  get forked(): Promise<readonly string[]> {
    return this.#forked.promise;
  }

  /**
   * Resolves once the engine has all children. Where it runs them in other processes, these run and merge them from then
   * on, also if this process ends. Rejects when one cannot be forked or queued.
   */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  /** Aborts all running children and merges their work as aborted. */
  abort(reason = 'aborted by parent'): void {
    this.#controller.abort(new Error(reason));
  }

  then<A = Outcomes, B = never>(
    fulfilled?: ((outcomes: Outcomes) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const outcomes = this.#whyNotAwaited() ?? this.#outcomes;
    return outcomes.then(fulfilled, rejected);
  }

  /** The events of the children, from the first. Rejects at the end as the delegation does. */
  async *[Symbol.asyncIterator](): AsyncIterator<ChildEvent> {
    await this.#whyNotAwaited();
    yield* this.#events;
    await this.#outcomes;
  }

  /**
   * A rejection for a tool that would wait for its own run: that takes the results when the tool has ended. The call
   * of `delegateTool` gets them as its own result.
   */
  #whyNotAwaited(): Promise<never> | undefined {
    if (this.#delegated.options.by !== undefined) return undefined;
    try {
      assertOutsideRun(
        this.#parts.store,
        this.#parent.name,
        `wait for the children of '${this.#parent.name}'`,
      );
      return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #work(): Promise<Outcomes> {
    const { options } = this.#delegated;
    const line = await lineFor(this.#parts, this.#parent, this.#delegated);
    const onForked = ({ child, task, earlier }: Forked) => {
      this.#children.push(child.name);
      this.#events.push({ type: 'child-forked', session: child.name, task: task.task, ...earlier });
      this.#progress.begin(child.name, task.task);
    };
    const forked = await this.#parts.forking.add(
      async () => await forkTasks(this.#parts, line, { delegated: this.#delegated, onForked }),
    );
    this.#left = forked.length;
    if (this.#left === 0) this.#started.resolve();
    this.#forked.resolve(this.#children);
    // Elsewhere, the processes that run children say how many each of them runs.
    const most = this.#elsewhere === undefined ? (options.concurrency ?? 4) : Number.POSITIVE_INFINITY;
    const queue = new PQueue({ concurrency: most });
    let before: Promise<unknown> = Promise.resolve();
    const outcomes = forked.map(async (one) => {
      const turn = before;
      const outcome = (async () => {
        const run = await queue.add(
          AsyncLocalStorage.bind(async () => await this.#run(one)),
          { priority: one.task.priority ?? 0 },
        );
        if (options.order === 'spawn') await turn.catch(() => {});
        try {
          return await this.#merge(one, run);
        } finally {
          // An entry here keeps other parts of this process from merging the child.
          this.#parts.startedChildren.delete(one.child.name);
        }
      })();
      before = outcome;
      return await outcome;
    });
    // One outcome for each task, with the result that the schema of the task makes.
    return (await Promise.all(outcomes)) as readonly ChildOutcome<unknown>[] as Outcomes;
  }

  /** Shows how a child ended, or what it waits for, to those who watch the parent. */
  async #show(
    { child, task, earlier }: Forked,
    {
      status,
      text,
      error,
      waits,
    }: Pick<ChildOutcome, 'status' | 'text' | 'waits'> & { readonly error?: string | undefined },
  ): Promise<void> {
    // What the tape says of a child that has run before: this process has seen a part of it.
    const isSeen = this.#elsewhere === undefined && earlier.repeated !== true && task.resume === undefined;
    if (waits !== true && isSeen) {
      this.#progress.end(child.name, { status, text, error });
      return;
    }
    const { store, worker } = this.#parts;
    const started = this.#startedOf(await child.info(), task);
    this.#progress.settle(child.name, await progressOf(store, started), error);
    const parent = { session: this.#parent.name, id: this.#parent.id };
    if (started.isAwaited) worker(parent).emitChunks(childCallChunks(await childCallsOf(store, [started])));
  }

  /** A child as the call that delegates has started or resumed it. */
  #startedOf(info: SessionInfo, { task, key, resume }: DelegateTask<unknown>): StartedChild {
    const { by } = this.#delegated.options;
    if (resume === undefined || key === undefined || by === undefined) return spawned(info);
    return { info, call: by.toolCallId, resumed: { task, key }, isAwaited: by.blocking };
  }

  #onEvent(session: string, event: SessionEvent): void {
    this.#events.push({ type: 'child-event', session, event });
    this.#progress.take(session, event);
  }

  /** Runs a child on the deck's engine and waits for its end. */
  async #run(forked: Forked): Promise<RunEnd> {
    const { child, task, depth } = forked;
    const { startedChildren, engine } = this.#parts;
    for (;;) {
      const started = startedChildren.get(child.name);
      if (started === undefined) break;
      const end = await started.end;
      // Two tasks with the same key are one child: it starts once, and both wait for its end.
      if (task.resume === undefined) return end;
      // A second task for a child that runs waits until the result of the first is merged.
      await sleep(pollMs);
    }
    if (this.#elsewhere !== undefined) {
      const ordered = orderedRun(
        this.#parent,
        { session: child.name, id: child.id, depth },
        { ...forked, options: this.#delegated.options, traceparent: await traceparentHere() },
      );
      const end = this.#elsewhere.end(ordered, this.#signal);
      startedChildren.set(child.name, { run: async () => {}, end });
      // A lead that is done again also finds children that have ended.
      const isQueued =
        forked.isStarted === true ||
        (await isDone(this.#parts.store, await child.info(), ordered.order.message));
      if (!isQueued) await engine.start(ordered);
      this.#onStarted();
      return await end;
    }
    const { promise: end, resolve } = Promise.withResolvers<RunEnd>();
    const run = async (cancelled: AbortSignal) => {
      resolve(await this.#runOne(forked, AbortSignal.any([this.#signal, cancelled])));
    };
    startedChildren.set(child.name, { run, end });
    await engine.start({
      id: child.name,
      parent: this.#parent.name,
      depth,
      ...(task.priority !== undefined && { priority: task.priority }),
    });
    runPoint('child/started');
    this.#onStarted();
    return await end;
  }

  #onStarted(): void {
    this.#left -= 1;
    if (this.#left === 0) this.#started.resolve();
  }

  async #runOne({ child, task, earlier, senders }: Forked, signal: AbortSignal): Promise<RunEnd> {
    const { key, resume } = task;
    const meta = messageMeta(this.#parent, { task, options: this.#delegated.options, senders });
    const options = {
      ...runOptionsOf(this.#parts, this.#parent, { task, options: this.#delegated.options }),
      ...(Object.keys(meta).length > 0 && { meta }),
      signal,
    };
    const isTaken = key !== undefined && (await hasTaken(this.#parts.store, child, key));
    const again = resume !== undefined && !isTaken;
    // Found by its key. Its merge reports why it has none.
    if (earlier.repeated === true && (await child.info()).delivery === 'discarded') return {};
    for (;;) {
      try {
        const run = again
          ? child.run(task.task, options)
          : child.run(undefined, { ...options, unlessEnded: true });
        for await (const event of run) this.#onEvent(child.name, event);
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

  async #merge(forked: Forked, run: RunEnd): Promise<ChildOutcome<unknown>> {
    const { child, task, earlier } = forked;
    if (run.broken === true) await this.#recordBroken(await child.info(), run);
    const info = await this.#onceBack(async () => run.row ?? (await child.info()));
    const { result, fault: unfit } = await this.#onceBack(() => this.#resultOf(info, task));
    const ended = { session: child.name, ...earlier, usage: run.usage, ...result };
    if (run.waits === true || run.closed === true) {
      const error = run.error ?? `cannot merge '${child.name}' yet: it waits for an answer`;
      const waits = run.waits === true ? ({ waits: true } as const) : {};
      const outcome = { ...ended, status: 'running', merged: undefined, error, ...waits } as const;
      await this.#onceBack(() => this.#show(forked, outcome));
      return outcome;
    }
    const status = run.broken === true ? 'failed' : (info.task ?? 'completed');
    const { error: message, code } = run;
    this.#events.push({
      type: 'child-ended',
      session: child.name,
      status,
      text: ended.text,
      ...(message !== undefined && { error: { ...(code !== undefined && { code }), message } }),
    });
    // Before its report reaches the parent, whose run may then end.
    await this.#onceBack(() => this.#show(forked, { status, text: ended.text, error: message ?? unfit }));
    runPoint('child/ended');
    try {
      const { merged, fault } = this.#ofThis(forked, await this.#onceBack(() => this.#deliver(info, run)));
      if (merged !== undefined) this.#events.push({ type: 'child-merged', session: child.name, merged });
      // The refused result is recorded as a failure, so read the outcome again.
      if (fault !== undefined) {
        const { result } = await this.#resultOf(info, task);
        const error = run.error ?? fault;
        await this.#show(forked, { status: 'failed', text: result.text, error });
        return {
          session: child.name,
          ...earlier,
          usage: run.usage,
          ...result,
          status: 'failed',
          merged,
          error,
        };
      }
      const error = run.error ?? unfit;
      return { ...ended, status, merged, ...(error !== undefined && { error }) };
    } catch (error) {
      // A run that is done again delegates again, and finds the child.
      if (this.#elsewhere !== undefined && isOfDatabase(error)) throw error;
      return { ...ended, status, merged: undefined, error: messageOf(error) };
    }
  }

  /** The worker that ran a child may merge it before this process does: it is this delegation's merge all the same. */
  #ofThis({ earlier, task }: Forked, { merged, ...delivered }: Delivered): Delivered {
    const isOwn = this.#elsewhere !== undefined && earlier.repeated !== true && task.resume === undefined;
    return { ...delivered, merged: isOwn && merged !== undefined ? { ...merged, repeated: false } : merged };
  }

  /**
   * The result of a child, as the schema of its task makes it. A result of an earlier run may not fit: then there
   * is only its text. `fault` says so, or why the child was aborted.
   */
  async #resultOf(
    info: SessionInfo,
    task: DelegateTask<unknown>,
  ): Promise<{
    readonly result: { readonly text: string; readonly output?: unknown };
    readonly fault?: string;
  }> {
    const { text, output: recorded, error: fault } = await resultOf(this.#parts.store, info);
    if (recorded === undefined) return { result: { text }, ...(fault !== undefined && { fault }) };
    try {
      return {
        result: { text, output: await outputOf(task.output ?? this.#delegated.options.output, recorded) },
      };
    } catch (error) {
      return { result: { text }, fault: `cannot use the result of '${info.session}': ${messageOf(error)}` };
    }
  }

  /**
   * Records the failure of a run that could not start or be recorded, which left no end on the child's tape.
   */
  async #recordBroken(info: SessionInfo, { error: message = 'unknown' }: RunEnd): Promise<void> {
    try {
      await recordFailure(this.#parts.store, info, note('run/error', { message }));
    } catch {
      // The forced merge reports the failure.
    }
  }

  /** Who waits for children that others run waits for the server, too. */
  async #onceBack<T>(act: () => Promise<T>): Promise<T> {
    if (this.#elsewhere === undefined) return await act();
    return await onceBack(act, () => this.#signal.aborted || this.#parts.closing.aborted);
  }

  /** Merges a child whose task has ended. Retries while the process that ran it still has its lease. */
  async #deliver(info: SessionInfo, run: RunEnd): Promise<Delivered> {
    const { strategy, onConflict, at, by } = this.#delegated.options;
    const { closing } = this.#parts;
    const broken =
      run.broken === true ? ({ status: 'failed', force: true, strategy: 'result' } as const) : {};
    for (;;) {
      try {
        return await deliver(this.#parts, info, {
          ...(typeof strategy === 'function' && { strategy }),
          ...(onConflict !== undefined && { onConflict }),
          ...(at !== undefined && { at }),
          ...broken,
          // A call that an abort leaves open gets the outcome too: from its tool, or from the parent's next run.
          answered: by?.blocking === true,
          // A blocking call stays open until the parent's next run, so waiting for the merge here would not
          // end.
          ...(by?.blocking === true || closing.aborted ? { waitMs: 0 } : { signal: closing }),
          // The process that ran the parent may have died in a call. Without a result that call blocks the
          // merge.
          whileWaiting: async () =>
            await settleParent(this.#parts, info, { leaves: 'repeatable', deadline: 0 }),
        });
      } catch (error) {
        // Elsewhere its owner has ended it, and gives its lease back in a moment.
        const isLeft = this.#signal.aborted && this.#elsewhere === undefined;
        if (!childIsBusy(error) || isLeft || closing.aborted) throw error;
        await sleep(pollMs);
      }
    }
  }
}
