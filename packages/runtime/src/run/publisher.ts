import type { Secret } from '@tapedeck/tape';
import {
  isObject,
  type Mask,
  maskFor,
  type Redactor,
  redactedCall,
  withoutOpenEnd,
} from '@tapedeck/tape/internal';
import type { ActiveWriter } from '../status/active-writer.ts';
import { Broadcast } from '../stream/broadcast.ts';
import { type Chunk, eventOf } from '../stream/chunks.ts';
import type { RunStatus, SessionEvent } from '../stream/events.ts';
import type { RunControl } from './run.ts';

/** How many events wait for one subscriber, and how many characters they have as JSON. */
const backlogMax = { values: 10_000, size: 4 * 1024 * 1024 };

/** Publishes the events of one session's runs and its current status, without secrets. */
export class Publisher {
  readonly #session: { readonly name: string; readonly id: string };
  readonly #active: ActiveWriter | undefined;
  readonly #mask: Mask | undefined;
  readonly #redactor: Redactor | undefined;
  readonly #events = new Broadcast<SessionEvent>({
    limit: backlogMax,
    sizeOf: (event) => JSON.stringify(event).length,
    lagged: (missed) => ({ type: 'lagged', missed }),
  });
  #status: RunStatus = { state: 'idle' };
  /** Status of an act other than a run, such as a compaction, while it has the lease. */
  #act: RunStatus | undefined;

  constructor(
    session: { readonly name: string; readonly id: string },
    {
      active,
      secrets,
      redactor,
    }: {
      readonly active: ActiveWriter | undefined;
      readonly secrets: readonly Secret[];
      readonly redactor: Redactor | undefined;
    },
  ) {
    this.#session = session;
    this.#active = active;
    this.#mask = maskFor(secrets);
    this.#redactor = redactor;
  }

  get status(): RunStatus {
    return this.#act ?? this.#status;
  }

  /** The events of all runs of the session in this process, from now on. */
  listen(signal?: AbortSignal): AsyncIterable<SessionEvent> {
    return this.#events.listen(signal);
  }

  /** Whether it has subscribers, or shows an act. */
  get isInUse(): boolean {
    return this.#act !== undefined || this.#events.hasListeners;
  }

  /** Publishes an event outside a run. */
  send(event: SessionEvent): void {
    this.#events.send(this.#masked(event));
  }

  /** Publishes an event of a run, also to the readers of that run. */
  emit(control: RunControl, given: Chunk): void {
    const chunk = this.#masked(given);
    control.emit(chunk);
    const event = eventOf(chunk);
    if (event !== undefined) this.#events.send(event);
  }

  /** Sets the status of the session and shows it to other processes. `owner` has the lease. */
  enter(status: RunStatus, owner: string | undefined): void {
    this.#status = this.#masked(status);
    this.#show(owner);
  }

  /** Sets the status of an act other than a run; undefined ends it. */
  enterAct(status: RunStatus | undefined, owner: string): void {
    this.#act = this.#masked(status);
    this.#show(owner);
  }

  #masked<T>(value: T): T {
    const masked = this.#mask === undefined ? value : this.#mask.value(value);
    if (this.#redactor === undefined) return masked;
    const [shown] = redactedCall([withoutOpenEnds(masked)], this.#redactor, 'live.save');
    return shown as T;
  }

  #show(owner: string | undefined): void {
    const { status } = this;
    this.#active?.show(this.#session, { owner, status });
    this.#events.send({ type: 'status-changed', status });
  }
}

/** What a tool has returned so far, without the ends of texts that can become a secret. Anything else is as it is. */
function withoutOpenEnds(event: unknown): unknown {
  if (!isObject(event) || event.type !== 'tool-output-available' || event.preliminary !== true) return event;
  const cut = (value: unknown): unknown => {
    if (typeof value === 'string') return withoutOpenEnd(value);
    if (Array.isArray(value)) return value.map(cut);
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, cut(field)]));
  };
  return { ...event, output: cut(event.output) };
}
