/**
 * Delegation: children that work on tasks. `delegation.ts` forks one child for each task (`spawn.ts`, within
 * `fork-limits.ts`), runs them on an engine (`engine.ts`) and merges each when it ends (`deliver.ts`). `recover.ts`
 * does the same for children of a process that died. These files know sessions and children only as the interfaces of
 * `parts.ts`. Imports `run` and what lies below.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { assertActive, note, type SessionInfo, TapeError } from '@tapedeck/tape';
import PQueue from 'p-queue';
import { runPoint } from '../crash-point.ts';
import { messageOf, SessionError } from '../errors.ts';
import { recordFailure } from '../merge/failure.ts';
import { childIsBusy } from '../merge/merge.ts';
import { resultOf } from '../merge/outcome.ts';
import { settleParent } from '../merge/settle-parent.ts';
import { isEnded } from '../merge/spawn-calls.ts';
import { EventLog } from '../stream/event-log.ts';
import { type Line, lineOf } from '../terms/terms.ts';
import { type Delivered, deliver } from './deliver.ts';
import { depthOf } from './fork-limits.ts';
import {
  assertModels,
  assertTasks,
  assertTools,
  type Delegated,
  type DelegateTask,
  forkOptions,
  runOptionsOf,
} from './options.ts';
import type { ChildEvent, ChildOutcome, RunEnd } from './outcome.ts';
import type { DelegationParts, Delegator } from './parts.ts';
import { assertForks, spawn } from './spawn.ts';

const pollMs = 50;

interface Forked {
  readonly child: Delegator;
  readonly task: DelegateTask;
  /** How many forks for work lie between the child and its root. */
  readonly depth: number;
}

/**
 * A delegation under way: iterate it for what happens, await it for what the children came to, in the order of the
 * tasks. It goes on whether or not anyone reads. It rejects before anything is forked when a model cannot be used, or
 * when one of the children cannot be forked.
 */
export class Delegation implements AsyncIterable<ChildEvent>, PromiseLike<readonly ChildOutcome[]> {
  readonly #parts: DelegationParts;
  readonly #parent: Delegator;
  readonly #asked: Delegated;
  readonly #signal: AbortSignal;
  readonly #events = new EventLog<ChildEvent>();
  readonly #controller = new AbortController();
  readonly #children: string[] = [];
  readonly #forked = Promise.withResolvers<readonly string[]>();
  readonly #outcomes: Promise<readonly ChildOutcome[]>;

  constructor(parts: DelegationParts, parent: Delegator, asked: Delegated) {
    this.#parts = parts;
    this.#parent = parent;
    this.#asked = asked;
    // A child may start later than the run that it is for was aborted.
    const given = [asked.options.signal, parts.worker(parent).forChildren].filter(
      (signal) => signal !== undefined,
    );
    this.#signal = AbortSignal.any([this.#controller.signal, ...given]);
    this.#outcomes = this.#work().finally(() => this.#events.close());
    this.#outcomes.catch((error) => this.#forked.reject(error));
    const { delegations } = parts;
    const outcomes = this.#outcomes;
    delegations.add(outcomes);
    const over = () => delegations.delete(outcomes);
    outcomes.then(over, over);
    this.#forked.promise.catch(() => {});
  }

  /** The names of the children, once they are forked. */
  get children(): readonly string[] {
    return this.#children;
  }

  /** The names of the children, when all of them are forked. Rejects when they cannot be. */
  get forked(): Promise<readonly string[]> {
    return this.#forked.promise;
  }

  /** Stops all children that run; what they did is merged as aborted. */
  abort(reason = 'aborted by parent'): void {
    this.#controller.abort(new Error(reason));
  }

