import type { ActiveWriter } from '../status/active-writer.ts';
import { Broadcast } from '../stream/broadcast.ts';
import { type Chunk, eventOf } from '../stream/chunks.ts';
import type { RunStatus, SessionEvent } from '../stream/events.ts';
import type { RunControl } from './run.ts';

/** Tells whoever listens what happens in the runs of one session, and what the session is at. */
export class Announcer {
  readonly #session: { readonly name: string; readonly id: string };
  readonly #active: ActiveWriter | undefined;
  readonly #events = new Broadcast<SessionEvent>();
  #status: RunStatus = { state: 'idle' };
  /** What an act that is no run is at, while it holds the session. */
  #act: RunStatus | undefined;

  constructor(
    session: { readonly name: string; readonly id: string },
    { active }: { readonly active: ActiveWriter | undefined },
  ) {
    this.#session = session;
    this.#active = active;
  }

  get status(): RunStatus {
    return this.#act ?? this.#status;
  }

  /** What happens in all runs of the session in this process, from now on. */
  listen(signal?: AbortSignal): AsyncIterable<SessionEvent> {
    return this.#events.listen(signal);
  }

  /** Tells of something that is no run's doing. */
  send(event: SessionEvent): void {
    this.#events.send(event);
  }

  /** Tells of a run, also those who follow it alone. */
  emit(control: RunControl, chunk: Chunk): void {
    control.emit(chunk);
    const event = eventOf(chunk);
    if (event !== undefined) this.#events.send(event);
  }

  /** Says what the session is at from now on, also to other processes; `owner` has its lease. */
  enter(status: RunStatus, owner: string | undefined): void {
    this.#status = status;
    this.#show(owner);
  }

  /** Says what an act that is no run is at; with nothing, that it is over. */
  enterAct(status: RunStatus | undefined, owner: string): void {
    this.#act = status;
    this.#show(owner);
  }

  #show(owner: string | undefined): void {
    const { status } = this;
    this.#active?.show(this.#session, { owner, status });
    this.#events.send({ type: 'status-changed', status });
  }
}
