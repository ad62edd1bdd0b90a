import { setTimeout as sleep } from 'node:timers/promises';
import type { Merged, Point, TapeStore, Task } from '@tapedeck/tape';
import type { Child } from './child.ts';
import type { DeckParts } from './deck.ts';
import { inProcessEngine } from './engine.ts';
import { messageOf, SessionError } from './errors.ts';
import { EventLog } from './event-log.ts';
import type { SessionEvent } from './events.ts';
import { childIsBusy, type MergeOptions } from './merge.ts';
import { type ModelSpec, resolveModel } from './model-spec.ts';
import type { Session } from './session.ts';
import type { RunOptions } from './session-options.ts';
import type { Usage } from './usage.ts';
import type { WorkspaceOptions } from './workspace-open.ts';

/** One piece of work for one child. */
export interface DelegateTask {
  /** What the child is to do. */
  readonly task: string;
  readonly contextSummary?: string;
  /** The child's name; by default derived from the parent's. */
  readonly name?: string;
  /** The same key on the same parent is the same child. */
  readonly key?: string;
  readonly model?: ModelSpec;
}

export interface DelegateOptions extends Omit<RunOptions, 'signal'>, WorkspaceOptions {
  /** Where what the children inherit begins. */
  readonly since?: Point;
  readonly fresh?: boolean;
  /** How many children run at once (default 4). */
  readonly concurrency?: number;
  /** In which order results are merged: as they come, or as they were spawned. */
  readonly order?: 'completion' | 'spawn';
  readonly signal?: AbortSignal;
}

/** What one child came to. */
export interface ChildOutcome {
  readonly session: string;
  readonly status: Task;
  readonly merged: Merged | undefined;
  readonly usage: Usage | undefined;
  readonly text: string;
  /** Why the child failed, or why its result could not be merged: one that waits for an answer is still running. */
  readonly error?: string;
}

/** What happens in a delegation, as it happens. */
export type ChildEvent =
  | { readonly type: 'child-forked'; readonly session: string; readonly task: string }
  | { readonly type: 'child-event'; readonly session: string; readonly event: SessionEvent }
  | { readonly type: 'child-ended'; readonly session: string; readonly status: Task }
  | { readonly type: 'child-merged'; readonly session: string; readonly merged: Merged };

/**
 * A delegation under way: iterate it for what happens, await it for what the children came to, in the order of the
 * tasks. It goes on whether or not anyone reads. It rejects before anything is forked when a model cannot be used.
 */
export class Delegation implements AsyncIterable<ChildEvent>, PromiseLike<readonly ChildOutcome[]> {
  readonly #events = new EventLog<ChildEvent>();
  readonly #controller = new AbortController();
  readonly #children: string[] = [];
  readonly #outcomes: Promise<readonly ChildOutcome[]>;

  constructor(
    parts: DeckParts,
    parent: Session,
    { tasks, options }: { tasks: readonly DelegateTask[]; options: DelegateOptions },
  ) {
    // A child may start later than the run that it is for was aborted.
    const given = [options.signal, parts.worker(parent).forChildren].filter((signal) => signal !== undefined);
    const signal = AbortSignal.any([this.#controller.signal, ...given]);
    this.#outcomes = this.#work(parts, parent, { tasks, options: { ...options, signal } }).finally(() =>
      this.#events.close(),
    );
    this.#outcomes.catch(() => {});
  }

  /** The names of the children, once they are forked. */
  get children(): readonly string[] {
    return this.#children;
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

  async #work(
    parts: DeckParts,
    parent: Session,
    {
      tasks,
      options,
    }: { tasks: readonly DelegateTask[]; options: DelegateOptions & { signal: AbortSignal } },
  ): Promise<readonly ChildOutcome[]> {
    await checkModels(parts, { tasks, options });
    const forked: { child: Child; task: DelegateTask }[] = [];
    for (const task of tasks) {
      const child = await parent.fork(forkOptions(task, options));
      this.#children.push(child.name);
      this.#events.push({ type: 'child-forked', session: child.name, task: task.task });
      forked.push({ child, task });
    }
    const runs = await this.#runAll(parts, forked, options);
    let before: Promise<unknown> = Promise.resolve();
    const outcomes = forked.map(async ({ child }, i) => {
      const turn = before;
      const outcome = (async () => {
        const run = await runs[i];
        if (options.order === 'spawn') await turn;
        return await this.#merge(child, run ?? { text: '' }, options.signal);
      })();
      before = outcome;
      return await outcome;
    });
    return await Promise.all(outcomes);
  }

  /** Starts every child on an engine of its own width; each promise tells how one ended. */
  async #runAll(
    parts: DeckParts,
    forked: readonly { child: Child; task: DelegateTask }[],
    { concurrency = 4, signal, ...options }: DelegateOptions & { signal: AbortSignal },
  ): Promise<Promise<RunEnd>[]> {
    const engine = parts.engine ?? inProcessEngine({ concurrency });
    if (parts.engine === undefined) await engine.work(parts.work);
    const ends: Promise<RunEnd>[] = [];
    for (const { child, task } of forked) {
      // One child asked for twice, by its key, is started once: who asks again waits for the same end.
      const started = parts.jobs.get(child.name);
      if (started !== undefined) {
        ends.push(started.end);
        continue;
      }
      const { promise: end, resolve } = Promise.withResolvers<RunEnd>();
      const model = task.model ?? options.model;
      const runOptions = { ...runOptionsOf(options), ...(model !== undefined && { model }) };
      const run = async (cancelled: AbortSignal) => {
        resolve(await this.#runOne(child, { ...runOptions, signal: AbortSignal.any([signal, cancelled]) }));
        parts.jobs.delete(child.name);
      };
      parts.jobs.set(child.name, { run, end });
      ends.push(end);
      await engine.start({
        id: child.name,
        parent: child.parent,
        depth: await depthOf(parts.store, child.name),
      });
    }
    return ends;
  }

  async #runOne(child: Child, options: RunOptions & { signal: AbortSignal }): Promise<RunEnd> {
    for (;;) {
      try {
        const run = child.run(undefined, { ...options, unlessEnded: true });
        for await (const event of run) this.#events.push({ type: 'child-event', session: child.name, event });
        const { text, usage, error, finish } = await run;
        if (finish === 'waiting') return { text, usage, waits: true };
        return { text, usage, ...(error !== undefined && { error: error.message }) };
      } catch (error) {
        const code = error instanceof SessionError ? error.code : undefined;
        // A child of a key that was delegated before, and came to its end then.
        if (code === 'SESSION_ENDED') return { text: '' };
        // The run could not start or not be recorded: its parent is told all the same.
        if (code !== 'SESSION_BUSY') return { text: '', error: messageOf(error), broken: true };
        // Another process has been given the same key, and is at work on it.
        if (options.signal.aborted) return { text: '', error: messageOf(error) };
        await sleep(pollMs);
      }
    }
  }

