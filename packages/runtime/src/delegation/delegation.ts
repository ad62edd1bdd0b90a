import { setTimeout as sleep } from 'node:timers/promises';
import { checkActive, type SessionInfo, TapeError } from '@tapedeck/tape';
import PQueue from 'p-queue';
import { runPoint } from '../crash-point.ts';
import type { DeckParts } from '../deck/deck.ts';
import { messageOf, SessionError } from '../errors.ts';
import { needActive } from '../lease/need-active.ts';
import { childIsBusy } from '../merge/merge.ts';
import { toldBy } from '../merge/outcome.ts';
import { settleParent } from '../merge/settle-parent.ts';
import { isEnded } from '../merge/spawn-calls.ts';
import { Child } from '../session/child.ts';
import type { Session } from '../session/session.ts';
import { EventLog } from '../stream/event-log.ts';
import { type Delivered, deliver } from './deliver.ts';
import { depthOf } from './fork-limits.ts';
import {
  checkModels,
  type Delegated,
  type DelegateTask,
  forkOptions,
  needTools,
  runOptionsOf,
} from './options.ts';
import type { ChildEvent, ChildOutcome, RunEnd } from './outcome.ts';
import { needForks, spawn } from './spawn.ts';

const pollMs = 50;

interface Forked {
  readonly child: Child;
  readonly task: DelegateTask;
}

/**
 * A delegation under way: iterate it for what happens, await it for what the children came to, in the order of the
 * tasks. It goes on whether or not anyone reads. It rejects before anything is forked when a model cannot be used, or
 * when one of the children cannot be forked.
 */
export class Delegation implements AsyncIterable<ChildEvent>, PromiseLike<readonly ChildOutcome[]> {
  readonly #parts: DeckParts;
  readonly #parent: Session;
  readonly #asked: Delegated;
  readonly #signal: AbortSignal;
  readonly #events = new EventLog<ChildEvent>();
  readonly #controller = new AbortController();
  readonly #children: string[] = [];
  readonly #forked = Promise.withResolvers<readonly string[]>();
  readonly #outcomes: Promise<readonly ChildOutcome[]>;

  constructor(parts: DeckParts, parent: Session, asked: Delegated) {
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
    await needActive(this.#parts.store, this.#parent.id, 'delegate from');
    await checkModels(this.#parts, tasks, options);
    needTools(this.#parts, this.#parent, this.#asked);
    await this.#needAll();
    const forked: Forked[] = [];
    for (const task of tasks) {
      const child = await this.#childFor(task);
      this.#children.push(child.name);
      this.#events.push({ type: 'child-forked', session: child.name, task: task.task });
      forked.push({ child, task });
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
          this.#parts.jobs.delete(one.child.name);
        }
      })();
      before = outcome;
      return await outcome;
    });
    return await Promise.all(outcomes);
  }

  /** One child alone is not forked where the others cannot be. */
  async #needAll(): Promise<void> {
    const { tasks, options } = this.#asked;
    if (tasks.length < 2) return;
    const { by } = options;
    const parent = await this.#parent.info();
    for (const { resume } of tasks) if (resume !== undefined) await this.#resumed(parent, resume);
    const forks = tasks
      .filter(({ resume }) => resume === undefined)
      .map((task) => ({ options: forkOptions(task, options, by?.blocking === true), by }));
    await needForks(this.#parts, parent, forks);
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
    checkActive(info, 'go on with');
    return info;
  }

  async #childFor(task: DelegateTask): Promise<Child> {
    const { options } = this.#asked;
    const { by } = options;
    const parent = await this.#parent.info();
    if (task.resume !== undefined)
      return new Child(this.#parts, await this.#resumed(parent, task.resume), { onUnmerged: 'keep' });
    const fork = forkOptions(task, options, by?.blocking === true);
    const { info, directory } = await spawn(this.#parts, parent, { options: fork, by });
    return new Child(this.#parts, info, { ...fork, directory, onUnmerged: 'keep' });
  }

  /** Has a child run by the deck's engine, and waits until it has ended. */
  async #run({ child, task }: Forked): Promise<RunEnd> {
    const { jobs, engine, store } = this.#parts;
    // One child asked for twice, by its key, is started once: who asks again waits for the same end.
    const started = jobs.get(child.name);
    if (started !== undefined) return await started.end;
    const { promise: end, resolve } = Promise.withResolvers<RunEnd>();
    const run = async (cancelled: AbortSignal) => {
      resolve(await this.#runOne({ child, task }, AbortSignal.any([this.#signal, cancelled])));
    };
    jobs.set(child.name, { run, end });
    await engine.start({
      id: child.name,
      parent: child.parent,
      depth: await depthOf(store, await child.info()),
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
    const info = await child.info();
    const told = await toldBy(this.#parts.store, info);
    const ended = {
      session: child.name,
      usage: run.usage,
      text: told.text,
      ...(told.value !== undefined && typeof told.value !== 'string' && { output: told.value }),
    };
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
      const error = run.error ?? fault;
      return {
        ...ended,
        // As its parent was told.
        status: fault === undefined ? status : 'failed',
        merged,
        ...(error !== undefined && { error }),
      };
    } catch (error) {
      return { ...ended, status, merged: undefined, error: messageOf(error) };
    }
  }

  /** Merges a child whose task has ended: whoever ran it elsewhere may still be about to let go of it. */
  async #deliver(info: SessionInfo, run: RunEnd): Promise<Delivered> {
    const { strategy, onConflict, at, by } = this.#asked.options;
    const { closing } = this.#parts;
    const broken =
      run.broken === true
        ? ({
            status: 'failed',
            text: `Error: ${run.error ?? 'unknown'}`,
            force: true,
            strategy: 'result',
          } as const)
        : {};
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
