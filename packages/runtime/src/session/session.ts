/**
 * Sessions as a program holds them. `session.ts` is the object that `Deck.session` gives: it runs, sends, forks,
 * merges, rewinds and compacts by calling the rooms below. `child.ts` is a session with a parent, `delegate-tool.ts`
 * the tool by which a model delegates, `tool-context.ts` what a tool gets with its call. Imports `delegation` and what
 * lies below.
 */
import {
  anchor,
  type Entry,
  handoff,
  type Json,
  type JsonObject,
  type Point,
  type SessionInfo,
  TapeError,
  type TapeErrorCode,
  user,
  type View,
  type ViewOptions,
  view,
} from '@tapedeck/tape';
import { assertActive, select } from '@tapedeck/tape/internal';
import type { ConflictReport, EntryQuery, ForkPreview } from '@tapedeck/tape/store';
import type { UIMessage } from 'ai';
import { resolvePolicy } from '../compaction/policy.ts';
import { viewPolicyOf } from '../config/config.ts';
import { Delegation } from '../delegation/delegation.ts';
import { beforeDiscard, wakeFor } from '../delegation/deliver.ts';
import { previewDelegation } from '../delegation/fork-tasks.ts';
import { assertToolNames, type DelegateOptions, type DelegateTask } from '../delegation/options.ts';
import type { ChildOutcome, OutcomesOf } from '../delegation/outcome.ts';
import { assertOpen } from '../delegation/parts.ts';
import { type ForkOptions, forkFields, spawn, withDelivery } from '../delegation/spawn.ts';
import { SessionError, type SessionErrorCode } from '../errors.ts';
import { assertFields, fieldFault } from '../fields.ts';
import { type BranchOptions, branchFields, branchSession, metadataOf } from '../history/branch.ts';
import { rewindSession } from '../history/rewind.ts';
import { type Undone, undoSession } from '../history/undo.ts';
import {
  assertMerge,
  type MergeOptions,
  mergeChild,
  mergeChildren,
  mergeIntoFields,
} from '../merge/merge.ts';
import { assertSettings, settingsMeta } from '../model/call-settings.ts';
import { assertModelName, assertSpec } from '../model/name.ts';
import type { OutputSpec } from '../model/output.ts';
import type { ScopedRule } from '../permissions/decide.ts';
import { type Above, optionsFor } from '../run/above.ts';
import { type Instructions, instructionsOf, toolsOf } from '../run/instructions.ts';
import { isTooLate } from '../run/lost-answer.ts';
import { borrowServers, callableServers } from '../run/mcp-tools.ts';
import { type Input, type RunOptions, runFields } from '../run/options.ts';
import { defaultMode, effectOf } from '../run/queue.ts';
import { callbackFields, type Run } from '../run/run.ts';
import type { Worker } from '../run/worker.ts';
import { type Status, statusOf, untilIdle } from '../status/status.ts';
import { findBelow } from '../status/waits.ts';
import type { Decision } from '../stream/call.ts';
import { type Chunk, eventsOf } from '../stream/chunks.ts';
import type { SessionEvent } from '../stream/events.ts';
import { watchChunks } from '../stream/replay.ts';
import { type Fresh, tail } from '../stream/tail.ts';
import { isTraced, scopeHere } from '../telemetry/span.ts';
import { modelFor } from '../terms/model-for.ts';
import { openPermits, type Permit, type Permits } from '../terms/permits.ts';
import type { Ancestry, SessionFacts } from '../terms/terms.ts';
import { withToolRules } from '../terms/tool-rules.ts';
import { assertOutsideRun } from '../tools/current-call.ts';
import { answerFault, awaitsAnswer, openBatch } from '../tools/open-batch.ts';
import type { DeckTools } from '../tools/traits.ts';
import { type UIMessagesOptions, uiMessages } from '../ui/messages.ts';
import { readUsage, type SessionUsage, type TreeUsage } from '../usage/session-usage.ts';
import { workspaceOf } from '../workspace/open.ts';
import { inputFault } from './check-input.ts';
import type { Child } from './child.ts';
import { type Compaction, type CompactOptions, compactFields, compactSession } from './compact.ts';
import {
  type AnchorReceipt,
  type RespondOptions,
  type RewindOptions,
  respondFields,
  rewindFields,
  type SendOptions,
  type Sent,
  type SessionRewound,
  type SessionRules,
  type StartOptions,
  type SubscribeOptions,
  sendFields,
  startFields,
  subscribeFields,
  viewFields,
} from './options.ts';
import { type DeckParts, partsOf } from './parts.ts';
import { type PossibleCall, permitOf } from './permit.ts';