  async #merge(child: Child, run: RunEnd, signal: AbortSignal): Promise<ChildOutcome> {
    if (run.waits === true) {
      const error = `cannot merge '${child.name}' yet: it waits for an answer`;
      return {
        session: child.name,
        status: 'running',
        usage: run.usage,
        text: run.text,
        merged: undefined,
        error,
      };
    }
    const info = await child.info();
    const status = run.broken === true ? 'failed' : (info.task ?? 'completed');
    this.#events.push({ type: 'child-ended', session: child.name, status });
    const ended = { session: child.name, status, usage: run.usage, text: run.text };
    try {
      const request = { status, text: `Error: ${run.error ?? 'unknown'}`, force: true };
      const merged = await finish(child, run.broken === true ? request : {}, signal);
      this.#events.push({ type: 'child-merged', session: child.name, merged });
      return { ...ended, merged, ...(run.error !== undefined && { error: run.error }) };
    } catch (error) {
      return { ...ended, merged: undefined, error: messageOf(error) };
    }
  }
}

/** What running a child came to. */
export interface RunEnd {
  readonly text: string;
  readonly usage?: Usage;
  readonly error?: string;
  /** The run never came to a recorded end. */
  readonly broken?: true;
  /** A person or a client has to answer a call before the child goes on. */
  readonly waits?: true;
}

const pollMs = 50;

/** Merges a child whose task has ended: whoever ran it elsewhere may still be about to let go of it. */
async function finish(child: Child, request: MergeOptions, signal: AbortSignal): Promise<Merged> {
  for (;;) {
    try {
      return await child.finish(request);
    } catch (error) {
      if (!childIsBusy(error) || signal.aborted) throw error;
      await sleep(pollMs);
    }
  }
}

/** A model that cannot be used must fail before anything is forked. */
async function checkModels(
  { config, env, store }: DeckParts,
  { tasks, options }: { tasks: readonly DelegateTask[]; options: DelegateOptions },
): Promise<void> {
  const { needModel } = await import('./model.ts');
  for (const { task, model } of tasks) {
    const spec = model ?? options.model ?? config.model;
    const source = spec === undefined ? undefined : await resolveModel(spec, { env, store });
    needModel(source?.(''), task);
  }
}

/** How many forks lie between a session and its root. */
async function depthOf(store: TapeStore, session: string): Promise<number> {
  let depth = 0;
  for (let at = await store.find(session); at?.parentId !== undefined; at = await store.find(at.parentId))
    depth += 1;
  return depth;
}

function forkOptions(
  { task, contextSummary, name, key }: DelegateTask,
  { since, fresh, workspace, repository }: DelegateOptions,
) {
  return {
    intention: { nextSteps: task, ...(contextSummary !== undefined && { contextSummary }) },
    ...(name !== undefined && { name }),
    ...(key !== undefined && { key }),
    ...(since !== undefined && { since }),
    ...(fresh !== undefined && { fresh }),
    ...(workspace !== undefined && { workspace }),
    ...(repository !== undefined && { repository }),
    deliver: 'merge' as const,
  };
}

function runOptionsOf({ tools, instructions, maxSteps }: Omit<DelegateOptions, 'signal'>): RunOptions {
  return {
    ...(tools !== undefined && { tools }),
    ...(instructions !== undefined && { instructions }),
    ...(maxSteps !== undefined && { maxSteps }),
  };
}
