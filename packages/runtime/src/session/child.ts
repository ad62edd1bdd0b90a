import { type Json, type Merged, result, type Seq } from '@tapedeck/tape';
import { beforeDiscard, wakeFor } from '../delegation/deliver.ts';
import type { ChildInfo, ChildOptions } from '../delegation/parts.ts';
import type { ForkOptions } from '../delegation/spawn.ts';
import { messageOf } from '../errors.ts';
import { assertMerge, type MergeOptions, mergeChild, mergeFields } from '../merge/merge.ts';
import type { OutputSpec } from '../model/output.ts';
import type { Input, RunOptions } from '../run/options.ts';
import type { Run } from '../run/run.ts';
import { assertOutsideRun } from '../tools/current-call.ts';
import type { DeckParts } from './parts.ts';
import { Session } from './session.ts';

/**
 * A forked session, until it is merged or discarded. `T` is the type of its structured result.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await using child = await main.fork({ task: 'Check the tests.' });
 * await child.run('Check the tests.');
 * console.log((await child.finish()).state); // merged
 * ```
 */
export class Child<T = unknown> extends Session implements AsyncDisposable {
  /** The parent's name. */
  readonly parent: string;
  /** The last inherited position. */
  readonly base: Seq;
  /** The task that it was forked with. */
  readonly task: string | undefined;
  /** The directory of its worktree, when it was forked with one. */
  readonly workspace: string | undefined;
  readonly #parts: DeckParts;
  readonly #onUnmerged: NonNullable<ForkOptions['onUnmerged']>;
  readonly #parentId: string;
  readonly #output: OutputSpec<T> | undefined;
  #merged: Merged | undefined;

  constructor(
    parts: DeckParts,
    info: ChildInfo,
    { task, onUnmerged = 'fail', directory, output }: ChildOptions<T>,
  ) {
    super(parts, info);
    this.#parts = parts;
    this.parent = info.parent ?? '';
    this.base = info.base;
    this.task = task;
    this.workspace = directory;
    this.#onUnmerged = onUnmerged;
    this.#output = output;
    this.#parentId = info.parentId ?? '';
  }

  /** As `Session.run`. While the parent runs in this process, aborting the parent's run aborts this one. */
  override run(input?: Input, options: RunOptions = {}): Run<T> {
    const { forChildren } = this.#parts.worker({ session: this.parent, id: this.#parentId });
    const signals = [forChildren, options.signal].filter((signal) => signal !== undefined);
    const given = signals.length === 0 ? options : { ...options, signal: AbortSignal.any(signals) };
    return this.start(input, given, this.#output);
  }

  /** Records the child's result, which `finish` merges instead of its last text. */
  async result(value: Json): Promise<void> {
    await this.#parts.store.entries.append(this.id, [result(value)]);
  }

  /**
   * Merges the child into its parent. A repeated call returns the same receipt. With `deliver: 'merge+turn'` the
   * merge also starts a run of the parent, and does not wait for its end (`deck.idle` does).
   */
  async finish(options: MergeOptions = {}): Promise<Merged> {
    assertMerge(options, mergeFields, `merge '${this.name}'`);
    if (options.waitMs === undefined)
      assertOutsideRun(this.#parts.store, this.parent, `merge '${this.name}'`);
    const facts = await this.#parts.worker({ session: this.name, id: this.id }).facts();
    await beforeDiscard(this.#parts, facts.info, options);
    this.#merged = await mergeChild(this.#parts, facts, options);
    await wakeFor(this.#parts, facts.info);
    return this.#merged;
  }

  /** Merges a failure: the parent receives the status `failed` and the error's message. */
  async fail(error: unknown): Promise<Merged> {
    return await this.finish({ strategy: 'result', status: 'failed', text: `Error: ${messageOf(error)}` });
  }

  /**
   * Discards the child's work: the parent's tape gets a receipt, and no message. A child that waits for an answer ends as
   * aborted, which is the outcome that a waiting call of the parent gets.
   */
  async discard(reason: string): Promise<void> {
    await this.finish({ strategy: 'discard', reason });
  }

  /** The receipt, once this handle finished or discarded the child. */
  get merged(): Merged | undefined {
    return this.#merged;
  }

  /** Applies `onUnmerged` to a child that was neither finished nor discarded. */
  async close(error: unknown = new Error('the child was neither finished nor discarded')): Promise<void> {
    if (this.#merged !== undefined || this.#onUnmerged === 'keep') return;
    if (this.#onUnmerged === 'discard') await this.discard(messageOf(error));
    else await this.fail(error);
  }

  /** Closes the child, as `close` does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
