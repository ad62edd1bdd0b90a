import {
  anchor,
  type Entry,
  type EntryQuery,
  handoff,
  type JsonObject,
  type Part,
  type Point,
  processOwner,
  type SessionInfo,
  user,
  type View,
  type ViewOptions,
  view,
} from '@tapedeck/tape';
import { type Child, type ForkOptions, forkChild } from './child.ts';
import type { DeckParts } from './deck.ts';
import { type DelegateOptions, type DelegateTask, Delegation } from './delegate.ts';
import { SessionError } from './errors.ts';
import { type Hold, hold } from './hold.ts';
import { closeOrphans, runLoop } from './loop.ts';
import { type MergeOptions, mergeChild } from './merge.ts';
import { needModel, type ToolSet } from './model.ts';
import { type ModelSpec, resolveModel } from './model-spec.ts';
import { Run, type RunResult } from './run.ts';
import { readUsage, type SessionUsage } from './session-usage.ts';

/** What a session is told: a text, or the parts of a user message. */
export type Input = string | readonly Part[];

export interface RunOptions {
  readonly model?: ModelSpec;
  /** Tools offered in this run, instead of the deck's. */
  readonly tools?: ToolSet;
  readonly instructions?: string;
  /** Model calls at most before the run is halted (default 10; K27). */
  readonly maxSteps?: number;
  /** Rejects with SESSION_ENDED when the session's task has come to its end before, here or elsewhere. */
  readonly unlessEnded?: boolean;
  readonly signal?: AbortSignal;
}

/** The position of an anchor that was written. */
export interface Mark {
  readonly session: string;
  readonly seq: number;
  readonly name: string;
}

const stepsMax = 10;

/**
 * One conversation on one tape. It holds no lease while idle; a run or an act takes one. Made by `Deck.session`.
 */
export class Session {
  readonly name: string;
  /** The session's ULID. */
  readonly id: string;
  readonly tape: string;
  readonly #parts: DeckParts;
  #run: Run | undefined;

  constructor(parts: DeckParts, info: SessionInfo) {
    this.#parts = parts;
    this.name = info.name;
    this.id = info.id;
    this.tape = info.tape;
  }

  /**
   * Appends the input and runs the model and its tools until nothing is left to do. Without input it goes on from the
   * tail. Awaiting the run rejects with SESSION_BUSY when the session is being run, here or elsewhere, and with
   * SESSION_NO_MODEL or SESSION_NO_KEY before anything is written.
   */
  run(input?: Input, options: RunOptions = {}): Run {
    const busy = this.#run;
    const id = this.#parts.newId();
    const run = new Run(
      id,
      async ({ signal, emit }) => {
        if (busy === undefined) return await this.#work(id, input, { ...options, signal }, emit);
        throw new SessionError('SESSION_BUSY', `cannot run '${this.name}': it is running already`, {
          data: { session: this.name, run: busy.id },
        });
      },
      options.signal,
    );
    if (busy !== undefined) return run;
    this.#run = run;
    const clear = () => {
      this.#run = undefined;
    };
    run.then(clear, clear);
    return run;
  }