  then<A = readonly ChildOutcome[], B = never>(
    fulfilled?: ((outcomes: readonly ChildOutcome[]) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#outcomes.then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<ChildEvent> {
    yield* this.#events;
    await this.#outcomes;
  }

  async #work(): Promise<readonly ChildOutcome[]> {
    const { tasks, options } = this.#asked;
    assertTasks(this.#parent.name, this.#asked);
    const info = await this.#parent.info();
    assertActive(info, 'delegate from');
    await assertModels(this.#parts, tasks, options);
    assertTools(this.#parts, this.#parent, this.#asked);
    const line = await lineOf(this.#parts.store, await this.#parts.worker(info).facts(info));
    await this.#needAll(line);
    const forked: Forked[] = [];
    for (const task of tasks) {
      const one = await this.#childFor(task, line);
      this.#children.push(one.child.name);
      this.#events.push({ type: 'child-forked', session: one.child.name, task: task.task });
      forked.push(one);
    }
    this.#forked.resolve(this.#children);
    const queue = new PQueue({ concurrency: options.concurrency ?? 4 });
    let before: Promise<unknown> = Promise.resolve();
    const outcomes = forked.map(async (one) => {
      const turn = before;
      const outcome = (async () => {
        const run = await queue.add(async () => await this.#run(one), { priority: one.task.priority ?? 0 });
        if (options.order === 'spawn') await turn.catch(() => {});
        try {
          return await this.#bringHome(one, run);
        } finally {
          // Until here nobody else brings it home.
          this.#parts.startedChildren.delete(one.child.name);
        }
      })();
      before = outcome;
      return await outcome;
    });
    return await Promise.all(outcomes);
  }

  /** One child alone is not forked where the others cannot be. */
  async #needAll(parent: Line): Promise<void> {
    const { tasks, options } = this.#asked;
    if (tasks.length < 2) return;
    const { by } = options;
    for (const { resume } of tasks) if (resume !== undefined) await this.#resumed(parent[0].info, resume);
    const forks = tasks
      .filter(({ resume }) => resume === undefined)
      .map((task) => ({ options: forkOptions(task, options, by?.blocking === true), by }));
    await assertForks(this.#parts, parent, forks);
  }

  /** A child that is to be gone on with. */
  async #resumed(parent: SessionInfo, ref: string): Promise<SessionInfo> {
    const info = await this.#parts.store.find(ref);
    if (info?.parentId !== parent.id)
      throw new SessionError(
        'SESSION_BAD_INPUT',
        `cannot go on with '${ref}': it is no child of '${parent.name}'`,
        { data: { session: parent.name, child: ref } },
      );
    if (info.delivery === 'discarded')
      throw new SessionError('SESSION_ENDED', `cannot go on with '${ref}': it was discarded`, {
        data: { session: ref },
      });
    assertActive(info, 'go on with');
    return info;
  }

  async #childFor(task: DelegateTask, parent: Line): Promise<Forked> {
    const { options } = this.#asked;
    const { by } = options;
    if (task.resume !== undefined) {
      const resumed = await this.#resumed(parent[0].info, task.resume);
      const facts = await this.#parts.worker(resumed).facts(resumed);
      const child = this.#parts.child(resumed, { onUnmerged: 'keep' });
      return { child, task, depth: depthOf([facts, ...parent]) };
    }
    const fork = forkOptions(task, options, by?.blocking === true);
    const { info, depth, directory } = await spawn(this.#parts, parent, { options: fork, by });
    return { child: this.#parts.child(info, { ...fork, directory, onUnmerged: 'keep' }), task, depth };
  }

  /** Has a child run by the deck's engine, and waits until it has ended. */
  async #run(forked: Forked): Promise<RunEnd> {
    const { child, task, depth } = forked;
    const { startedChildren, engine } = this.#parts;
    // One child asked for twice, by its key, is started once: who asks again waits for the same end.
    const started = startedChildren.get(child.name);
    if (started !== undefined) return await started.end;
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
    return await end;
  }

  async #runOne({ child, task }: Forked, signal: AbortSignal): Promise<RunEnd> {
    const options = {
      ...runOptionsOf(this.#parts, this.#parent, { task, options: this.#asked.options }),
      signal,
    };
    const again = task.resume !== undefined;
    for (;;) {
      try {
        const run = again
          ? child.run(task.task, options)
          : child.run(undefined, { ...options, unlessEnded: true });
        for await (const event of run) this.#events.push({ type: 'child-event', session: child.name, event });
        const { usage, error, finish } = await run;
        if (finish === 'waiting') return { usage, waits: true };
        return { usage, ...(error !== undefined && { error: error.message }) };
      } catch (error) {
        const code = error instanceof SessionError || error instanceof TapeError ? error.code : undefined;
        const isArchived = code === 'TAPE_ARCHIVED';
        // A child of a key that was delegated before, and came to its end then.
        if (code === 'SESSION_ENDED' || (isArchived && isEnded(await child.info()))) return {};
        // It has not begun, and is left to whoever recovers it.
        if (code === 'SESSION_CLOSED' || isArchived) return { error: messageOf(error), closed: true };
        // The run could not start or not be recorded: its parent is told all the same.
        if (code !== 'SESSION_BUSY') return { error: messageOf(error), broken: true };
        // Another process has been given the same key, and is at work on it.
        if (signal.aborted) return { error: messageOf(error) };
        await sleep(pollMs);
      }
    }
  }

  async #bringHome({ child }: Forked, run: RunEnd): Promise<ChildOutcome> {
    const { store } = this.#parts;
    if (run.broken === true) await this.#recordBroken(await child.info(), run);
    const info = await child.info();
    const ended = { session: child.name, usage: run.usage, ...(await resultOf(store, info)) };
    if (run.waits === true || run.closed === true) {
      const error = run.error ?? `cannot merge '${child.name}' yet: it waits for an answer`;
      return { ...ended, status: 'running', merged: undefined, error };
    }
    const status = run.broken === true ? 'failed' : (info.task ?? 'completed');
    this.#events.push({ type: 'child-ended', session: child.name, status });
    runPoint('child/ended');
    try {
      const { merged, fault } = await this.#deliver(info, run);
      if (merged !== undefined) this.#events.push({ type: 'child-merged', session: child.name, merged });
      // A result that could not be used is one no longer.
      if (fault !== undefined)
        return {
          session: child.name,
          usage: run.usage,
          ...(await resultOf(store, info)),
          status: 'failed',
          merged,
          error: run.error ?? fault,
        };
      return { ...ended, status, merged, ...(run.error !== undefined && { error: run.error }) };
    } catch (error) {
      return { ...ended, status, merged: undefined, error: messageOf(error) };
    }
  }

  /** A run that could not start or be recorded left no end on the child's tape. */
  async #recordBroken(info: SessionInfo, { error: message = 'unknown' }: RunEnd): Promise<void> {
    try {
      await recordFailure(this.#parts.store, info, note('run/error', { message }));
    } catch {
      // The merge is made by force, and says that the child failed.
    }
  }

  /** Merges a child whose task has ended: whoever ran it elsewhere may still be about to let go of it. */
  async #deliver(info: SessionInfo, run: RunEnd): Promise<Delivered> {
    const { strategy, onConflict, at, by } = this.#asked.options;
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
          // The call of a run that is being aborted never gets its result.
          answered: by?.blocking === true && !this.#signal.aborted,
          // That call stays open until the next run of the parent: nobody waits for that here.
          ...(by?.blocking === true || closing.aborted ? { waitMs: 0 } : { signal: closing }),
          // Whoever ran the parent may have died in a call, which nobody else would give a result.
          whileWaiting: async () =>
            await settleParent(this.#parts, info, { leaves: 'repeatable', deadline: 0 }),
        });
      } catch (error) {
        if (!childIsBusy(error) || this.#signal.aborted || closing.aborted) throw error;
        await sleep(pollMs);
      }
    }
  }
}
