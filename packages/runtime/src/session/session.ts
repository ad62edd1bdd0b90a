/**
 * Sessions as a program holds them. `session.ts` is the object that `Deck.session` gives: it runs, sends, forks,
 * merges, rewinds and compacts by calling the rooms below. `child.ts` is a session with a parent, `delegate-tool.ts`
 * the tool by which a model delegates, `tool-context.ts` what a tool gets with its call. Imports `delegation` and what
 * lies below.
 */
import {
  anchor,
  type ConflictReport,
  type Entry,
  type EntryQuery,
  handoff,
  type Json,
  type JsonObject,
  type Point,
  type Rewound,
  type SessionInfo,
  select,
  TapeError,
  type TapeErrorCode,
  user,
  type View,
  type ViewOptions,
  view,
} from '@tapedeck/tape';
import { resolvePolicy } from '../compaction/policy.ts';
import { viewPolicyOf } from '../config/config.ts';
import { Delegation } from '../delegation/delegation.ts';
import type { DelegateOptions, DelegateTask } from '../delegation/options.ts';
import { type ForkOptions, forkFields, spawn } from '../delegation/spawn.ts';
import { SessionError, type SessionErrorCode } from '../errors.ts';
import { assertFields, fieldFault } from '../fields.ts';
import { type BranchOptions, branchFields, branchSession, metadataOf } from '../history/branch.ts';
import { rewindSession, unrewindSession } from '../history/rewind.ts';
import { type Uncompacted, uncompactSession } from '../history/uncompact.ts';
import { type MergeOptions, mergeChild, mergeChildren, mergeFields } from '../merge/merge.ts';
import { type Instructions, instructionsOf } from '../run/instructions.ts';
import { type Input, type RunOptions, runFields } from '../run/options.ts';
import { defaultMode, effectOf } from '../run/queue.ts';
import type { Run } from '../run/run.ts';
import type { Worker } from '../run/worker.ts';
import { type Status, statusOf, untilIdle } from '../status/status.ts';
import type { Decision } from '../stream/call.ts';
import { type Chunk, eventsOf } from '../stream/chunks.ts';
import type { SessionEvent } from '../stream/events.ts';
import { watchChunks } from '../stream/replay.ts';
import { type Fresh, tail } from '../stream/tail.ts';
import { modelFor } from '../terms/model-for.ts';
import { type Line, lineOf, type SessionFacts } from '../terms/terms.ts';
import { answerFault, openBatch } from '../tools/open-batch.ts';
import { readUsage, type SessionUsage } from '../usage/session-usage.ts';
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
  type SubscribeOptions,
  sendFields,
  subscribeFields,
} from './options.ts';
import type { DeckParts } from './parts.ts';

/**
 * One conversation on one tape. It holds no lease while idle; a run or an act takes one. Made by `Deck.session`.
 */
export class Session {
  readonly name: string;
  /** The session's ULID. */
  readonly id: string;
  readonly tape: string;
  readonly #parts: DeckParts;
  readonly #worker: Worker;
  readonly #kind: string;

  constructor(parts: DeckParts, info: SessionInfo) {
    this.#parts = parts;
    this.#worker = parts.worker(info);
    this.#kind = info.kind;
    this.name = info.name;
    this.id = info.id;
    this.tape = info.tape;
  }

  /**
   * Appends the input and runs the model and its tools until nothing is left to do. Without input it takes up what waits in the
   * inbox, else goes on from the tail: runs the calls that were answered meanwhile, asks the model. Awaiting the run rejects with SESSION_BUSY when the session
   * is being run, here or elsewhere (`send` queues), and with TAPE_ARCHIVED, SESSION_NO_MODEL, SESSION_NO_KEY or SESSION_BAD_INPUT before anything is written.
   */
  run(input?: Input, options: RunOptions = {}): Run {
    const fault =
      fieldFault(options, runFields, `run '${this.name}'`) ??
      inputFault(this.name, { input, maxSteps: options.maxSteps });
    return this.#worker.start({ run: this.#parts.newId(), input, options }, fault);
  }

