import { setTimeout as sleep } from 'node:timers/promises';
import type { Json, Merged, Point, SessionInfo, Task } from '@tapedeck/tape';
import PQueue from 'p-queue';
import type { Budget } from './budget.ts';
import { Child } from './child.ts';
import { runPoint } from './crash-point.ts';
import type { DeckParts } from './deck.ts';
import { type Delivered, deliver } from './deliver.ts';
import { messageOf, SessionError } from './errors.ts';
import { EventLog } from './event-log.ts';
import type { SessionEvent } from './events.ts';
import { depthOf } from './fork-limits.ts';
import { childIsBusy, type MergeOptions } from './merge.ts';
import type { MergeText } from './merge-text.ts';
import { type ModelSpec, resolveModel } from './model-spec.ts';
import { toldBy } from './outcome.ts';
import type { Session } from './session.ts';
import type { RunOptions } from './session-options.ts';
import { settleParent } from './settle-parent.ts';
import { type ForkOptions, needForks, type OutputSpec, type SpawnedBy, spawn } from './spawn.ts';
import type { DeckTools } from './tool-traits.ts';
import type { Usage } from './usage.ts';
import type { WorkspaceOptions } from './workspace-open.ts';

/** One piece of work for one child. What it does not say is as the options of the delegation say. */
export interface DelegateTask {
  /** What the child is to do. */
  readonly task: string;
  readonly contextSummary?: string;
  /** The child's name; by default derived from the parent's. */
  readonly name?: string;
  /** The same key on the same parent is the same child. */
  readonly key?: string;
  /** A child that is there already, by its name or id: the task is its next message. */
  readonly resume?: string;
  readonly model?: ModelSpec;
  readonly instructions?: string;
  /** Names of the tools that it may call, of those that its parent may. */
  readonly tools?: readonly string[];
  /** What its own model calls may take. */
  readonly budget?: Budget;
  /** What it and all under it may take. */
  readonly treeBudget?: Budget;
  /** The form of its result: its last step is asked for it. */
  readonly output?: OutputSpec;
  /** Those of a higher priority are started first (default 0). */
  readonly priority?: number;
}

export interface DelegateOptions
  extends Pick<RunOptions, 'model' | 'instructions' | 'maxSteps' | 'useTools'>,
    Pick<DelegateTask, 'budget' | 'treeBudget' | 'output'>,
    WorkspaceOptions {
  /** Tools that are offered instead of the deck's; or the names of those of the deck that the children may call. */
  readonly tools?: DeckTools | readonly string[];
  /** Where what the children inherit begins. */
  readonly since?: Point;
  readonly fresh?: boolean;
  /** How much they inherit, where `since` does not say (K31). */
  readonly context?: ForkOptions['context'];
  /** How many children run at once (default 4). */
  readonly concurrency?: number;
  /** In which order results are merged: as they come, or as they were spawned. */
  readonly order?: 'completion' | 'spawn';
  /** How results are merged: `structured` by default for tasks that have an `output`. */
  readonly strategy?: 'result' | 'summary' | 'structured' | MergeText;
  /** Each result starts a run of the parent, which nobody waits for (B22, K32). */
  readonly onComplete?: 'notify_parent';
  readonly onConflict?: MergeOptions['onConflict'];
  /** When a parent that is being run takes results in: by default between two steps if that run asked for them, else at its end. */
  readonly at?: MergeOptions['at'];
  readonly signal?: AbortSignal;
  /** The run and the tool call that ask for it; `blocking`: the call's result is what the children come to. */
  readonly by?: SpawnedBy & { readonly blocking: boolean };
}

/** What one child came to. */
export interface ChildOutcome {
  readonly session: string;
  readonly status: Task;
  readonly merged: Merged | undefined;
  readonly usage: Usage | undefined;
  readonly text: string;
  /** The result that it gave in a form. */
  readonly output?: Json;
  /** Why the child failed, or why its result could not be merged: one that waits for an answer is still running. */
  readonly error?: string;
}

/** What happens in a delegation, as it happens. */
export type ChildEvent =
  | { readonly type: 'child-forked'; readonly session: string; readonly task: string }
  | { readonly type: 'child-event'; readonly session: string; readonly event: SessionEvent }
  | { readonly type: 'child-ended'; readonly session: string; readonly status: Task }
  | { readonly type: 'child-merged'; readonly session: string; readonly merged: Merged };

