import { type InboxItem, processOwner } from '@tapedeck/tape';
import { Broadcast } from './broadcast.ts';
import { type Chunk, eventChunk, eventOf } from './chunks.ts';
import type { DeckParts } from './deck.ts';
import { SessionError } from './errors.ts';
import type { SessionEvent } from './events.ts';
import { type Hold, hold } from './hold.ts';
import type { LanguageModel } from './model.ts';
import { type Job, modelFor, perform, recordUnusable, type Stage } from './perform.ts';
import { decide, spentAborts } from './queue.ts';
import { Run, type RunControl, type RunResult } from './run.ts';
import type { RunStatus } from './status.ts';

/** A run that has begun, and how it is told of. */
interface Started {
  readonly job: Job;
  readonly run: Run;
  readonly control: RunControl;
}

/**
 * Runs one session in this process: one run at a time under one lease, and after it what waits in the inbox (K12, R9).
 * All handles of a session share it.
 */
export class Worker {
  readonly #parts: DeckParts;
  readonly #session: { readonly name: string; readonly id: string };
  readonly #events = new Broadcast<SessionEvent>();
  #current: Started | undefined;
  #hold: Hold | undefined;
  /** A lease that could not be given back, because the store had failed. */
  #kept: Hold | undefined;
  #serving: Promise<void> | undefined;
  #status: RunStatus = { state: 'idle' };
  #waiting = 0;

  constructor(parts: DeckParts, session: { readonly name: string; readonly id: string }) {
    this.#parts = parts;
    this.#session = session;
  }

  /** The run under way. */
  get run(): Run | undefined {
    return this.#current?.run;
  }

  /** Aborted with the run under way, for the children that are run for it (G77). */
  get forChildren(): AbortSignal | undefined {
    return this.#current?.control.forChildren;
  }

  get isServing(): boolean {
    return this.#serving !== undefined;
  }

  get status(): RunStatus {
    return this.#status;
  }