  /**
   * Leaves a message for the session, and starts a run with it when nobody is running the session. Resolves once it is
   * durable. Without a model that can be used here it stays queued until somebody runs the session.
   * @throws TAPE_ARCHIVED: nothing is left then
   */
  async send(input: Input, options: SendOptions = {}): Promise<Sent> {
    assertFields(options, sendFields, `send to '${this.name}'`);
    const { source, key, model, meta, on, takeUp = true } = options;
    const mode = options.mode ?? defaultMode(source, this.#kind);
    const fault = inputFault(this.name, { input, mode });
    if (fault !== undefined) throw fault;
    const { id, appended, owner } = await this.#parts.store.post(this.id, {
      body: { type: 'input', drafts: [user(input, { ...meta, ...(model !== undefined && { model }) })] },
      mode,
      source: source ?? 'user',
      ...(key !== undefined && { key }),
    });
    if (appended !== undefined) return { id, state: 'started' };
    const { run } = takeUp ? await this.#takeUp(id) : {};
    if (run !== undefined) {
      const text = on === undefined ? undefined : run.watch(on);
      // Whoever awaits it sees its failure; one that nobody awaits must not end the process.
      text?.catch(() => {});
      return { id, state: 'started', run, ...(text !== undefined && { text }) };
    }
    return { id, state: owner !== undefined || this.#worker.isServing ? effectOf(mode) : 'queued' };
  }