  async #work(
    run: string,
    input: Input | undefined,
    options: RunOptions & { signal: AbortSignal },
    emit: Parameters<ConstructorParameters<typeof Run>[1]>[0]['emit'],
  ): Promise<RunResult> {
    const { store, env, config } = this.#parts;
    const { tools, instructions, maxSteps = stepsMax, signal } = options;
    const chosen = options.model ?? config.model;
    const source = chosen === undefined ? undefined : await resolveModel(chosen, { env, store });
    const model = needModel(source?.(this.name), this.name);
    const held = await hold(store, this.id, {
      owner: processOwner(run),
      onWaiting: (items) => emit({ type: 'inbox-waiting', items }),
    });
    try {
      if (options.unlessEnded === true) await this.#needUnended();
      await closeOrphans(store, this.id, held);
      await held.drain();
      const before = await this.info();
      if (before.parent !== undefined) await store.setTask(this.id, 'running', { lease: held.lease });
      if (input !== undefined)
        await store.append(this.id, [user(input, { run, source: 'user' })], { lease: held.lease });
      emit({ type: 'run-started', run, session: this.name });
      const result = await runLoop({
        run,
        session: this.name,
        store,
        hold: held,
        model,
        tools: tools ?? config.tools ?? {},
        instructions: instructions ?? config.instructions,
        cost: config.cost,
        maxSteps,
        signal: AbortSignal.any([signal, held.lost]),
        emit,
      });
      const after = await this.info();
      if (before.parent !== undefined)
        await store.setTask(this.id, taskOf[result.finish], { lease: held.lease });
      return { run, session: this.name, from: before.head + 1, to: after.head, ...result };
    } catch (error) {
      // What could not be recorded ends the run (law 11); the parent of a child must not wait for it.
      await this.#markFailed(held);
      throw error;
    } finally {
      await held.release();
    }
  }

  async #markFailed(held: Hold): Promise<void> {
    try {
      const info = await this.info();
      if (info.task === 'running') await this.#parts.store.setTask(this.id, 'failed', { lease: held.lease });
    } catch {
      // The store itself fails: the error that is on its way says so.
    }
  }

  /** Asked under the lease, so that nobody ends the task in between. */
  async #needUnended(): Promise<void> {
    const { task } = await this.info();
    if (task === undefined || task === 'running') return;
    throw new SessionError('SESSION_ENDED', `cannot run '${this.name}' again: its task is ${task}`, {
      data: { session: this.name, task },
    });
  }

  /** The run under way in this process, if there is one. */
  attach(): Run | undefined {
    return this.#run;
  }

  async abort(reason?: string): Promise<void> {
    const run = this.#run;
    run?.abort(reason);
    await run?.then(
      () => {},
      () => {},
    );
  }

  /** Writes a mark: names this point and carries a state, without cutting the view. */
  async anchor(name: string, state: JsonObject = {}): Promise<Mark> {
    const { to } = await this.#parts.store.append(this.id, [anchor(name, state)]);
    return { session: this.name, seq: to, name };
  }

  /** Writes a boundary: the next view starts here, with the summary and state. */
  async handoff(
    name: string,
    { summary, state = {} }: { summary?: string; state?: JsonObject } = {},
  ): Promise<Mark> {
    const full = summary === undefined ? state : { summary, ...state };
    const { to } = await this.#parts.store.append(this.id, [handoff(name, full)]);
    return { session: this.name, seq: to, name };
  }

  /** Starts a child at a point of this session, by reference; this session's tape is not written. */
  async fork(options: ForkOptions = {}): Promise<Child> {
    return await forkChild(this.#parts, this.id, options);
  }

  /**
   * Forks, hands the child to `act`, and merges it when `act` returns, unless `act` discarded it. A throw is thrown
   * on, after what `onUnmerged` says was done.
   */
  async withFork<T>(
    options: ForkOptions,
    act: (child: Child) => Promise<T>,
  ): Promise<{ value: T; merge: Awaited<ReturnType<Child['finish']>> }> {
    const child = await this.fork(options);
    let value: T;
    try {
      value = await act(child);
    } catch (error) {
      await child.close(error);
      throw error;
    }
    const discarded = child.merged?.state === 'discarded' ? child.merged : undefined;
    return { value, merge: discarded ?? (await child.finish()) };
  }

  /** Forks a child for each task, runs them, so many at a time, and merges each back. */
  delegate(tasks: DelegateTask | readonly DelegateTask[], options: DelegateOptions = {}): Delegation {
    return new Delegation(this.#parts, this, {
      tasks: Array.isArray(tasks) ? tasks : [tasks as DelegateTask],
      options,
    });
  }

  /**
   * Takes a child's result in. When this session is being run, the merge is left in its inbox and this waits until it
   * is done, at the next settled point.
   */
  async merge(child: string | Session, options: MergeOptions = {}): ReturnType<typeof mergeChild> {
    const name = typeof child === 'string' ? child : child.name;
    return await mergeChild(this.#parts.store, name, { ...options, into: this.name });
  }

  /** What this session's model sees. */
  async view({
    policy = 'last-boundary',
    target = {},
    at = 'head',
  }: ViewOptions & { at?: Point } = {}): Promise<View> {
    return view(await Array.fromAsync(this.#parts.store.viewEntries(this.id, { policy, at })), {
      policy,
      target,
    });
  }

  async *entries(query: EntryQuery = {}): AsyncIterable<Entry> {
    yield* this.#parts.store.read(this.id, query);
  }

  /** What the model calls on this session's own entries took; with `tree`, also what came from it. */
  async usage(options: { readonly tree?: boolean } = {}): Promise<SessionUsage> {
    return await readUsage(this.#parts.store, this, options);
  }

  /** The session's row as it stands. */
  async info(): Promise<SessionInfo> {
    const info = await this.#parts.store.find(this.id);
    if (info === undefined)
      throw new SessionError('SESSION_CLOSED', `cannot find '${this.name}': its row is gone`, {
        data: { session: this.name },
      });
    return info;
  }
}

const taskOf = {
  stop: 'completed',
  length: 'completed',
  halted: 'halted',
  waiting: 'running',
  aborted: 'aborted',
  error: 'failed',
} as const;