  /** What happens in all runs of the session in this process, from now on. */
  listen(signal?: AbortSignal): AsyncIterable<SessionEvent> {
    return this.#events.listen(signal);
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    while (this.#serving !== undefined) await this.#serving;
  }

  /** Starts a run of its own. Awaiting it rejects with SESSION_BUSY while another is under way. */
  start(job: Job): Run {
    const busy = this.#serving === undefined ? undefined : (this.run?.id ?? '');
    const started = this.#open(job);
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
      await this.#work(job.run, { started, model });
    }, started);
    return started.run;
  }

  /**
   * Takes up what waits in the inbox; nothing when a run is under way, which will, or when there is nothing. Resolves
   * with the run that took it up, once it has begun.
   * @throws SESSION_BUSY when somebody else is writing the session
   */
  async takeUp(): Promise<Started | undefined> {
    if (this.#serving !== undefined) {
      await this.#hold?.look();
      return undefined;
    }
    const begun = Promise.withResolvers<Started | undefined>();
    this.#serve(async () => {
      try {
        await this.#work(this.#parts.newId(), { onBegin: begun.resolve });
        begun.resolve(undefined);
      } catch (error) {
        begun.reject(error);
        throw error;
      }
    });
    return await begun.promise;
  }

  #serve(work: () => Promise<void>, first?: Started): void {
    const serving: Promise<void> = work().then(
      () => {
        // Whoever was told of the end may have started the next run by now.
        if (this.#serving === serving) this.#leave();
      },
      (error) => {
        const failed = this.#current ?? first;
        this.#leave();
        // Whoever waits for the run is told; nobody waits for this.
        failed?.control.fail(error);
      },
    );
    this.#serving = serving;
  }

  /** From here on the session can be run again: whoever is told that a run is over must find it so. */
  #leave(): void {
    this.#current = undefined;
    this.#hold = undefined;
    this.#serving = undefined;
    if (this.#status.state === 'busy' || this.#status.state === 'retrying') this.#enter({ state: 'idle' });
  }

  /** Under one lease: the first run, if there is one, and then run after run of what waits in the inbox. */
  async #work(
    owner: string,
    {
      started,
      model,
      onBegin,
    }: { started?: Started; model?: LanguageModel; onBegin?: (started: Started) => void },
  ): Promise<void> {
    await this.#giveBack();
    const held = await hold(this.#parts.store, this.#session.id, {
      owner: processOwner(owner),
      onWaiting: (items) => this.#heed(items),
    });
    this.#hold = held;
    let next = started;
    let chosen = model;
    let point: 'ended' | 'stopped' = 'ended';
    try {
      for (;;) {
        next ??= await this.#next(held, point);
        if (next === undefined) return;
        onBegin?.(next);
        const { control } = next;
        const result = await this.#perform(held, next, chosen);
        chosen = undefined;
        point = result.finish === 'error' || result.finish === 'aborted' ? 'stopped' : 'ended';
        this.#current = undefined;
        const following = await this.#next(held, point);
        this.#enter(statusAfter(result));
        if (following === undefined) this.#leave();
        control.end(result);
        if (following === undefined) return;
        next = following;
      }
    } catch (error) {
      await held.release().catch(() => {
        this.#kept = held;
      });
      throw error;
    }
  }

  async #giveBack(): Promise<void> {
    const kept = this.#kept;
    this.#kept = undefined;
    try {
      await kept?.release();
    } catch {
      // Somebody else has it by now; or the store fails still, and says so when the lease is asked for.
    }
  }

  /** The run that the inbox asks for; without one the lease is given back. */
  async #next(held: Hold, point: 'ended' | 'stopped'): Promise<Started | undefined> {
    for (;;) {
      const inbox = await held.inbox();
      const spent = spentAborts(inbox);
      if (spent.length > 0) await held.drain(spent.map(({ id }) => ({ id, drafts: [] })));
      const decision = decide(inbox, point, held.lease.owner);
      if (decision.do === 'start') {
        const started = this.#open({ run: this.#parts.newId(), items: decision.items, options: {} });
        this.#current = started;
        return started;
      }
      if (await held.release({ inputs: point === 'ended' })) return undefined;
    }
  }

  async #perform(held: Hold, { job, run, control }: Started, model?: LanguageModel): Promise<RunResult> {
    const startedAt = this.#parts.now();
    const base = { run: job.run, startedAt };
    const stage: Stage = {
      parts: this.#parts,
      session: this.#session,
      hold: held,
      signal: control.signal,
      emit: (chunk) => this.#emit(control, chunk),
      enter: (phase) => this.#enter({ state: 'busy', phase, ...base }),
      retrying: (attempt, message) => this.#enter({ state: 'retrying', attempt, message, ...base }),
      abort: (reason) => run.abort(reason),
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
    let control: RunControl | undefined;
    const run = new Run(
      job.run,
      (given) => {
        control = given;
      },
      job.options.signal,
    );
    if (control === undefined) throw new TypeError('a run hands out its control');
    return { job, run, control };
  }

  #emit(control: RunControl, chunk: Chunk): void {
    control.emit(chunk);
    const event = eventOf(chunk);
    if (event !== undefined) this.#events.send(event);
  }

  #enter(status: RunStatus): void {
    this.#status = status;
    this.#events.send({ type: 'status-changed', status });
  }

  /** Something was left in the inbox: an abort or an interruption stops the run at once. */
  #heed(items: readonly InboxItem[]): void {
    const current = this.#current;
    if (current === undefined) return;
    const decision = decide(items, 'streaming', this.#hold?.lease.owner);
    if (decision.do === 'abort') current.run.abort(decision.reason);
    else if (items.length > this.#waiting)
      this.#emit(current.control, eventChunk({ type: 'inbox-waiting', items: items.length }));
    this.#waiting = items.length;
  }
}

/** A run that ended leaves its session idle, unless it ended because something is missing (G78, G82). */
function statusAfter({ run, finish, error }: RunResult): RunStatus {
  if (finish === 'waiting') return { state: 'waiting', run };
  if (finish === 'error')
    return { state: 'error', run, ...(error !== undefined && { message: error.message }) };
  return { state: 'idle' };
}