  /**
   * Answers a call that waits: an approval with a decision, a call that a client runs with its output. Then goes on, when nobody is
   * running the session.
   * @throws SESSION_NO_CALL when no such call waits, or it waits for an answer of the other kind; TAPE_ARCHIVED
   */
  async respond(
    toolCallId: string,
    answer: Decision | { readonly output: Json },
    given: RespondOptions = {},
  ): Promise<Sent> {
    assertFields(given, respondFields, `respond in '${this.name}'`);
    const { takeUp = true, ...options } = given;
    const refuse = (why: string) =>
      new SessionError('SESSION_NO_CALL', `cannot answer call '${toolCallId}' of '${this.name}': ${why}`, {
        data: { session: this.name, call: toolCallId },
      });
    const open = await openBatch(this.#parts.store, this.id);
    const fault = answerFault(
      open.find((call) => call.toolCallId === toolCallId),
      answer,
    );
    if (fault !== undefined) throw refuse(fault);
    let id: string;
    try {
      ({ id } = await this.#parts.store.post(this.id, {
        body: { type: 'answer', toolCallId, answer: { ...answer } },
        key: `answer:${toolCallId}`,
      }));
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_KEY_CONFLICT') throw error;
      throw refuse('it has been given another answer');
    }
    const { run } = takeUp ? await this.#takeUp(id, options) : {};
    return run === undefined ? { id, state: 'queued' } : { id, state: 'started', run };
  }

  /** Takes up what waits, if that can be done here; the run, when it has taken up the item. */
  async #takeUp(item: string, options: RunOptions = {}): Promise<{ readonly run?: Run }> {
    try {
      const started = await this.#worker.takeUp(options);
      // In an object: a run is awaited for its result.
      return started?.run.took.includes(item) === true ? { run: started.run } : {};
    } catch (error) {
      // Somebody else is running it and has been left the message, or the next who can run it will.
      if ((error instanceof SessionError || error instanceof TapeError) && leavesQueued.has(error.code))
        return {};
      throw error;
    }
  }

  /** Takes up, as a run of its own, what was left in the inbox while an act held the session. */
  async #takeUpLeft(): Promise<void> {
    const left = await this.#parts.store.inbox(this.id);
    const [first] = left.filter(({ body: { type } }) => type === 'input' || type === 'answer');
    if (first !== undefined) await this.#takeUp(first.id);
  }

  /** The run under way in this process, if there is one. */
  attach(): Run | undefined {
    return this.#worker.run;
  }

  /**
   * Stops the run under way, in this process or, through the inbox, in another, and waits for its end here. What was said so
   * far stays; calls under way stay open until the next run.
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
    const writing = (await this.#parts.store.owners()).find(({ id }) => id === this.id);
    if (writing === undefined) return;
    await this.#parts.store.post(this.id, { body: { type: 'abort', owner: writing.owner.id, reason } });
  }

  /**
   * All that the session shows, as UI message streams, one after another: what a client that loads it is sent (G72). Rewound
   * entries are not shown.
   */
  async *replay(): AsyncGenerator<Chunk> {
    const entries = await Array.fromAsync(this.#parts.store.viewEntries(this.id, { policy: 'full' }));
    const shown = select(entries, 'full').entries;
    async function* fresh(): AsyncGenerator<Fresh> {
      for (const entry of shown) yield { type: 'entry', entry };
    }
    yield* watchChunks(fresh());
  }

  /**
   * What happens in the session. From a position on, it is read from the tape, by whatever process it was written: what is
   * recorded, then the live answer as it is saved (25 ms late), each thing once. Without `from` it is everything that happens in this process
   * from now on, at once, changes of the status too.
   */
  subscribe(options: SubscribeOptions = {}): AsyncIterable<SessionEvent> {
    assertFields(options, subscribeFields, `subscribe to '${this.name}'`);
    const { from, signal } = options;
    if (from === undefined) return this.#worker.listen(signal);
    const { store } = this.#parts;
    return eventsOf(watchChunks(tail(store, this.id, { from, signal })));
  }

  /** Where the session stands now. */
  async status(): Promise<Status> {
    return await statusOf(this.#parts, { id: this.id, run: this.#worker.status });
  }

  /** Resolves when nobody is running the session, here or elsewhere. */
  async idle({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#worker.idle();
    await untilIdle(this.#parts.store, [this.id], { signal });
  }

  /** Writes a mark: names this point and carries a state, without cutting the view. */
  async anchor(name: string, state: JsonObject = {}): Promise<AnchorReceipt> {
    const { to } = await this.#parts.store.append(this.id, [anchor(name, state)]);
    return { session: this.name, seq: to, name };
  }

  /** Writes a boundary: the next view starts here, with the summary and state. */
  async handoff(
    name: string,
    { summary, state = {} }: { summary?: string; state?: JsonObject } = {},
  ): Promise<AnchorReceipt> {
    const full = summary === undefined ? state : { summary, ...state };
    const { to } = await this.#parts.store.append(this.id, [handoff(name, full)]);
    return { session: this.name, seq: to, name };
  }

  /**
   * Makes the session read as if it ended right before a message of a user, one that is visible: `edit` gives the message back, to be
   * changed and sent; `resend` appends it again, and runs it (G12-G21). Nothing is removed, and `unrewind` shows what is hidden.
   * @throws SESSION_BUSY while it is being run, here or elsewhere; TAPE_BAD_POINT when no such message is there; with `resend` also
   *   what makes a run impossible, before anything is written
   */
  async rewind(to: Point, given: RewindOptions = {}): Promise<SessionRewound> {
    assertFields(given, rewindFields, `rewind '${this.name}'`);
    const { mode = 'edit', model, takeUp = true } = given;
    this.#assertIdle('rewind');
    const options = model === undefined ? {} : { model };
    const isRun = mode === 'resend' && takeUp;
    if (isRun) await modelFor(this.#parts, await this.#worker.facts(), { options });
    const { store, config } = this.#parts;
    const place = { store, hooks: config.hooks };
    const rewound = await rewindSession(place, this.id, { to, mode, ...options });
    for (const message of rewound.warnings) this.#worker.warn(message);
    return isRun ? { ...rewound, run: this.run(undefined, options) } : rewound;
  }

  /**
   * Takes the last rewind back: what it hid is shown again, and what was said since is hidden. Again, it takes that back.
   * @throws SESSION_BUSY; TAPE_BAD_POINT when nothing was rewound
   */
  async unrewind(options: { readonly rewind?: Point } = {}): Promise<Rewound> {
    assertFields(options, { rewind: true }, `undo a rewind of '${this.name}'`);
    this.#assertIdle('rewind');
    return await unrewindSession({ store: this.#parts.store }, this.id, options);
  }

  /** Only what runs in this process is seen here: others have the lease. */
  #assertIdle(act: string): void {
    if (!this.#worker.isServing) return;
    const message = `cannot ${act} '${this.name}': it is running`;
    throw new SessionError('SESSION_BUSY', message, { data: { session: this.name } });
  }

  /**
   * Starts a session for people at a point that is visible, that point included: by default all of it. It goes on with the same
   * settings, is never merged by itself, and this session's tape is not written (G22-G31).
   * @throws SESSION_BUSY while this session is being run, here or elsewhere: nothing is made then; TAPE_BAD_POINT
   */
  async branch(at?: Point, options: BranchOptions = {}): Promise<Session> {
    assertFields(options, branchFields, `branch '${this.name}'`);
    this.#assertIdle('branch');
    const { store } = this.#parts;
    const place = at === undefined ? options : { ...options, at };
    const { id } = await branchSession(store, await this.info(), place);
    const info = await store.find(id);
    if (info === undefined) throw new TypeError('a branch that was made exists');
    return this.#parts.session(info);
  }

  /** The facts that a branch was given, with those of the sessions above it; empty for others. */
  async metadata(): Promise<JsonObject> {
    return await metadataOf(this.#parts.store, await this.info());
  }

  /**
   * Puts a summary in the place of the older part of the view, if that makes it smaller; with `prune` it only leaves large
   * outputs of calls out. Nothing where there is nothing to do. What arrives meanwhile is taken up after it.
   * @throws SESSION_BUSY, TAPE_ARCHIVED, SESSION_NO_MODEL, SESSION_COMPACTION_FAILED
   */
  async compact(options: CompactOptions = {}): Promise<Compaction | undefined> {
    assertFields(options, compactFields, `compact '${this.name}'`);
    const made = await compactSession(this.#parts, this, options);
    if (options.takeUp !== false) await this.#takeUpLeft();
    return made;
  }

  /**
   * Takes the last summary or pruning back, where nothing but events came after it. It is a rewind: `unrewind` takes that back.
   * @throws SESSION_BUSY; SESSION_CANNOT_UNDO when there is none, or something came after it
   */
  async uncompact(): Promise<Uncompacted> {
    this.#assertIdle('compact');
    return await uncompactSession(this.#parts.store, this.id);
  }

  /** Starts a child at a point of this session, by reference; this session's tape is not written. */
  async fork(options: ForkOptions = {}): Promise<Child> {
    assertFields(options, forkFields, `fork '${this.name}'`);
    const { info, directory } = await spawn(this.#parts, await this.#line(), { options });
    return this.#parts.child(info, { ...options, directory });
  }

  /**
   * The session that this one was forked from.
   * @throws SESSION_BAD_INPUT when there is none
   */
  async manager(): Promise<Session> {
    const { parentId } = await this.info();
    const parent = parentId === undefined ? undefined : await this.#parts.store.find(parentId);
    if (parent !== undefined) return this.#parts.session(parent);
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot reach the manager of '${this.name}': nobody started it`,
      {
        data: { session: this.name },
      },
    );
  }

  /**
   * A child of this session, by its name or id.
   * @throws SESSION_BAD_INPUT when it is none
   */
  async child(ref: string): Promise<Session> {
    const info = await this.#parts.store.find(ref);
    if (info?.parentId === this.id) return this.#parts.session(info);
    throw new SessionError('SESSION_BAD_INPUT', `cannot reach '${ref}': it is no child of '${this.name}'`, {
      data: { session: this.name, child: ref },
    });
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

  /**
   * Forks a child for each task, runs them, so many at a time, and merges each back. Awaiting it rejects with TAPE_ARCHIVED
   * when the session is archived, since nothing could be merged: no child is forked then.
   */
  delegate(
    tasks: string | DelegateTask | readonly (string | DelegateTask)[],
    options: DelegateOptions = {},
  ): Delegation {
    return new Delegation(this.#parts, this, {
      tasks: [tasks].flat().map((task) => (typeof task === 'string' ? { task } : task)),
      options,
    });
  }

  /**
   * Takes a child's result in. When this session is being run, the merge is left in its inbox and this waits until it
   * is done, at the next settled point.
   */
  async merge(child: string | Session, options: MergeOptions = {}): ReturnType<typeof mergeChild> {
    assertFields(options, mergeFields, `merge into '${this.name}'`);
    const name = typeof child === 'string' ? child : child.name;
    return await mergeChild(this.#parts, await this.#factsOf(name), { ...options, into: this.name });
  }

  /** Takes in the results of several children in one act, all or none, in the order given. */
  async mergeAll(
    children: readonly (string | Session)[],
    options: MergeOptions = {},
  ): ReturnType<typeof mergeChildren> {
    assertFields(options, mergeFields, `merge into '${this.name}'`);
    const names = children.map((child) => (typeof child === 'string' ? child : child.name));
    const facts: SessionFacts[] = [];
    for (const name of names) facts.push(await this.#factsOf(name));
    return await mergeChildren(this.#parts, facts, { ...options, into: this.name });
  }

  async #line(): Promise<Line> {
    return await lineOf(this.#parts.store, await this.#worker.facts());
  }

  /** @throws TAPE_NO_SESSION, with near names */
  async #factsOf(ref: string): Promise<SessionFacts> {
    const { store, worker } = this.#parts;
    const info = await store.find(ref);
    if (info !== undefined) return await worker(info).facts(info);
    await store.resolve(ref, 'head');
    throw new TypeError('a session that resolves exists');
  }

  /** What taking a child in would meet: what both sides wrote since the fork. Nothing is written. */
  async checkMerge(child: string | Session): Promise<ConflictReport> {
    return await this.#parts.store.checkMerge(typeof child === 'string' ? child : child.name, {
      into: this.name,
    });
  }

  /**
   * What this session's model sees, by the deck's policy if none is given.
   * @throws TAPE_BAD_POLICY; TAPE_NO_ANCHOR when the policy names an anchor that is not to be seen; what resolving the point throws
   */
  async view({
    policy = viewPolicyOf(this.#parts.config),
    target = {},
    at = 'head',
    countTokens = resolvePolicy(this.#parts.config.compaction).countTokens,
  }: ViewOptions & { at?: Point } = {}): Promise<View> {
    return view(await Array.fromAsync(this.#parts.store.viewEntries(this.id, { policy, at })), {
      policy,
      target,
      countTokens,
    });
  }

  /**
   * What this session's model would be told before the messages, were it asked now, and what is left out of that. Nothing is
   * written. The options are those of a run.
   */
  async instructions(
    options: Pick<RunOptions, 'model' | 'instructions' | 'tools' | 'useTools'> = {},
  ): Promise<Instructions> {
    return await instructionsOf(this.#parts, await this.info(), options);
  }

  async *entries(query: EntryQuery = {}): AsyncIterable<Entry> {
    yield* this.#parts.store.read(this.id, query);
  }

  /**
   * What the model calls on this session's own entries took; beside it what it inherited, and what its summaries took; with `tree`,
   * also what came from it.
   */
  async usage(options: { readonly tree?: boolean } = {}): Promise<SessionUsage> {
    assertFields(options, { tree: true }, `add up the usage of '${this.name}'`);
    return await readUsage(this.#parts.store, this, { ...options, beside: true });
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

/** Why a message cannot be taken up at once, and waits. */
const leavesQueued: ReadonlySet<SessionErrorCode | TapeErrorCode> = new Set([
  // Archived since it was left there.
  'TAPE_ARCHIVED',
  'SESSION_BUSY',
  'SESSION_CLOSED',
  'SESSION_NO_MODEL',
  'SESSION_NO_KEY',
  'SESSION_NO_FILE',
  'SESSION_BAD_SCRIPT',
]);
