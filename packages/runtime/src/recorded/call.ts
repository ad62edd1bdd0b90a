import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import {
  assistant,
  type Draft,
  type JsonObject,
  type Meta,
  note,
  processOwner,
  type SessionInfo,
} from '@tapedeck/tape';
import { partialAnswer } from '@tapedeck/tape/internal';
import type { ToolSet } from 'ai';
import { compactionTerms } from '../compaction/compact.ts';
import { limitsOf } from '../config/config.ts';
import { runPoint } from '../crash-point.ts';
import { assertOpen } from '../delegation/parts.ts';
import { isUnstorable, messageOf } from '../errors.ts';
import { getActive } from '../lease/get-active.ts';
import { type Hold, hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { callSettingsIn } from '../model/call-settings.ts';
import { callModel, ModelFailure, modelMeta } from '../model/model.ts';
import { comeBackAfter } from '../model/retry.ts';
import { sentToolsOf } from '../run/instructions.ts';
import { placeOf, stampOf } from '../run/place.ts';
import { decide, spentAborts } from '../run/queue.ts';
import { type Chunk, eventChunk, eventOf, headChunk } from '../stream/chunks.ts';
import { finishAfter, type SessionEvent } from '../stream/events.ts';
import { batchNotes } from '../tools/open-batch.ts';
import { closeOrphans, unbegunResults } from '../tools/orphans.ts';
import { callMeta, viewFor } from '../turn/call-meta.ts';
import { toolsMeta } from '../turn/sent-tools.ts';
import { costMeta, usageJson } from '../usage/usage.ts';
import { liveChunk } from './live-chunk.ts';
import type { RecordedPlace } from './place.ts';
import { reconcile } from './reconcile.ts';
import { definitionsIn, type ModelV4, replaying } from './sdk.ts';

/** The first step of a run. Each call of an application is a run of one step. */
const step = 1;

/** One model call of an application, from its history to its recorded end. It has the session's lease. */
export class RecordedCall {
  /** Aborts the call: the application, the inbox or the deck stops it, or it cannot be recorded any more. */
  readonly signal: AbortSignal;
  readonly #place: RecordedPlace;
  readonly #model: ModelV4;
  readonly #run: string;
  readonly #held: Hold;
  readonly #stop: AbortController;
  readonly #broken = new AbortController();
  readonly #recorder: ReturnType<RecordedPlace['parts']['chunks']['recorder']>;
  readonly #unlisten: () => void;
  readonly #over = Promise.withResolvers<void>();
  readonly #parts: LanguageModelV4StreamPart[] = [];
  readonly #chunks: Chunk[] = [];
  #definitions: ToolSet = {};
  #meta: JsonObject | undefined;
  /** What of its tools the answer records beside their digest. */
  #tools: JsonObject = {};
  #isRecorded = false;

  private constructor(
    place: RecordedPlace,
    model: ModelV4,
    {
      run,
      held,
      stop,
      signal,
    }: {
      readonly run: string;
      readonly held: Hold;
      readonly stop: AbortController;
      readonly signal: AbortSignal | undefined;
    },
  ) {
    const { parts } = place;
    this.#place = place;
    this.#model = model;
    this.#run = run;
    this.#held = held;
    this.#stop = stop;
    this.#recorder = parts.chunks.recorder(held.lease, run);
    this.#unlisten = parts.chunks.onFailure(run, (error) => this.#broken.abort(error));
    const given = signal === undefined ? [] : [signal];
    this.signal = AbortSignal.any([...given, stop.signal, held.lost, this.#broken.signal, parts.closing]);
    parts.delegations.add(this.#over.promise);
  }

  /**
   * Takes the lease, settles what a process that died left, and makes the tape read as the history of the call.
   * @throws SESSION_BUSY while another call, a run or another process has the session; SESSION_CLOSED; TAPE_ARCHIVED;
   *   TAPE_BAD_ENTRY when the history cannot be stored
   */
  static async begin(
    place: RecordedPlace,
    model: ModelV4,
    options: LanguageModelV4CallOptions,
  ): Promise<RecordedCall> {
    const { parts, session } = place;
    assertOpen(parts, 'call the model of', session.name);
    const run = parts.newId();
    const stop = new AbortController();
    const { id: owner } = processOwner(`recorded:${run}`);
    const held = await hold(parts.store, session.id, {
      owner: processOwner(`recorded:${run}`),
      act: 'call the model of',
      onWaiting: (items) => {
        const decision = decide(items, 'streaming', owner);
        if (decision.do === 'abort') stop.abort(new Error(decision.reason));
      },
    });
    const call = new RecordedCall(place, model, { run, held, stop, signal: options.abortSignal });
    try {
      const info = await getActive(parts.store, session.id, 'call the model of');
      await call.#prepare(info, options);
      return call;
    } catch (error) {
      await call.#close();
      throw error;
    }
  }

  /** Aborts the call. */
  stop(reason: string): void {
    this.#stop.abort(new Error(reason));
  }

  /** Resolves when the end of the call is recorded. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  async #prepare(info: SessionInfo, options: LanguageModelV4CallOptions): Promise<void> {
    const { parts, session, spec } = this.#place;
    const { store, config } = parts;
    this.#show({ state: 'busy', phase: 'processing', run: this.#run, startedAt: parts.now() });
    await settleLeftovers(store, session.id, this.#held);
    await closeOrphans(store, session.id, { hold: this.#held });
    this.#emit({ type: 'run-started', run: this.#run, session: session.name, at: parts.now() });
    await reconcile(this.#place, options.prompt, {
      held: this.#held,
      run: this.#run,
      stamp: stampOf(await placeOf(parts, undefined)),
      named: spec === undefined ? {} : { model: spec },
      provider: this.#model.provider,
      report: (divergence) => this.#report(divergence),
    });
    runPoint('run/begun');
    this.#definitions = await definitionsIn(options.tools);
    const entries = await Array.fromAsync(store.views.entries(info.id));
    const terms = {
      model: this.#model,
      shows: 'last-boundary',
      compaction: compactionTerms(config, this.#model),
    } as const;
    const sentTools = await sentToolsOf(this.#definitions);
    this.#tools = toolsMeta(entries, sentTools);
    this.#meta = {
      ...callMeta(
        {
          ...terms,
          definitions: this.#definitions,
          sentTools,
          callSettings: settingsIn(options),
        },
        viewFor(terms, entries),
        instructionsIn(options),
      ),
    };
    this.#take(headChunk({ step, ...modelMeta(this.#model) }));
    this.#show({ state: 'busy', phase: 'streaming', run: this.#run, startedAt: parts.now() });
  }

  /** Takes a part of the answer, and resolves when it is saved. */
  async take(part: LanguageModelV4StreamPart): Promise<void> {
    this.collect(part);
    const chunk = liveChunk(part);
    if (chunk === undefined) return;
    this.#take(chunk);
    await this.#recorder.saved();
    this.#broken.signal.throwIfAborted();
  }

  /** Takes a part of an answer that arrives as a whole. */
  collect(part: LanguageModelV4StreamPart): void {
    const last = this.#parts.at(-1);
    // Pieces of one text are one piece: the answer is the same.
    if (
      (part.type === 'text-delta' || part.type === 'reasoning-delta') &&
      last?.type === part.type &&
      last.id === part.id &&
      part.providerMetadata === undefined
    )
      this.#parts[this.#parts.length - 1] = { ...last, delta: last.delta + part.delta };
    else this.#parts.push(part);
  }

  #take(chunk: Chunk): void {
    this.#chunks.push(chunk);
    this.#recorder.add(chunk);
    this.#publish(chunk);
  }

  /**
   * Records the answer. The calls in it wait for results, which the application gives.
   * @throws ModelFailure when what arrived is no answer, or cannot be stored
   */
  async settle(): Promise<void> {
    const { parts } = this.#place;
    const { config } = parts;
    const answer = await callModel({
      model: replaying(this.#model, this.#parts),
      messages: [{ role: 'user', content: '' }],
      tools: this.#definitions,
      signal: new AbortController().signal,
      onChunk: () => {},
      // The application was given them with the answer itself.
      onWarning: () => {},
    });
    const { usage, calls } = answer;
    const meta: Meta = {
      run: this.#run,
      step,
      ...answer.meta,
      usage: usageJson(usage),
      ...costMeta(config.cost, usage, modelMeta(this.#model).model),
      ...this.#meta,
      ...this.#tools,
    };
    const names = calls.map(({ toolCallId, toolName }) => ({ toolCallId, toolName, for: 'result' }) as const);
    const waiting = calls.length === 0 ? [] : [note(batchNotes.waiting, { run: this.#run, calls: names })];
    runPoint('answer/arrived');
    try {
      await this.#append([assistant(answer.content, meta), ...waiting]);
    } catch (error) {
      if (isUnstorable(error)) throw new ModelFailure(error);
      throw error;
    }
    runPoint('answer/recorded');
    for (const { toolCallId, toolName: name, input } of calls)
      this.#emit({ type: 'tool-detected', toolCallId, name, input });
    this.#emit({ type: 'iteration-completed', iteration: step, usage, willContinue: calls.length > 0 });
    if (calls.length > 0)
      this.#emit({
        type: 'tool-waiting',
        calls: calls.map(({ toolCallId, toolName: name, input }) => ({
          toolCallId,
          name,
          input,
          for: 'result',
        })),
      });
    const finish = calls.length > 0 ? 'waiting' : finishAfter(answer.finish);
    this.#emit({ type: 'session-completed', finish, haltedAtLimit: false });
    await this.#close();
  }

  /**
   * Records that the call failed or was aborted, with what had arrived of the answer.
   * @throws the error of the store when nothing can be recorded any more
   */
  async fail(error: unknown): Promise<void> {
    if (this.#isRecorded) return;
    try {
      this.#broken.signal.throwIfAborted();
      this.#held.lost.throwIfAborted();
      const partial = partialAnswer(this.#chunks, {
        run: this.#run,
        step,
        ...modelMeta(this.#model),
        ...this.#meta,
      });
      const cut = partial === undefined ? [] : [partial];
      await this.#end([...cut, ...unbegunResults(cut, this.#run)], this.#noteOf(error));
    } finally {
      await this.#close();
    }
  }

  #noteOf(error: unknown): Draft {
    const { parts } = this.#place;
    if (this.signal.aborted) {
      const reason = messageOf(this.signal.reason);
      this.#emit({ type: 'session-cancelled', reason });
      return note('run/aborted', { run: this.#run, reason, unbegun: [] });
    }
    const failure = error instanceof ModelFailure ? error : new ModelFailure(error);
    const { message, response, cause } = failure;
    const comeBack = comeBackAfter(cause, { limits: limitsOf(parts.config), now: parts.now() });
    this.#emit({ type: 'session-completed', finish: 'error', haltedAtLimit: false });
    return note('run/error', {
      run: this.#run,
      message,
      ...(comeBack !== undefined && { retry_at: comeBack.retryAt }),
      ...(response !== undefined && { response }),
      ...this.#meta,
    });
  }

  /** Drops a part that is too large to store, so that the end is recorded. */
  async #end(partial: readonly Draft[], end: Draft): Promise<void> {
    try {
      await this.#append([...partial, end]);
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      await this.#append([end]);
    }
  }

  async #append(drafts: readonly Draft[]): Promise<void> {
    await this.#recorder.settle(drafts, this.#held.lease);
    this.#isRecorded = true;
  }

  #report(divergence: Parameters<NonNullable<RecordedPlace['onDivergence']>>[0]): void {
    const { session: _, ...event } = divergence;
    this.#emit({ type: 'history-diverged', ...event });
    try {
      this.#place.onDivergence?.(divergence);
    } catch (error) {
      this.#emit({ type: 'warning', message: `onDivergence failed: ${messageOf(error)}` });
    }
  }

  get #worker() {
    const { parts, session } = this.#place;
    return parts.worker({ session: session.name, id: session.id });
  }

  #emit(event: SessionEvent): void {
    this.#publish(eventChunk(event));
  }

  #publish(chunk: Chunk): void {
    const event = eventOf(chunk);
    if (event !== undefined) this.#worker.emitEvent(event);
  }

  #show(status?: Parameters<ReturnType<RecordedPlace['parts']['worker']>['showAct']>[1]): void {
    this.#worker.showAct(this.#held.lease.owner, status);
  }

  /** Releases the lease. Messages that wait in the inbox stay there for the next run. */
  async #close(): Promise<void> {
    const { parts } = this.#place;
    this.#unlisten();
    try {
      await this.#recorder.close();
      const spent = spentAborts(await this.#held.inbox());
      if (spent.length > 0) await this.#held.drain(spent.map(({ id }) => ({ id, drafts: [] })));
    } finally {
      await this.#held.release().finally(() => {
        this.#show();
        parts.delegations.delete(this.#over.promise);
        this.#over.resolve();
      });
    }
  }
}

/** The system prompt of a call; undefined without one. Pure. */
function instructionsIn({ prompt }: LanguageModelV4CallOptions): string | undefined {
  const texts = prompt.flatMap(({ role, content }) => (role === 'system' ? [content] : []));
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** The settings of a call, as entries record them. Pure. */
function settingsIn({ temperature, reasoning, providerOptions }: LanguageModelV4CallOptions) {
  return callSettingsIn({
    ...(temperature !== undefined && { temperature }),
    ...(reasoning !== undefined && { effort: reasoning }),
    ...(providerOptions !== undefined && { providerOptions: providerOptions as JsonObject }),
  });
}
