import type { SessionInfo } from '@tapedeck/tape';
import { assertActive } from '@tapedeck/tape/internal';
import type { Awaitable, InboxItem } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import type { Hold } from '../lease/hold.ts';
import { LeaseKeeper } from '../lease/keeper.ts';
import { type Chunk, eventChunk } from '../stream/chunks.ts';
import type { RunStatus, SessionEvent } from '../stream/events.ts';
import { modelFor } from '../terms/model-for.ts';
import type { Ancestry, SessionFacts } from '../terms/terms.ts';
import { outsideCalls } from '../tools/current-call.ts';
import { wasInterrupted } from '../tools/interrupted.ts';
import type { Above } from './above.ts';
import { HandledItems } from './handled-items.ts';
import {
  type AfterRun,
  endOf,
  type HeldRun,
  type KnownAtStart,
  performHeld,
  type RunHost,
  type Started,
  waitingFor,
} from './held-run.ts';
import { ItemOptions } from './item-options.ts';
import type { RunOptions } from './options.ts';
import { OwnLine } from './own-line.ts';
import type { WorkerParts } from './parts.ts';
import { Publisher } from './publisher.ts';
import { decide, spentAborts } from './queue.ts';
import { infoOf, type RunRequest } from './request.ts';
import { newRun, type Run, type RunResult } from './run.ts';

/**
 * Runs one session in this process: one run at a time under one lease, then the inbox. All handles of the
 * session share it.
 */
export class Worker {
  readonly #parts: WorkerParts;
  readonly #session: { readonly name: string; readonly id: string };
  readonly #lease: LeaseKeeper;
  readonly #publisher: Publisher;
  readonly #line: OwnLine;
  readonly #handled = new HandledItems();
  readonly #optionsOf = new ItemOptions();
  /** Passed to each run. */
  readonly #means: Omit<RunHost, 'origin'>;
  #current: Started | undefined;
  #serving: Promise<void> | undefined;
  /** Resolves when the results of this session, as a child, are delivered. */
  #delivered: Promise<void> = Promise.resolve();
  /** The number of acts whose results are not delivered yet. */
  #undelivered = 0;
  /** The number of `startQueued` calls during runs. */
  #requested = 0;
  /** The options of the last answer, for the sessions above. */
  #above: Above | undefined;
  /** Whether the current run still has to choose what it begins with: a message that waits may be that. */
  #isChoosing = false;
  #closed = false;
  #instructions: string | undefined;

  constructor(parts: WorkerParts, session: { readonly name: string; readonly id: string }) {
    this.#parts = parts;
    this.#session = session;
    this.#publisher = new Publisher(session, parts);
    this.#line = new OwnLine(parts.store);
    const enter = (status: RunStatus) => this.#enter(status);
    const onInstructions = (instructions: string) => {
      this.#instructions = instructions;
    };
    const line = async (info: SessionInfo) => await this.line(info);
    this.#means = { parts, session, line, publisher: this.#publisher, enter, onInstructions };
    this.#lease = new LeaseKeeper(parts.store, session.id, (items) => this.#readInbox(items));
  }

  /** The session's ULID. */
  get id(): string {
    return this.#session.id;
  }

  /** The current run. */
  get run(): Run | undefined {
    return this.#current?.run;
  }

  /** The request of the current run. */
  get request(): RunRequest | undefined {
    return this.#current?.request;
  }

  /** The instructions of the current run's last model call, if they were assembled. */
  get instructions(): string | undefined {
    return this.#current === undefined ? undefined : this.#instructions;
  }

  /** The session's current row, and the settings and terms of its fork, which are read once. */
  async facts(info?: SessionInfo): Promise<SessionFacts> {
    return await this.#line.facts(info ?? (await this.#info()));
  }

  /** The facts of the session and of its ancestors, whose settings and terms never change and are read once. */
  async line(info?: SessionInfo): Promise<Ancestry> {
    return await this.#line.line(info ?? (await this.#info()));
  }

  /** Takes the line of the parent, of which the session was just forked. */
  descendFrom(parent: Ancestry): void {
    this.#line.descendFrom(parent);
  }