/**
 * One conversation on one tape, returned by `Deck.session`. An idle session holds no lease; a run or a change
 * takes one.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * console.log((await main.run('Plan the release.')).finish); // stop
 * const { messages } = await main.view();
 * console.log(messages.map(({ role }) => role)); // [ 'user', 'assistant' ]
 * ```
 */
export class Session {
  readonly name: string;
  /** The session's ULID. */
  readonly id: string;
  readonly tape: string;
  readonly #parts: DeckParts;
  readonly #kind: string;

  constructor(parts: DeckParts, info: Pick<SessionInfo, 'session' | 'id' | 'tape' | 'kind'>) {
    this.#parts = parts;
    partsOf.set(this, parts);
    this.#kind = info.kind;
    this.name = info.session;
    this.id = info.id;
    this.tape = info.tape;
  }

  get #worker(): Worker {
    return this.#parts.worker({ session: this.name, id: this.id });
  }

  /**
   * Appends the input and runs the model and its tools until the model stops calling tools. Without input, it
   * takes up the inbox; when the inbox is empty, it continues what is unfinished: a run that was cut off, stopped or
   * failed, calls that were answered since, a task that has not begun, a message without an answer. When nothing is, it
   * calls no model, writes nothing, and its result has `nothingToContinue`. Awaiting the run rejects with SESSION_BUSY while this or another
   * process runs the session (`send` queues instead), and with TAPE_ARCHIVED, SESSION_NO_MODEL,
   * SESSION_NO_KEY or SESSION_BAD_INPUT before anything is written.
   */
  run(input?: Input, options: RunOptions = {}): Run {
    return this.start(input, options);
  }

  /** Starts a run. `output` makes the value of the session's result. */
  protected start<T>(input: Input | undefined, options: RunOptions, output?: OutputSpec<T>): Run<T> {
    const fault =
      fieldFault(options, runFields, `run '${this.name}'`) ??
      inputFault(this.name, { input, settings: options.settings, tools: options.tools, meta: options.meta });
    const given = fault === undefined ? options : {};
    const caller = isTraced() ? scopeHere() : undefined;
    const request = { run: this.#parts.newId(), input, options: given, output, caller };
    return this.#worker.start(request, fault) as Run<T>;
  }

  /**
   * Posts a message to the session's inbox, and starts a run with it when no process runs the session.
   * Resolves once the message is durable. Without a usable model the message stays queued until a process
   * runs the session.
   * @throws SESSION_BAD_INPUT, SESSION_NO_MODEL when `model` is not the name of one, TAPE_ARCHIVED; the
   *   message is not posted
   */
  async send(input: Input, options: SendOptions = {}): Promise<Sent> {
    assertFields(options, sendFields, `send to '${this.name}'`);
    const { source, key, model, settings = {}, meta, on, start = true, run: given = {} } = options;
    if (on !== undefined) assertFields(on, callbackFields, `send to '${this.name}'`);
    this.#assertStart(given, `send to '${this.name}'`);
    const mode = options.mode ?? defaultMode(source, this.#kind);
    const fault = inputFault(this.name, { input, mode, source, settings, meta });
    if (fault !== undefined) throw fault;
    assertModelName(model, 'message');
    const facts = { ...(model !== undefined && { model }), ...settingsMeta(settings) };
    const post = () =>
      this.#parts.store.inbox.post(this.id, {
        body: { type: 'input', drafts: [user(input, { ...meta, ...facts })] },
        mode,
        source: source ?? 'user',
        ...(key !== undefined && { key }),
      });
    const { id, appended, owner } = await this.#worker.post(post, start ? given : {});
    if (appended !== undefined) return { id, state: 'started' };
    const { run } = start ? await this.#startQueued(id, given) : {};
    if (run !== undefined) {
      const text = on === undefined ? undefined : run.watch(on);
      // A caller that awaits `text` sees the failure; without one, the rejection must not end the process.
      text?.catch(() => {});
      return { id, state: 'started', run, ...(text !== undefined && { text }) };
    }
    return { id, state: owner !== undefined || this.#worker.isServing ? effectOf(mode) : 'queued' };
  }

  /**
   * Answers a waiting call: one pending approval with a decision, which can count for good (`remember`), a client-side one with its output or its error. Then
   * continues the session, unless a process runs it. Also answers the calls of sessions below, by their ids in
   * `tool-waiting` events, or by those of the calls themselves where only one has it: then the run is that of the session
   * below, and when it has ended, the call that waited for it gets the result, and this session goes on. The options reach
   * all of these runs.
   * @throws SESSION_NO_CALL when no call with this id waits, or it needs the other kind of answer;
   *   TAPE_ARCHIVED
   */
  async respond(
    toolCallId: string,
    answer: Decision | { readonly output: Json } | { readonly error: string },
    given: RespondOptions = {},
  ): Promise<Sent> {
    assertFields(given, respondFields, `respond in '${this.name}'`);
    const { start = true, ...options } = given;
    assertSettings(options.settings, `respond in '${this.name}'`);
    const unfit = inputFault(this.name, { tools: options.tools });
    if (unfit !== undefined) throw unfit;
    return await this.#respond(toolCallId, answer, { start, above: { options, until: this.id } });
  }

  /** Answers a call of this session or of one below it, for the session at which the answer was given. */
  async #respond(
    toolCallId: string,
    answer: Parameters<Session['respond']>[1],
    { start, above }: { readonly start: boolean; readonly above: Above },
  ): Promise<Sent> {
    const refuse = (why: string) =>
      new SessionError('SESSION_NO_CALL', `cannot answer call '${toolCallId}' of '${this.name}': ${why}`, {
        data: { session: this.name, call: toolCallId },
      });
    const { store } = this.#parts;
    const info = await store.sessions.find(this.id);
    const call = (await openBatch(store, info ?? this.id)).find((one) => one.toolCallId === toolCallId);
    if (call === undefined || !awaitsAnswer(call)) {
      const [below, ...others] = await findBelow(store, this.id, toolCallId);
      if (others.length > 0)
        throw refuse(`several sessions below wait with this id: name ${below?.ref} or ${others[0]?.ref}`);
      if (below !== undefined)
        return await this.#parts
          .session(below.session)
          .#respond(below.call.toolCallId, answer, { start, above });
    }
    const fault = answerFault(call, answer);
    if (fault !== undefined) throw refuse(fault);
    const body = { type: 'answer', toolCallId, answer: { ...answer } as JsonObject } as const;
    const isDifferent = 'it already has a different answer';
    let id: string;
    try {
      ({ id } = await store.inbox.post(this.id, { body, key: `answer:${toolCallId}` }));
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_KEY_CONFLICT') throw error;
      throw refuse(isDifferent);
    }
    const item = { id, body, source: 'user' };
    if (call !== undefined && info !== undefined && (await isTooLate(store, info, { call, item })))
      throw refuse(isDifferent);
    const more = above.until === this.id ? {} : { above };
    const { run } = start ? await this.#startQueued(id, optionsFor(this.id, above), more) : {};
    return run === undefined ? { id, state: 'queued' } : { id, state: 'started', run };
  }

  /** Runs the inbox where this process can. Returns the run if it took up the item. */
  async #startQueued(
    item: string,
    options: RunOptions = {},
    more: { readonly above?: Above } = {},
  ): Promise<{ readonly run?: Run }> {
    try {
      const started = await this.#worker.startQueued(options, { ...more, item });
      // In an object, since a run is thenable: returning it would await its result.
      return started?.run.took.includes(item) === true ? { run: started.run } : {};
    } catch (error) {
      // The message is in the inbox: the process that runs the session takes it up, or the next run does.
      if ((error instanceof SessionError || error instanceof TapeError) && leavesQueued.has(error.code))
        return {};
      throw error;
    }
  }

  /** Runs the messages that were posted to the inbox while an act had the lease. */
  async #startLeft(): Promise<void> {
    const left = await this.#parts.store.inbox.list(this.id);
    const [first] = left.filter(({ body: { type } }) => type === 'input' || type === 'answer');
    if (first !== undefined) await this.#startQueued(first.id);
  }

  /** The current run of the session in this process. */
  attach(): Run | undefined {
    return this.#worker.run;
  }

  /**
   * Aborts the current run. In this process it waits for the end of the run; for another process it posts the
   * abort to the inbox. Text received so far stays on the tape; calls under way stay open until the next run.
   */
  async abort(reason = 'aborted'): Promise<void> {
    const run = this.#worker.run;
    if (run !== undefined) {
      run.abort(reason);
      await run.then(
        () => {},
        () => {},
      );
      return;
    }
    const writing = (await this.#parts.store.leases.list()).find(({ id }) => id === this.id);
    if (writing === undefined) return;
    await this.#parts.store.inbox.post(this.id, { body: { type: 'abort', owner: writing.owner.id, reason } });
  }

  /**
   * The whole session as UI message streams, one after another, for a client that loads it. Rewound entries
   * are left out.
   */
  async *replay(): AsyncGenerator<Chunk> {
    const entries = await Array.fromAsync(this.#parts.store.views.entries(this.id, { policy: 'full' }));
    const shown = select(entries, 'full').entries;
    async function* fresh(): AsyncGenerator<Fresh> {
      for (const entry of shown) yield { type: 'entry', entry };
    }
    yield* watchChunks(fresh());
  }

  /**
   * The messages of the session as the AI SDK's chats hold them, for `useChat({ messages })`. Messages that a chat sent
   * have the ids that it gave them. Rewound entries are left out, messages that wait in the inbox are the last, and what a
   * process that died had saved of an answer is there.
   */
  async uiMessages(options: UIMessagesOptions = {}): Promise<UIMessage[]> {
    assertFields(options, { last: 'limit' }, `read the messages of '${this.name}'`);
    return await uiMessages(this.#parts.store, this.id, options);
  }

  /**
   * The events of the session. With `from`, they are read from the tape, whichever process writes it:
   * recorded events from that position on, then the live answer as it is saved (25 ms late), each event once.
   * Without `from`, they are the events of this process from now on, immediately, including status changes.
   */
  subscribe(options: SubscribeOptions = {}): AsyncIterable<SessionEvent> {
    assertFields(options, subscribeFields, `subscribe to '${this.name}'`);
    const { from, signal } = options;
    if (from === undefined) return this.#worker.listen(signal);
    const { store } = this.#parts;
    return eventsOf(watchChunks(tail(store, this.id, { from, signal })));
  }

  /** The run state, lifecycle, task and inbox of the session. */
  async status(): Promise<Status> {
    return await statusOf(this.#parts, { id: this.id, run: this.#worker.status });
  }

  /** Resolves when no process runs the session. */
  async idle(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    assertFields(options, { signal: true }, `wait for '${this.name}'`);
    assertOutsideRun(this.#parts.store, this.name, `wait for '${this.name}'`);
    await this.#worker.idle();
    await untilIdle(this.#parts.store, [this.id], options);
  }

  /**
   * Writes a mark anchor: it names this point and carries a state. The view continues across it.
   * @throws TAPE_ARCHIVED
   */
  async anchor(name: string, state: JsonObject = {}): Promise<AnchorReceipt> {
    assertActive(await this.info(), 'anchor');
    const { to } = await this.#parts.store.entries.append(this.id, [anchor(name, state)]);
    return { session: this.name, seq: to, name };
  }

  /**
   * Writes a boundary anchor: the next view starts here, with the summary and state.
   * @throws TAPE_ARCHIVED
   */
  async handoff(
    name: string,
    options: { readonly summary?: string; readonly state?: JsonObject } = {},
  ): Promise<AnchorReceipt> {
    assertFields(options, { summary: true, state: true }, `hand off '${this.name}'`);
    const { summary, state = {} } = options;
    assertActive(await this.info(), 'hand off');
    const full = summary === undefined ? state : { summary, ...state };
    const { to } = await this.#parts.store.entries.append(this.id, [handoff(name, full)]);
    return { session: this.name, seq: to, name };
  }

  /**
   * Makes the session read as if it ended right before a visible user message. `edit` returns the message, to
   * be changed and sent; `resend` appends it again and runs it. Nothing is removed: `undo` shows the
   * hidden entries.
   * @throws SESSION_BUSY while this or another process runs it; TAPE_BAD_POINT when the point is not a
   *   visible user message; with `resend` also SESSION_NO_MODEL or SESSION_NO_KEY, before anything is written
   */
  async rewind(to: Point, given: RewindOptions = {}): Promise<SessionRewound> {
    assertFields(given, rewindFields, `rewind '${this.name}'`);
    const { mode = 'edit', model, settings, start = true, run = {} } = given;
    assertModelName(model);
    assertSettings(settings, `rewind '${this.name}'`);
    this.#assertStart(run, `rewind '${this.name}'`);
    this.#assertIdle('rewind');
    const named = { ...(model !== undefined && { model }), ...(settings !== undefined && { settings }) };
    const options = { ...run, ...named };
    const isRun = mode === 'resend' && start;
    if (isRun) await modelFor(this.#parts, await this.#worker.facts(), { options });
    const { store, config } = this.#parts;
    const place = { store, hooks: config.hooks };
    const rewound = await rewindSession(place, this.id, { to, mode, ...named });
    for (const message of rewound.warnings) this.#worker.warn(message);
    return isRun ? { ...rewound, run: this.run(undefined, options) } : rewound;
  }

  /**
   * Undoes the newest act, or the one at a point: a rewind, summary or pruning, or an anchor, handoff or merge of its
   * own. The view is then what it was before the act. It is done by a rewind, so a second call undoes the first. An
   * undone rewind hides the messages that were added since; only events may follow another act.
   * @throws SESSION_BUSY; SESSION_CANNOT_UNDO when the session has none of them, or other entries follow what is
   *   no rewind; TAPE_BAD_POINT when the entry at the point is not one of them, or is hidden
   */
  async undo(options: { readonly at?: Point } = {}): Promise<Undone> {
    assertFields(options, { at: true }, `undo '${this.name}'`);
    this.#assertIdle('undo');
    return await undoSession(this.#parts.store, this.id, options);
  }

  /** @throws SESSION_BAD_INPUT, SESSION_NO_MODEL */
  #assertStart(run: StartOptions, act: string): void {
    assertFields(run, startFields, act);
    if (run.model !== undefined) assertSpec(run.model);
    assertSettings(run.settings, act);
    const unfit = inputFault(this.name, { tools: run.tools });
    if (unfit !== undefined) throw unfit;
  }

  /** Checks this process only. The lease refuses the act while another process runs the session. */
  #assertIdle(act: string): void {
    if (!this.#worker.isServing) return;
    const message = `cannot ${act} '${this.name}': it is running`;
    throw new SessionError('SESSION_BUSY', message, { data: { session: this.name } });
  }

  /**
   * Starts an independent session from a visible point, inclusive. Default: from the head. The branch keeps
   * the settings and is not merged automatically. This session's tape is not written.
   * @throws SESSION_BUSY while this or another process runs this session; TAPE_BAD_POINT. No branch is made
   *   then
   */
  async branch(cut?: Point, options: BranchOptions = {}): Promise<Session> {
    assertFields(options, branchFields, `branch '${this.name}'`);
    this.#assertTools('branch', [...(options.tools ?? []), ...(options.uses ?? [])]);
    this.#assertIdle('branch');
    const { store } = this.#parts;
    const place = cut === undefined ? options : { ...options, cut };
    const { id } = await branchSession(store, await this.info(), place);
    const info = await store.sessions.find(id);
    if (info === undefined) throw new TypeError('the new branch is not in the store');
    return this.#parts.session(info);
  }

  /**
   * The metadata that this branch was made with, over that of the sessions above it. Empty for other
   * sessions.
   */
  async metadata(): Promise<JsonObject> {
    return await metadataOf(this.#parts.store, await this.info());
  }

  /**
   * Replaces the older part of the view by a summary, if that makes the view smaller. With `prune` it only
   * removes large tool outputs from the view. Returns undefined when it changed nothing. Afterwards it runs
   * the messages that arrived meanwhile.
   * @throws SESSION_BUSY, TAPE_ARCHIVED, SESSION_NO_MODEL, SESSION_BAD_INPUT, SESSION_COMPACTION_FAILED
   */
  async compact(options: CompactOptions = {}): Promise<Compaction | undefined> {
    assertFields(options, compactFields, `compact '${this.name}'`);
    assertOpen(this.#parts, 'compact', this.name);
    try {
      return await compactSession(this.#parts, this, options);
    } finally {
      if (options.start !== false) await this.#startLeft();
    }
  }

  /** Forks a child from a point of this session, by reference. This session's tape is not written. */
  async fork<T = unknown>(options: ForkOptions<T> = {}): Promise<Child<T>> {
    assertFields(options, forkFields, `fork '${this.name}'`);
    const fork = { options: withDelivery(this.name, options) };
    this.#assertTools('fork', [...(options.tools ?? []), ...(options.uses ?? [])]);
    const { info, directory } = await this.#parts.forking.add(
      async () => await spawn(this.#parts, await this.#line(), fork),
    );
    return this.#parts.child<T>(info, { ...options, directory });
  }

  /**
   * The parent: the session that this one was forked from.
   * @throws SESSION_BAD_INPUT when this session has no parent
   */
  async manager(): Promise<Session> {
    const { parentId } = await this.info();
    const parent = parentId === undefined ? undefined : await this.#parts.store.sessions.find(parentId);
    if (parent !== undefined) return this.#parts.session(parent);
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot reach the manager of '${this.name}': it has no parent`,
      {
        data: { session: this.name },
      },
    );
  }

  /**
   * A child of this session, by its name or id.
   * @throws SESSION_BAD_INPUT when the session is not a child of this one
   */
  async child(ref: string): Promise<Session> {
    const info = await this.#parts.store.sessions.find(ref);
    if (info?.parentId === this.id) return this.#parts.session(info);
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot reach '${ref}': it is not a child of '${this.name}'`,
      {
        data: { session: this.name, child: ref },
      },
    );
  }

  /**
   * Forks a child, calls `act` with it, and merges it when `act` returns, unless `act` discarded it. When
   * `act` throws, it applies `onUnmerged` to the child, then throws the same error.
   * @throws SESSION_BAD_INPUT without a function, before anything is forked
   */
  async withFork<T, O = unknown>(
    options: ForkOptions<O>,
    act: (child: Child<O>) => Promise<T>,
  ): Promise<{ value: T; merge: Awaited<ReturnType<Child['finish']>> }> {
    if (typeof act !== 'function')
      throw new SessionError(
        'SESSION_BAD_INPUT',
        `cannot fork '${this.name}' for an act: the second argument must be a function`,
        { data: { session: this.name } },
      );
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

  /**
   * Forks a child for each task, runs up to `concurrency` of them at once, and merges each. Awaiting the
   * delegation rejects with TAPE_ARCHIVED, before any fork, when the session is archived, since it could take
   * no merge. The `output` of each outcome has the type of the schema of its task.
   */
  delegate<T = Json>(
    task: string | DelegateTask<T>,
    options?: DelegateOptions<T>,
  ): Delegation<readonly [ChildOutcome<T>]>;
  delegate<const Tasks extends readonly (string | DelegateTask<unknown>)[], T = Json>(
    tasks: Tasks,
    options?: DelegateOptions<T>,
  ): Delegation<OutcomesOf<Tasks, T>>;
  delegate(
    tasks: string | DelegateTask<unknown> | readonly (string | DelegateTask<unknown>)[],
    options: DelegateOptions<unknown> = {},
  ): Delegation<readonly ChildOutcome<unknown>[]> {
    return new Delegation(this.#parts, this, { tasks: tasksOf(tasks), options });
  }

  /**
   * Makes the checks of `delegate`, and returns what the fork of each task would write. Writes nothing, and calls no
   * model.
   */
  async previewDelegation(
    tasks: string | DelegateTask<unknown> | readonly (string | DelegateTask<unknown>)[],
    options: DelegateOptions<unknown> = {},
  ): Promise<readonly ForkPreview[]> {
    return await previewDelegation(this.#parts, this, { tasks: tasksOf(tasks), options });
  }

  /**
   * Merges a child's result. While a process runs this session, it posts the merge to the inbox and waits
   * until that run performs it, at the next settled point.
   */
  async merge(
    child: string | Session,
    options: Omit<MergeOptions, 'into'> = {},
  ): ReturnType<typeof mergeChild> {
    assertMerge(options, mergeIntoFields, `merge into '${this.name}'`);
    if (options.waitMs === undefined)
      assertOutsideRun(this.#parts.store, this.name, `merge into '${this.name}'`);
    const facts = await this.#factsOf(nameOf(child));
    await beforeDiscard(this.#parts, facts.info, options);
    const merged = await mergeChild(this.#parts, facts, { ...options, into: this.name });
    await wakeFor(this.#parts, facts.info);
    return merged;
  }

  /** Merges the results of several children in one transaction, all or none, in the given order. */
  async mergeAll(
    children: readonly (string | Session)[],
    options: Omit<MergeOptions, 'into'> = {},
  ): ReturnType<typeof mergeChildren> {
    assertMerge(options, mergeIntoFields, `merge into '${this.name}'`);
    if (options.waitMs === undefined)
      assertOutsideRun(this.#parts.store, this.name, `merge into '${this.name}'`);
    const names = children.map((child) => nameOf(child));
    const facts: SessionFacts[] = [];
    for (const name of names) facts.push(await this.#factsOf(name));
    const merged = await mergeChildren(this.#parts, facts, { ...options, into: this.name });
    for (const { info } of facts) await wakeFor(this.#parts, info);
    return merged;
  }

  /** @throws SESSION_BAD_INPUT for the name of a tool that neither the deck nor the current run has */
  #assertTools(act: string, names: readonly string[] = []): void {
    const running = this.#worker.request?.options.tools;
    const { tools, mcpServers } = this.#parts.config;
    const offered = { tools: { ...tools, ...running }, servers: mcpServers };
    assertToolNames(names, offered, { act, session: this.name });
  }

  async #line(): Promise<Ancestry> {
    return await this.#worker.line();
  }

  /** @throws TAPE_NO_SESSION, with near names */
  async #factsOf(ref: string): Promise<SessionFacts> {
    const { store, worker } = this.#parts;
    const info = await store.sessions.find(ref);
    if (info !== undefined) return await worker(info).facts(info);
    await store.entries.resolve(ref, 'head');
    throw new TypeError('the session is not in the store');
  }

  /** The conflicts of merging a child: what both sides changed since the fork. Nothing is written. */
  async checkMerge(child: string | Session): Promise<ConflictReport> {
    const name = nameOf(child);
    const { complete, conflicts } = await this.#parts.store.lineage.previewMerge(name, { into: this.name });
    return { complete, conflicts };
  }

  /**
   * The view of this session: the messages that its model sees. Default policy: that of the deck.
   * @throws TAPE_BAD_POLICY; TAPE_NO_ANCHOR when the policy names an anchor that is not visible;
   *   TAPE_BAD_POINT
   */
  async view(options: ViewOptions & { readonly at?: Point } = {}): Promise<View> {
    assertFields(options, viewFields, `view '${this.name}'`);
    const {
      policy = viewPolicyOf(this.#parts.config),
      target = {},
      at = 'head',
      countTokens = resolvePolicy(this.#parts.config.compaction).countTokens,
    } = options;
    return view(await Array.fromAsync(this.#parts.store.views.entries(this.id, { policy, at })), {
      policy,
      target,
      countTokens,
    });
  }

  /**
   * What would become of a call of a tool, and what decides: the strictest of what the session and those above it say of all
   * that the call claims to do. A tool that asks by itself (`needsApproval`) is asked. Nothing is written, and the tool does
   * not run. `tools`: instead of those of the deck.
   * @throws SESSION_NO_TOOL when there is no such tool; `data.tools` and `data.near` name others. SESSION_BAD_INPUT for
   *   arguments that it does not take; `data.schema` says which it does
   *
   * @example
   * ```ts
   * import { openDeck } from '@tapedeck/runtime';
   * import { openTapeStore } from '@tapedeck/tape';
   * import { tool } from 'ai';
   * import { z } from 'zod';
   *
   * const inputSchema = z.object({ command: z.string() });
   * const run_command = tool({ inputSchema, execute: ({ command }) => `ran ${command}` });
   * await using deck = await openDeck({
   *   store: openTapeStore(':memory:'),
   *   permissions: ['trusted', 'deny run_command'],
   *   tools: { run_command },
   * });
   * const main = await deck.session('main');
   * const { verdict, rule } = await main.permits({ tool: 'run_command', input: { command: 'ls' } });
   * console.log(verdict, rule); // deny deny run_command
   * ```
   */
  async permits(
    call: PossibleCall,
    { tools = this.#parts.config.tools ?? {} }: { readonly tools?: DeckTools } = {},
  ): Promise<Permit> {
    const permits = await this.#permits(tools);
    return await permitOf(
      { line: await this.#line(), permits, tools: toolsOf(this.#parts, { tools }) },
      call,
    );
  }

  /**
   * The rules that decide on calls of the session: for itself and each session above it, the root first, those of the deck,
   * of the home and of sessions, the last of which counts; and what persons have granted it.
   */
  async rules(): Promise<SessionRules> {
    const permits = await this.#permits();
    const plain = (rules: readonly ScopedRule[]) => rules.map(({ text, scope }) => ({ rule: text, scope }));
    const names = Object.keys(this.#parts.config.mcpServers ?? {});
    const subject = { line: await this.#line(), senders: [] };
    const callable = names.length === 0 ? [] : await callableServers(this.#parts, subject);
    return {
      lineage: permits.lineage.map(({ session, rules }) => ({ session, rules: plain(rules) })),
      grants: (await permits.grants()).map(({ text }) => text),
      ...(names.length > 0 && {
        servers: names.map((server) => ({ server, callable: callable.includes(server) })),
      }),
    };
  }

  async #permits(tools = this.#parts.config.tools): Promise<Permits> {
    const workspace = await workspaceOf(this.#parts, this.id);
    const parts = { ...this.#parts, config: withToolRules(this.#parts.config, tools) };
    return await openPermits(parts, { line: await this.#line(), workspace });
  }

  /**
   * The instructions that the next model call would receive, and the parts left out of them. The options are
   * those of a run. Nothing is written.
   */
  async instructions(
    options: Pick<RunOptions, 'model' | 'instructions' | 'tools' | 'useTools'> = {},
  ): Promise<Instructions> {
    const info = await this.info();
    // Only a prompt that describes the tools needs those of servers, which start for it.
    if (this.#parts.config.prompt?.tools !== true) return await instructionsOf(this.#parts, info, options);
    const subject = { line: await this.#line(), senders: [] };
    const { signal } = new AbortController();
    using loan = await borrowServers(this.#parts, subject, { options, signal });
    const tools = { ...toolsOf(this.#parts, options), ...loan?.tools };
    return await instructionsOf(this.#parts, info, loan === undefined ? options : { ...options, tools });
  }

  /** The entries of the session, inherited ones too, in ascending order. */
  async *entries(query: EntryQuery = {}): AsyncIterable<Entry> {
    yield* this.#parts.store.entries.read(this.id, query);
  }

  /**
   * The usage of the model calls on this session's own entries; separately, that of its inherited entries and
   * of its summaries; with `tree`, also that of its descendants: `tree` is the sum of all, `total` its own.
   */
  async usage(options: { readonly tree: true }): Promise<TreeUsage>;
  async usage(options?: { readonly tree?: boolean }): Promise<SessionUsage>;
  async usage(options: { readonly tree?: boolean } = {}): Promise<SessionUsage> {
    assertFields(options, { tree: true }, `add up the usage of '${this.name}'`);
    return await readUsage(
      this.#parts.store,
      { session: this.name, id: this.id },
      { ...options, beside: true },
    );
  }

  /** The current row of the session. */
  async info(): Promise<SessionInfo> {
    const info = await this.#parts.store.sessions.find(this.id);
    if (info === undefined)
      throw new SessionError('SESSION_CLOSED', `cannot find '${this.name}': its row is gone`, {
        data: { session: this.name },
      });
    return info;
  }
}

function tasksOf(
  tasks: string | DelegateTask<unknown> | readonly (string | DelegateTask<unknown>)[],
): readonly DelegateTask<unknown>[] {
  return [tasks].flat().map((task) => (typeof task === 'string' ? { task } : task));
}

/** The name of a child that a caller gives by its name or its session. */
function nameOf(child: string | Session): string {
  if (typeof child === 'string') return child;
  if (child instanceof Session) return child.name;
  throw new SessionError('SESSION_BAD_INPUT', `cannot merge: a child is given by its name or its session`);
}

/** Errors that leave a message queued, because this process cannot run the session now. */
const leavesQueued: ReadonlySet<SessionErrorCode | TapeErrorCode> = new Set([
  // Archived since the message was posted.
  'TAPE_ARCHIVED',
  'SESSION_BUSY',
  'SESSION_CLOSED',
  'SESSION_NO_MODEL',
  'SESSION_NO_KEY',
  'SESSION_NO_FILE',
  'SESSION_BAD_SCRIPT',
]);
