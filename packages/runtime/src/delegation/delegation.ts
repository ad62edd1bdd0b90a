/**
 * Delegation: children that work on tasks. `delegation.ts` forks one child for each task (`fork-tasks.ts`,
 * `spawn.ts`, within `fork-limits.ts`), runs them on an engine (`run-child.ts`, `engine.ts`), and ends each
 * (`end-child.ts`): it shows the parent how that did (`show-child.ts`, `progress.ts`), and merges it (`deliver.ts`).
 * What these know of the delegation is in `scope.ts`. They know sessions and children only as the
 * interfaces of `parts.ts`. Imports `run` and what lies below.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import PQueue from 'p-queue';
import { EventLog } from '../stream/event-log.ts';
import { assertOutsideRun } from '../tools/current-call.ts';
import { ChildrenElsewhere } from './elsewhere.ts';
import { endChild } from './end-child.ts';
import { type Forked, forkTasks, lineFor } from './fork-tasks.ts';
import type { Delegated } from './options.ts';
import type { ChildEvent, ChildOutcome } from './outcome.ts';
import type { DelegationParts, Delegator } from './parts.ts';
import { DelegationProgress } from './progress.ts';
import { runChild } from './run-child.ts';
import type { DelegationScope } from './scope.ts';

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
  readonly #scope: DelegationScope;
  readonly #controller = new AbortController();
  readonly #children: string[] = [];
  readonly #forked = Promise.withResolvers<readonly string[]>();
  readonly #started = Promise.withResolvers<void>();
  /** How many children the engine does not have yet. */
  #left = 0;
  readonly #outcomes: Promise<Outcomes>;

  constructor(parts: DelegationParts, parent: Delegator, delegated: Delegated) {
    const worker = () => parts.worker({ session: parent.name, id: parent.id });
    // A child that starts after its parent's run was aborted must see the abort, too.
    const signals = [delegated.options.signal, worker().forChildren].filter((signal) => signal !== undefined);
    this.#scope = {
      ...{ parts, parent, delegated },
      signal: AbortSignal.any([this.#controller.signal, ...signals]),
      events: new EventLog<ChildEvent>(),
      progress: new DelegationProgress(delegated.options, (event) => worker().emitEvent(event)),
      elsewhere: parts.engine.isElsewhere === true ? new ChildrenElsewhere(parts) : undefined,
    };
    this.#outcomes = this.#work().finally(() => this.#scope.events.close());
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
    yield* this.#scope.events;
    await this.#outcomes;
  }

  /**
   * A rejection for a tool that would wait for its own run: that takes the results when the tool has ended. The call
   * of `delegateTool` gets them as its own result.
   */
  #whyNotAwaited(): Promise<never> | undefined {
    const { parts, parent, delegated } = this.#scope;
    if (delegated.options.by !== undefined) return undefined;
    try {
      assertOutsideRun(parts.store, parent.name, `wait for the children of '${parent.name}'`);
      return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #work(): Promise<Outcomes> {
    const { parts, parent, delegated, events, progress, elsewhere } = this.#scope;
    const { options } = delegated;
    const line = await lineFor(parts, parent, delegated);
    const onForked = ({ child, task, earlier }: Forked) => {
      this.#children.push(child.name);
      events.push({ type: 'child-forked', session: child.name, task: task.task, ...earlier });
      progress.begin(child.name, task.task);
    };
    const forked = await parts.forking.add(async () => await forkTasks(parts, line, { delegated, onForked }));
    this.#left = forked.length;
    if (this.#left === 0) this.#started.resolve();
    this.#forked.resolve(this.#children);
    // Elsewhere, the processes that run children say how many each of them runs.
    const most = elsewhere === undefined ? (options.concurrency ?? 4) : Number.POSITIVE_INFINITY;
    const queue = new PQueue({ concurrency: most });
    let before: Promise<unknown> = Promise.resolve();
    const outcomes = forked.map(async (one) => {
      const turn = before;
      const outcome = (async () => {
        const run = await queue.add(
          AsyncLocalStorage.bind(async () => await runChild(this.#scope, one, () => this.#onStarted())),
          { priority: one.task.priority ?? 0 },
        );
        if (options.order === 'spawn') await turn.catch(() => {});
        try {
          return await endChild(this.#scope, one, run);
        } finally {
          // An entry here keeps other parts of this process from merging the child.
          parts.startedChildren.delete(one.child.name);
        }
      })();
      before = outcome;
      return await outcome;
    });
    // One outcome for each task, with the result that the schema of the task makes.
    return (await Promise.all(outcomes)) as readonly ChildOutcome<unknown>[] as Outcomes;
  }

  #onStarted(): void {
    this.#left -= 1;
    if (this.#left === 0) this.#started.resolve();
  }
}
