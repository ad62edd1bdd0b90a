import type { InboxItem } from '@tapedeck/tape';
import { Broadcast } from './broadcast.ts';
import { type Chunk, eventChunk, eventOf } from './chunks.ts';
import type { DeckParts } from './deck.ts';
import { deliverUnattended } from './deliver.ts';
import { SessionError } from './errors.ts';
import type { SessionEvent } from './events.ts';
import type { Hold } from './hold.ts';
import { wasInterrupted } from './interrupted.ts';
import { type Job, modelFor, type Stage } from './job.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import type { LanguageModel } from './model.ts';
import { perform } from './perform.ts';
import { decide, type QueuePoint, spentAborts } from './queue.ts';
import { newRun, type Run, type RunControl, type RunResult } from './run.ts';
import type { RunOptions } from './session-options.ts';
import { type RunStatus, statusAfter } from './status.ts';
import { recordUnusable } from './unusable.ts';

/** A run that has begun, and how it is told of. */
interface Started {
  readonly job: Job;
  readonly run: Run;
  readonly control: RunControl;
}

/** A run that is to be done, and the right to do it. */
interface Turn {
  readonly held: Hold;
  readonly started: Started;
}

/** What came of a run, where its session is now. */
interface Ended {
  readonly point: Extract<QueuePoint, 'ended' | 'stopped'>;
  readonly status: RunStatus;
}

/**
 * Runs one session in this process: one run at a time under one lease, and after it what waits in the inbox (K12, R9).
 * All handles of a session share it.
 */
export class Worker {
  readonly #parts: DeckParts;
  readonly #session: { readonly name: string; readonly id: string };
  readonly #lease: LeaseKeeper;
  readonly #events = new Broadcast<SessionEvent>();
  #current: Started | undefined;
  #serving: Promise<void> | undefined;
  /** Resolves when what this session came to, as a child, has been brought home. */
  #delivered: Promise<void> = Promise.resolve();
  #status: RunStatus = { state: 'idle' };
  /** What an act that is no run is at, while it holds the session. */
  #act: RunStatus | undefined;
  #known: ReadonlySet<string> = new Set();
  /** What runs have begun with, and aborts that came too late: while they are still in the inbox they stop nothing. */
  readonly #dealtWith = new Set<string>();
  /** How often something was left in the inbox here while somebody was serving it. */
  #asked = 0;
  #closed = false;
  #told: string | undefined;

  constructor(parts: DeckParts, session: { readonly name: string; readonly id: string }) {
    this.#parts = parts;
    this.#session = session;
    this.#lease = new LeaseKeeper(parts, session.id, (items) => this.#heed(items));
  }

  /** The run under way. */
  get run(): Run | undefined {
    return this.#current?.run;
  }

  /** What the run under way was asked to do. */
  get job(): Job | undefined {
    return this.#current?.job;
  }

  /** What the model of the run under way was told last before the messages, where that was put together for it. */
  get told(): string | undefined {
    return this.#current === undefined ? undefined : this.#told;
  }

  /** Aborted with the run under way, for the children that are run for it (G77). */
  get forChildren(): AbortSignal | undefined {
    return this.#current?.control.forChildren;
  }

  get isServing(): boolean {
    return this.#serving !== undefined;
  }

  get status(): RunStatus {
    return this.#act ?? this.#status;
  }