/** What is delegated, and how. */
interface Delegated {
  readonly tasks: readonly DelegateTask[];
  readonly options: DelegateOptions;
}

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
    await checkModels(this.#parts, tasks, options);
    this.#needTools();
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

  /** A name that no tool has would leave a child without the one that was meant. */
  #needTools(): void {
    const { tasks, options } = this.#asked;
    for (const task of tasks) {
      const names = task.tools ?? namesOf(options.tools) ?? [];
      const offered =
        runOptionsOf(this.#parts, this.#parent, { task, options }).tools ?? this.#parts.config.tools ?? {};
      const unknown = names.find((name) => !Object.hasOwn(offered, name));
      if (unknown === undefined) continue;
      const known = Object.keys(offered);
      throw new SessionError(
        'SESSION_BAD_INPUT',
        `cannot delegate with tool '${unknown}': there is ${known.length === 0 ? 'none' : `only ${known.join(', ')}`}`,
        { data: { session: this.#parent.name, tool: unknown } },
      );
    }
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
        const code = error instanceof SessionError ? error.code : undefined;
        // A child of a key that was delegated before, and came to its end then.
        if (code === 'SESSION_ENDED') return {};
        // It has not begun, and is left to whoever recovers it.
        if (code === 'SESSION_CLOSED') return { error: messageOf(error), closed: true };
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

/** What running a child came to. */
export interface RunEnd {
  readonly usage?: Usage;
  readonly error?: string;
  /** The run never came to a recorded end. */
  readonly broken?: true;
  /** A person or a client has to answer a call before the child goes on. */
  readonly waits?: true;
  /** The deck was closed before it could begin. */
  readonly closed?: true;
}

const pollMs = 50;

/** A model that cannot be used must fail before anything is forked. */
async function checkModels(
  { config, env, store }: DeckParts,
  tasks: readonly DelegateTask[],
  options: DelegateOptions,
): Promise<void> {
  const { needModel } = await import('./model.ts');
  for (const { task, model } of tasks) {
    const spec = model ?? options.model ?? config.model;
    const source = spec === undefined ? undefined : await resolveModel(spec, { env, store });
    needModel(source?.(''), task);
  }
}

function forkOptions(task: DelegateTask, options: DelegateOptions, blocking: boolean): ForkOptions {
  const { since, fresh, context, tools, onComplete, strategy, workspace, repository } = options;
  const names = task.tools ?? namesOf(tools);
  const given = {
    name: task.name,
    key: task.key,
    model: task.model ?? options.model,
    instructions: task.instructions ?? options.instructions,
    budget: task.budget ?? options.budget,
    treeBudget: task.treeBudget ?? options.treeBudget,
    output: task.output ?? options.output,
    tools: names,
    since,
    fresh,
    context,
    workspace,
    repository,
  };
  const asked =
    typeof strategy === 'string' ? strategy : given.output === undefined ? undefined : 'structured';
  return {
    ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as ForkOptions),
    ...(asked !== undefined && { strategy: asked }),
    intention: {
      nextSteps: task.task,
      ...(task.contextSummary !== undefined && { contextSummary: task.contextSummary }),
      ...(onComplete !== undefined && { triggerOnComplete: onComplete }),
    },
    deliver: blocking ? 'tool-result' : onComplete === 'notify_parent' ? 'merge+turn' : 'merge',
  };
}

function namesOf(tools: DelegateOptions['tools']): readonly string[] | undefined {
  if (tools === undefined) return undefined;
  return isNames(tools) ? tools : Object.keys(tools);
}

function isNames(tools: DeckTools | readonly string[]): tools is readonly string[] {
  return Array.isArray(tools);
}

/** What a child is run with. What it does not say itself is as in the run of its parent that is under way. */
function runOptionsOf(
  parts: DeckParts,
  parent: Session,
  { task, options }: { readonly task: DelegateTask; readonly options: DelegateOptions },
): RunOptions {
  const running = parts.worker(parent).job?.options;
  const tools = options.tools === undefined || isNames(options.tools) ? running?.tools : options.tools;
  const model =
    task.model ?? options.model ?? (typeof running?.model === 'object' ? running.model : undefined);
  return {
    ...(model !== undefined && { model }),
    ...(tools !== undefined && { tools }),
    ...(options.useTools !== undefined && { useTools: options.useTools }),
    ...(options.maxSteps !== undefined && { maxSteps: options.maxSteps }),
  };
}