  async #info(): Promise<SessionInfo> {
    return await infoOf({ parts: this.#parts, session: this.#session });
  }

  /** Aborted with the current run, for the children of that run. */
  get forChildren(): AbortSignal | undefined {
    return this.#current?.control.forChildren;
  }

  /** Whether it runs, or delivers what its runs have come to. */
  get isDelivering(): boolean {
    return this.#undelivered > 0;
  }

  get isServing(): boolean {
    return this.#serving !== undefined;
  }

  /**
   * Whether it does or shows something that a worker made later would not: it serves, delivers, has a lease, an act or
   * subscribers.
   */
  get isInUse(): boolean {
    return this.isServing || this.#undelivered > 0 || this.#lease.isInUse || this.#publisher.isInUse;
  }

  get status(): RunStatus {
    return this.#publisher.status;
  }

  /** The events of all runs of the session in this process, from now on. */
  listen(signal?: AbortSignal): AsyncIterable<SessionEvent> {
    return this.#publisher.listen(signal);
  }

  /** Resolves when no run is left. */
  async idle(): Promise<void> {
    while (this.#serving !== undefined) await this.#serving;
  }

  /** Resolves when the results of all runs so far, as those of a child, are delivered. */
  get delivered(): Promise<void> {
    return this.#delivered;
  }

  /** Aborts the current run and starts no other. The inbox stays as it is. */
  async close(): Promise<void> {
    this.#closed = true;
    this.run?.abort('the deck was closed');
    await this.idle();
    await this.#delivered;
  }

  /** Leaves the session to other processes, in the middle of a run: its writes are refused from now on. */
  async giveBack(): Promise<void> {
    this.#closed = true;
    await this.#lease.drop();
  }

  /** Publishes a warning. */
  warn(message: string): void {
    this.emitEvent({ type: 'warning', message });
  }

  /** Publishes an event to the listeners of the session, and to the readers of the current run. */
  readonly emitEvent = (event: SessionEvent): void => {
    if (this.#current === undefined) this.#publisher.send(event);
    else this.#publisher.emit(this.#current.control, eventChunk(event));
  };

  /** Publishes chunks to the readers of the current run. */
  emitChunks(chunks: Iterable<Chunk>): void {
    if (this.#current === undefined) return;
    for (const chunk of chunks) this.#publisher.emit(this.#current.control, chunk);
  }

  /** Shows the status of an act other than a run; undefined ends it. `owner` has the lease. */
  showAct(owner: string, status?: RunStatus): void {
    this.#publisher.enterAct(status, owner);
  }

  /** Starts a run. Awaiting it rejects with SESSION_BUSY during another run, and with `fault` if given. */
  start(request: RunRequest, fault?: SessionError): Run {
    const refusal = fault ?? this.#refusal();
    const started = this.#open(request);
    if (refusal !== undefined) {
      started.control.fail(refusal);
      return started.run;
    }
    this.#current = started;
    this.#isChoosing = request.input === undefined;
    if (request.above !== undefined) this.#above = request.above;
    this.#serve(async () => await this.#work(request.run, { first: started }), started);
    return started.run;
  }

  /**
   * Starts a run with the inbox. Resolves with that run once it begins; with undefined when the inbox is
   * empty, or a current run will take it up. `cutOff`: an interrupted run continues first. `item`: the item that the
   * options came with, for a later run that takes it up.
   * @throws SESSION_BUSY when another process writes the session; SESSION_CLOSED; TAPE_ARCHIVED; the errors
   *   of `modelFor`
   */
  async startQueued(
    options: RunOptions = {},
    {
      cutOff = false,
      above,
      item,
    }: { readonly cutOff?: boolean; readonly above?: Above | undefined; readonly item?: string } = {},
  ): Promise<Started | undefined> {
    if (item !== undefined) this.#optionsOf.keep(item, options);
    if (above !== undefined) this.#above = above;
    if (this.#serving !== undefined) {
      this.#requested += 1;
      // A failed look is harmless: the next poll looks again.
      await this.#lease.held?.look().catch(() => {});
      return undefined;
    }
    if (this.#closed) throw this.#closedError();
    const begun = Promise.withResolvers<Started | undefined>();
    this.#serve(async () => {
      try {
        // Check the model first: without a usable one the items stay in the inbox.
        const items = await this.#parts.store.inbox.list(this.#session.id);
        const facts = await this.facts();
        assertActive(facts.info, 'run');
        await modelFor(this.#parts, facts, { options, items });
        await this.#work(this.#parts.newId(), { options, cutOff, onBegin: begun.resolve });
        begun.resolve(undefined);
      } catch (error) {
        begun.reject(error);
        throw error;
      }
    });
    return await begun.promise;
  }

  /** Posts an item to the inbox, with the options of the run that takes it up in this process. */
  async post<T extends { readonly id: string }>(act: () => Awaitable<T>, options: RunOptions): Promise<T> {
    return await this.#optionsOf.post(act, options);
  }

  /** The error of a run that cannot start now. */
  #refusal(): SessionError | undefined {
    if (this.#closed) return this.#closedError();
    if (this.#serving === undefined) return undefined;
    const session = this.#session.name;
    const data = { session, ...(this.run !== undefined && { run: this.run.id }) };
    return new SessionError('SESSION_BUSY', `cannot run '${session}': it is already running`, { data });
  }

  #closedError(): SessionError {
    const { name } = this.#session;
    return new SessionError('SESSION_CLOSED', `cannot run '${name}': the deck was closed`, {
      data: { session: name },
    });
  }

  #serve(work: () => Promise<void>, first?: Started): void {
    // Work that succeeds has released the session itself, and another process may run it by now.
    // A run that a tool started is no part of the tool's call.
    const served = outsideCalls(work).catch((error) => {
      const failed = this.#current ?? first;
      this.#leave();
      // Callers await the run, not this promise.
      failed?.control.fail(error);
    });
    this.#serving = served;
    this.#undelivered += 1;
    this.#delivered = Promise.all([this.#delivered, served])
      .then(() => {
        const above = this.#above;
        this.#above = undefined;
        return outsideCalls(() => this.#parts.onServed(this.#session, above));
      })
      .finally(() => {
        this.#undelivered -= 1;
      });
  }

  /**
   * Frees the session for the next run. Called before a run reports its end, so that callers can start
   * another.
   */
  #leave(): void {
    this.#current = undefined;
    this.#instructions = undefined;
    this.#lease.forget();
    this.#serving = undefined;
    this.#optionsOf.clear();
    this.#handled.clear();
    this.#isChoosing = false;
    if (this.status.state === 'busy' || this.status.state === 'retrying') this.#enter({ state: 'idle' });
  }

  /**
   * Under one lease: performs the first run, if given, then one run after another until the inbox is empty.
   */
  async #work(
    owner: string,
    {
      first,
      options,
      cutOff = false,
      onBegin,
    }: {
      first?: Started;
      options?: RunOptions;
      cutOff?: boolean;
      onBegin?: (started: Started) => void;
    },
  ): Promise<void> {
    const held = await this.#lease.take(owner);
    try {
      const facts = await this.facts();
      // An unusable session or model must fail before anything is written.
      assertActive(facts.info, 'run');
      const chosen = first === undefined ? undefined : await modelFor(this.#parts, facts, first.request);
      let turn =
        first !== undefined
          ? await this.#firstTurn(held, first)
          : cutOff && (await wasInterrupted(this.#parts.store, this.#session.id))
            ? this.#turn(held, { run: this.#parts.newId(), options: options ?? {} })
            : await this.#next(held, { point: 'ended', options, isPosted: true });
      let known =
        chosen === undefined || turn?.started.request.items !== undefined
          ? undefined
          : { info: facts.info, chosen };
      while (turn !== undefined) {
        const { started } = turn;
        onBegin?.(started);
        const result = await this.#perform(turn, { ...facts, known });
        known = undefined;
        try {
          turn = await this.#next(turn.held, endOf(result));
        } catch (error) {
          started.control.fail(error);
          throw error;
        }
        started.control.end(result, turn?.started.run);
      }
    } catch (error) {
      await this.#lease.drop();
      throw error;
    }
  }

  /** The requested run, with the inbox items that it takes up. */
  async #firstTurn(held: Hold, first: Started): Promise<HeldRun> {
    const { store } = this.#parts;
    const found = await waitingFor(first.request, held, { store, id: this.#session.id });
    const started = { ...first, request: { ...first.request, ...found } };
    if (found.items !== undefined) this.#handled.begin(first.control, found.items);
    this.#current = started;
    this.#isChoosing = false;
    // What was left waiting meanwhile may interrupt it. A failed look is harmless, as that of a poll is.
    if (found.items === undefined && found.inboxIsEmpty !== true) await held.look().catch(() => {});
    return { held, started };
  }

  /**
   * The next run of the inbox. Without one, it releases the lease. Items that arrive during the release are
   * taken up as well: their senders found the session owned, so they did not start a run.
   */
  async #next(
    given: Hold,
    {
      point,
      status,
      options = {},
      isPosted = false,
    }: {
      readonly point: AfterRun['point'];
      readonly status?: RunStatus;
      readonly options?: RunOptions | undefined;
      /** Whether the inbox has just received something. */
      readonly isPosted?: boolean;
    },
  ): Promise<HeldRun | undefined> {
    const { owner } = given.lease;
    this.#current = undefined;
    let held = given;
    let at = point;
    let isEmpty = !isPosted;
    for (;;) {
      const requested = this.#requested;
      const inputs = at === 'ended' && !this.#closed;
      // Usually the inbox is empty: check that and release the lease in one transaction.
      const wasEmpty = isEmpty && inputs && (await held.release({ inputs }));
      isEmpty = true;
      if (!wasEmpty) {
        const inbox = await held.inbox();
        const spent = spentAborts(inbox);
        this.#handled.add(spent);
        if (spent.length > 0) await held.drain(spent.map(({ id }) => ({ id, drafts: [] })));
        const decision = decide(inbox, at, owner);
        if (decision.do === 'start' && !this.#closed) {
          const { items } = decision;
          const given = (await this.#optionsOf.last(items)) ?? options;
          const turn = this.#turn(held, { run: this.#parts.newId(), items, options: given });
          if (status !== undefined) this.#enter(status);
          return turn;
        }
        if (!(await held.release({ inputs }))) continue;
      }
      const left = wasEmpty
        ? undefined
        : decide(await this.#parts.store.inbox.list(this.#session.id), at, owner);
      // A message sent after the end of a failed run starts a new run, unlike those queued before.
      if (requested !== this.#requested) at = 'ended';
      const isWanted = left?.do === 'start' || requested !== this.#requested;
      const again = isWanted && !this.#closed ? await this.#lease.takeAgain(owner) : undefined;
      if (again === undefined) {
        if (status !== undefined) this.#enter(status);
        this.#leave();
        return undefined;
      }
      held = again;
    }
  }

  #turn(held: Hold, request: RunRequest): HeldRun {
    const started = this.#open(request);
    this.#current = started;
    return { held, started };
  }

  async #perform(
    turn: HeldRun,
    { origin, known }: Pick<SessionFacts, 'origin'> & { readonly known: KnownAtStart | undefined },
  ): Promise<RunResult> {
    this.#instructions = undefined;
    return await performHeld(turn, { ...this.#means, origin }, known);
  }

  #open(request: RunRequest): Started {
    const { run, control } = newRun(request.run, request.options.signal);
    this.#handled.begin(control, request.items ?? []);
    return { request, run, control };
  }

  #enter(status: RunStatus): void {
    this.#publisher.enter(status, this.#lease.held?.lease.owner);
  }

  /** Handles new inbox items: an abort or an interrupting message aborts the run immediately. */
  #readInbox(waiting: readonly InboxItem[]): void {
    if (this.#current === undefined) return;
    const items = this.#isChoosing ? waiting.filter(({ body }) => body.type === 'abort') : waiting;
    const request = this.#handled.requestOf(items, this.#lease.held?.lease.owner);
    if (request === undefined) return;
    const { run, control } = this.#current;
    if ('abort' in request) run.abort(request.abort);
    else this.#publisher.emit(control, eventChunk({ type: 'inbox-waiting', items: request.waiting }));
  }
}