  /** What happens in all runs of the session in this process, from now on. */
  listen(signal?: AbortSignal): AsyncIterable<SessionEvent> {
    return this.#events.listen(signal);
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
    if (this.#current === undefined) this.#events.send(event);
    else this.#emit(this.#current.control, eventChunk(event));
  };

  /** Shows what an act that is no run is at; with nothing, that it is over. `owner` is who holds the session for it. */
  showAct(owner: string, status?: RunStatus): void {
    this.#act = status;
    this.#parts.active?.show(this.#session, { owner, status: this.status });
    this.#events.send({ type: 'status-changed', status: this.status });
  }

  /** Starts a run of its own. Awaiting it rejects with SESSION_BUSY while another is under way. */
  start(job: Job, fault?: SessionError): Run {
    const busy = this.#serving === undefined ? undefined : (this.run?.id ?? '');
    const started = this.#open(job);
    if (fault !== undefined) {
      started.control.fail(fault);
      return started.run;
    }
    if (this.#closed) {
      started.control.fail(this.#closedError());
      return started.run;
    }
    if (busy !== undefined) {
      const message = `cannot run '${this.#session.name}': it is running already`;
      const data = { session: this.#session.name, ...(busy !== '' && { run: busy }) };
      started.control.fail(new SessionError('SESSION_BUSY', message, { data }));
      return started.run;
    }
    this.#current = started;
    this.#serve(async () => {
      // What cannot be run must fail before anything is written.
      const model = await modelFor(this.#parts, this.#session, job);
      await this.#work(job.run, { first: started, model });
    }, started);
    return started.run;
  }

  /**
   * Takes up what waits in the inbox; nothing when a run is under way, which will, or when there is nothing. Resolves
   * with the run that took it up, once it has begun. `cutOff`: a run that was cut off is gone on with first.
   * @throws SESSION_BUSY when somebody else is writing the session; SESSION_CLOSED; what `modelFor` throws
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
        await modelFor(this.#parts, this.#session, { options, items });
        await this.#work(this.#parts.newId(), { options, cutOff, onBegin: begun.resolve });
        begun.resolve(undefined);
      } catch (error) {
        begun.reject(error);
        throw error;
      }
    });
    return await begun.promise;
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
    this.#delivered = Promise.all([this.#delivered, served]).then(() =>
      deliverUnattended(this.#parts, this.#session.id),
    );
  }

  /** From here on the session can be run again: whoever is told that a run is over must find it so. */
  #leave(): void {
    this.#current = undefined;
    this.#lease.forget();
    this.#serving = undefined;
    this.#dealtWith.clear();
    if (this.#status.state === 'busy' || this.#status.state === 'retrying') this.#enter({ state: 'idle' });
  }

  /** Under one lease: the first run, if there is one, and then run after run of what waits in the inbox. */
  async #work(
    owner: string,
    {
      first,
      model,
      options,
      cutOff = false,
      onBegin,
    }: {
      first?: Started;
      model?: LanguageModel;
      options?: RunOptions;
      cutOff?: boolean;
      onBegin?: (started: Started) => void;
    },
  ): Promise<void> {
    const held = await this.#lease.take(owner);
    try {
      let turn =
        first !== undefined
          ? await this.#firstTurn(held, first)
          : cutOff && (await wasInterrupted(this.#parts.store, this.#session.id))
            ? this.#turn(held, { run: this.#parts.newId(), options: options ?? {} })
            : await this.#next(held, { point: 'ended', options });
      let chosen = turn?.started === first ? model : undefined;
      while (turn !== undefined) {
        const { started } = turn;
        onBegin?.(started);
        const result = await this.#perform(turn, chosen);
        chosen = undefined;
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

  /**
   * A run without input of its own goes on with one that was cut off, if there is one; else it takes up what waits, if anything
   * does, instead of asking the model without it.
   */
  async #firstTurn(held: Hold, first: Started): Promise<Turn> {
    if (first.job.input !== undefined) return { held, started: first };
    const decision = decide(await held.inbox(), 'ended', held.lease.owner);
    if (decision.do !== 'start') return { held, started: first };
    const isAnswer = decision.items.some(({ body }) => body.type === 'answer');
    if (!isAnswer && (await wasInterrupted(this.#parts.store, this.#session.id)))
      return { held, started: first };
    this.#begin(first.control, decision.items);
    const started = { ...first, job: { ...first.job, items: decision.items } };
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
  ): Promise<Turn | undefined> {
    const { owner } = given.lease;
    this.#current = undefined;
    let held = given;
    let at = point;
    for (;;) {
      const asked = this.#asked;
      const inbox = await held.inbox();
      const spent = spentAborts(inbox);
      for (const { id } of spent) this.#dealtWith.add(id);
      if (spent.length > 0) await held.drain(spent.map(({ id }) => ({ id, drafts: [] })));
      const decision = decide(inbox, at, owner);
      if (decision.do === 'start' && !this.#closed) {
        const turn = this.#turn(held, { run: this.#parts.newId(), items: decision.items, options });
        if (status !== undefined) this.#enter(status);
        return turn;
      }
      if (!(await held.release({ inputs: at === 'ended' && !this.#closed }))) continue;
      const left = decide(await this.#parts.store.inbox(this.#session.id), at, owner);
      // A message that was sent here after the run was over is not one that waits behind a run that failed.
      if (asked !== this.#asked) at = 'ended';
      const isWanted = left.do === 'start' || asked !== this.#asked;
      const again = isWanted && !this.#closed ? await this.#lease.takeAgain(owner) : undefined;
      if (again === undefined) {
        if (status !== undefined) this.#enter(status);
        this.#leave();
        return undefined;
      }
      held = again;
    }
  }

  #turn(held: Hold, job: Job): Turn {
    const started = this.#open(job);
    this.#current = started;
    return { held, started };
  }

  async #perform({ held, started }: Turn, model?: LanguageModel): Promise<RunResult> {
    const { job, run, control } = started;
    const startedAt = this.#parts.now();
    const base = { run: job.run, startedAt };
    this.#told = undefined;
    const stage: Stage = {
      parts: this.#parts,
      session: this.#session,
      hold: held,
      signal: control.signal,
      emit: (chunk) => this.#emit(control, chunk),
      enter: (phase) => this.#enter({ state: 'busy', phase, ...base }),
      retrying: (attempt, message) => this.#enter({ state: 'retrying', attempt, message, ...base }),
      abort: (reason) => run.abort(reason),
      onTold: (instructions) => {
        this.#told = instructions;
      },
    };
    stage.enter('processing');
    let usable = model;
    try {
      usable ??= await modelFor(this.#parts, this.#session, job);
    } catch (error) {
      return await recordUnusable(stage, job, error);
    }
    return await perform(stage, job, usable);
  }

  #open(job: Job): Started {
    const { run, control } = newRun(job.run, job.options.signal);
    this.#begin(control, job.items ?? []);
    return { job, run, control };
  }

  /** Says what a run begins with. */
  #begin(control: RunControl, items: readonly InboxItem[]): void {
    const ids = items.map(({ id }) => id);
    control.take(ids);
    for (const id of ids) this.#dealtWith.add(id);
  }

  #emit(control: RunControl, chunk: Chunk): void {
    control.emit(chunk);
    const event = eventOf(chunk);
    if (event !== undefined) this.#events.send(event);
  }

  #enter(status: RunStatus): void {
    this.#status = status;
    this.#parts.active?.show(this.#session, { owner: this.#lease.held?.lease.owner, status });
    this.#events.send({ type: 'status-changed', status });
  }

  /** Something was left in the inbox: an abort or an interruption stops the run at once. */
  #heed(waiting: readonly InboxItem[]): void {
    const current = this.#current;
    const items = waiting.filter(({ id }) => !this.#dealtWith.has(id));
    if (current === undefined || items.length === 0) return;
    const decision = decide(items, 'streaming', this.#lease.held?.lease.owner);
    if (decision.do === 'abort') current.run.abort(decision.reason);
    else if (items.some(({ id }) => !this.#known.has(id)))
      this.#emit(current.control, eventChunk({ type: 'inbox-waiting', items: items.length }));
    this.#known = new Set(items.map(({ id }) => id));
  }
}

function endOf(result: RunResult): Ended {
  const { finish } = result;
  return {
    point: finish === 'error' || finish === 'aborted' ? 'stopped' : 'ended',
    status: statusAfter(result),
  };
}
