import { assertActive, type InboxItem, type SessionInfo } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import type { Hold } from '../lease/hold.ts';
import { LeaseKeeper } from '../lease/keeper.ts';
import { eventChunk } from '../stream/chunks.ts';
import type { RunStatus, SessionEvent } from '../stream/events.ts';
import { modelFor } from '../terms/model-for.ts';
import { type Origin, originOf, type SessionFacts } from '../terms/terms.ts';
import { Announcer } from './announcer.ts';
import { Attention } from './attention.ts';
import {
  type Ended,
  endOf,
  type HeldRun,
  type KnownAtStart,
  performHeld,
  type RunHost,
  type Started,
  waitingFor,
} from './held-run.ts';
import { wasInterrupted } from './interrupted.ts';
import type { RunOptions } from './options.ts';
import type { WorkerParts } from './parts.ts';
import { decide, spentAborts } from './queue.ts';
import { infoOf, type RunRequest } from './request.ts';
import { newRun, type Run, type RunResult } from './run.ts';

/**
 * Runs one session in this process: one run at a time under one lease, and after it what waits in the inbox (K12, R9).
 * All handles of a session share it.
 */
export class Worker {
  readonly #parts: WorkerParts;
  readonly #session: { readonly name: string; readonly id: string };
  readonly #lease: LeaseKeeper;
  readonly #announcer: Announcer;
  readonly #attention = new Attention();
  /** What each of its runs is done through. */
  readonly #means: Omit<RunHost, 'origin'>;
  #origin: Origin | undefined;
  #current: Started | undefined;
  #serving: Promise<void> | undefined;
  /** Resolves when what this session came to, as a child, has been brought home. */
  #delivered: Promise<void> = Promise.resolve();
  /** How often something was left in the inbox here while somebody was serving it. */
  #asked = 0;
  #closed = false;
  #told: string | undefined;

  constructor(parts: WorkerParts, session: { readonly name: string; readonly id: string }) {
    this.#parts = parts;
    this.#session = session;
    this.#announcer = new Announcer(session, parts);
    const enter = (status: RunStatus) => this.#enter(status);
    const onInstructions = (instructions: string) => {
      this.#told = instructions;
    };
    this.#means = { parts, session, announcer: this.#announcer, enter, onInstructions };
    this.#lease = new LeaseKeeper(parts.store, session.id, (items) => this.#heed(items));
  }

  /** The run under way. */
  get run(): Run | undefined {
    return this.#current?.run;
  }

  /** What the run under way was asked to do. */
  get request(): RunRequest | undefined {
    return this.#current?.request;
  }

  /** What the model of the run under way was told last before the messages, where that was put together for it. */
  get told(): string | undefined {
    return this.#current === undefined ? undefined : this.#told;
  }

  /** The session's row as it stands, and what it was forked with, which is read once. */
  async facts(info?: SessionInfo): Promise<SessionFacts> {
    const now = info ?? (await infoOf({ parts: this.#parts, session: this.#session }));
    this.#origin ??= await originOf(this.#parts.store, now);
    return { info: now, origin: this.#origin };
  }

  /** Aborted with the run under way, for the children that are run for it (G77). */
  get forChildren(): AbortSignal | undefined {
    return this.#current?.control.forChildren;
  }

  get isServing(): boolean {
    return this.#serving !== undefined;
  }

  get status(): RunStatus {
    return this.#announcer.status;
  }

  /** What happens in all runs of the session in this process, from now on. */
  listen(signal?: AbortSignal): AsyncIterable<SessionEvent> {
    return this.#announcer.listen(signal);
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    while (this.#serving !== undefined) await this.#serving;
  }

  /** Resolves when what its runs came to until now, as those of a child, has been brought home. */
  get delivered(): Promise<void> {
    return this.#delivered;
  }

  /** Stops the run under way, and starts no other: what waits in the inbox is left there. */
  async close(): Promise<void> {
    this.#closed = true;
    this.run?.abort('the deck was closed');
    await this.idle();
    await this.#delivered;
  }

  /** Tells of something that is amiss and stops no run. */
  warn(message: string): void {
    this.tell({ type: 'warning', message });
  }

  /** Tells of something that is no run's doing to whoever listens to the session, and of the run under way, if there is one. */
  readonly tell = (event: SessionEvent): void => {
    if (this.#current === undefined) this.#announcer.send(event);
    else this.#announcer.emit(this.#current.control, eventChunk(event));
  };

  /** Shows what an act that is no run is at; with nothing, that it is over. `owner` is who holds the session for it. */
  showAct(owner: string, status?: RunStatus): void {
    this.#announcer.enterAct(status, owner);
  }

  /** Starts a run of its own. Awaiting it rejects with SESSION_BUSY while another is under way. */
  start(request: RunRequest, fault?: SessionError): Run {
    const refusal = fault ?? this.#refusal();
    const started = this.#open(request);
    if (refusal !== undefined) {
      started.control.fail(refusal);
      return started.run;
    }
    this.#current = started;
    this.#serve(async () => await this.#work(request.run, { first: started }), started);
    return started.run;
  }

  /**
   * Takes up what waits in the inbox; nothing when a run is under way, which will, or when there is nothing. Resolves
   * with the run that took it up, once it has begun. `cutOff`: a run that was cut off is gone on with first.
   * @throws SESSION_BUSY when somebody else is writing the session; SESSION_CLOSED; TAPE_ARCHIVED; what `modelFor` throws
   */
  async takeUp(
    options: RunOptions = {},
    { cutOff = false }: { readonly cutOff?: boolean } = {},
  ): Promise<Started | undefined> {
    if (this.#serving !== undefined) {
      this.#asked += 1;
      // One that fails says nothing: the next poll looks again.
      await this.#lease.held?.look().catch(() => {});
      return undefined;
    }
    if (this.#closed) throw this.#closedError();
    const begun = Promise.withResolvers<Started | undefined>();
    this.#serve(async () => {
      try {
        // Without a model that can be used here it stays where it is.
        const items = await this.#parts.store.inbox(this.#session.id);
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

  /** Why no run can be started now. */
  #refusal(): SessionError | undefined {
    if (this.#closed) return this.#closedError();
    if (this.#serving === undefined) return undefined;
    const session = this.#session.name;
    const data = { session, ...(this.run !== undefined && { run: this.run.id }) };
    return new SessionError('SESSION_BUSY', `cannot run '${session}': it is running already`, { data });
  }

  #closedError(): SessionError {
    const { name } = this.#session;
    return new SessionError('SESSION_CLOSED', `cannot run '${name}': the deck was closed`, {
      data: { session: name },
    });
  }

  #serve(work: () => Promise<void>, first?: Started): void {
    // Work that does not fail has left the session itself: somebody else may be serving it by now.
    const served = work().catch((error) => {
      const failed = this.#current ?? first;
      this.#leave();
      // Whoever waits for the run is told; nobody waits for this.
      failed?.control.fail(error);
    });
    this.#serving = served;
    this.#delivered = Promise.all([this.#delivered, served]).then(() => this.#parts.onServed(this.#session));
  }

  /** From here on the session can be run again: whoever is told that a run is over must find it so. */
  #leave(): void {
    this.#current = undefined;
    this.#lease.forget();
    this.#serving = undefined;
    this.#attention.forget();
    if (this.status.state === 'busy' || this.status.state === 'retrying') this.#enter({ state: 'idle' });
  }

  /** Under one lease: the first run, if there is one, and then run after run of what waits in the inbox. */
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
      // What cannot be run must fail before anything is written.
      assertActive(facts.info, 'run');
      const model = first === undefined ? undefined : await modelFor(this.#parts, facts, first.request);
      let turn =
        first !== undefined
          ? await this.#firstTurn(held, first)
          : cutOff && (await wasInterrupted(this.#parts.store, this.#session.id))
            ? this.#turn(held, { run: this.#parts.newId(), options: options ?? {} })
            : await this.#next(held, { point: 'ended', options });
      let known = model === undefined || turn?.started !== first ? undefined : { info: facts.info, model };
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

  /** The run that was asked for, with what it takes up of the inbox. */
  async #firstTurn(held: Hold, first: Started): Promise<HeldRun> {
    const { store } = this.#parts;
    const items = await waitingFor(first.request, held, { store, id: this.#session.id });
    if (items === undefined) return { held, started: first };
    this.#attention.begin(first.control, items);
    const started = { ...first, request: { ...first.request, items } };
    this.#current = started;
    return { held, started };
  }

  /**
   * The run that the inbox asks for. Without one the lease is given back and the session left; what arrived while that was
   * done is taken up all the same, since whoever left it found the session owned (D106).
   */
  async #next(
    given: Hold,
    {
      point,
      status,
      options = {},
    }: {
      readonly point: Ended['point'];
      readonly status?: RunStatus;
      readonly options?: RunOptions | undefined;
    },
  ): Promise<HeldRun | undefined> {
    const { owner } = given.lease;
    this.#current = undefined;
    let held = given;
    let at = point;
    for (;;) {
      const asked = this.#asked;
      const inputs = at === 'ended' && !this.#closed;
      // Mostly nothing waits, and the lease is given back in one act that makes sure of it.
      const wasEmpty = inputs && (await held.release({ inputs }));
      if (!wasEmpty) {
        const inbox = await held.inbox();
        const spent = spentAborts(inbox);
        this.#attention.spend(spent);
        if (spent.length > 0) await held.drain(spent.map(({ id }) => ({ id, drafts: [] })));
        const decision = decide(inbox, at, owner);
        if (decision.do === 'start' && !this.#closed) {
          const turn = this.#turn(held, { run: this.#parts.newId(), items: decision.items, options });
          if (status !== undefined) this.#enter(status);
          return turn;
        }
        if (!(await held.release({ inputs }))) continue;
      }
      const left = wasEmpty ? undefined : decide(await this.#parts.store.inbox(this.#session.id), at, owner);
      // A message that was sent here after the run was over is not one that waits behind a run that failed.
      if (asked !== this.#asked) at = 'ended';
      const isWanted = left?.do === 'start' || asked !== this.#asked;
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
    this.#told = undefined;
    return await performHeld(turn, { ...this.#means, origin }, known);
  }

  #open(request: RunRequest): Started {
    const { run, control } = newRun(request.run, request.options.signal);
    this.#attention.begin(control, request.items ?? []);
    return { request, run, control };
  }

  #enter(status: RunStatus): void {
    this.#announcer.enter(status, this.#lease.held?.lease.owner);
  }

  /** Something was left in the inbox: an abort or an interruption stops the run at once. */
  #heed(waiting: readonly InboxItem[]): void {
    if (this.#current === undefined) return;
    const asked = this.#attention.heed(waiting, this.#lease.held?.lease.owner);
    if (asked === undefined) return;
    const { run, control } = this.#current;
    if ('abort' in asked) run.abort(asked.abort);
    else this.#announcer.emit(control, eventChunk({ type: 'inbox-waiting', items: asked.waiting }));
  }
}
