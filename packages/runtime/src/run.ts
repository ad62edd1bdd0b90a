import type { Seq } from '@tapedeck/tape';
import type { SessionError } from './errors.ts';
import { EventLog } from './event-log.ts';
import type { SessionEvent } from './events.ts';
import type { Usage } from './usage.ts';

/** How a run ended. */
export type Finish = 'stop' | 'halted' | 'waiting' | 'aborted' | 'length' | 'error';

/** What a run came to. Its entries are `from` to `to`, both included. */
export interface RunResult {
  readonly run: string;
  readonly session: string;
  /** The text of the last answer. */
  readonly text: string;
  readonly finish: Finish;
  readonly steps: number;
  readonly usage: Usage;
  readonly from: Seq;
  readonly to: Seq;
  readonly error?: SessionError;
}

/**
 * A run under way: it goes on whether or not anyone reads. Iterate it for its events, from the first, as often as
 * you like; await it for its result. It rejects when it could not start or could not be recorded; a model that fails
 * is a result with `finish: 'error'`.
 */
export class Run implements AsyncIterable<SessionEvent>, PromiseLike<RunResult> {
  readonly id: string;
  readonly #controller: AbortController;
  readonly #events = new EventLog<SessionEvent>();
  readonly #result: Promise<RunResult>;

  constructor(
    id: string,
    work: (o: { signal: AbortSignal; emit: (event: SessionEvent) => void }) => Promise<RunResult>,
    signal?: AbortSignal,
  ) {
    this.id = id;
    this.#controller = new AbortController();
    const combined =
      signal === undefined ? this.#controller.signal : AbortSignal.any([this.#controller.signal, signal]);
    this.#result = work({ signal: combined, emit: (event) => this.#events.push(event) }).finally(() =>
      this.#events.close(),
    );
    // Whoever awaits the run sees its failure; a run that nobody awaits must not end the process.
    this.#result.catch(() => {});
  }

  /** Stops the run: the model and its tools are told, and what has been said so far stays on the tape. */
  abort(reason = 'aborted'): void {
    this.#controller.abort(new Error(reason));
  }

  then<A = RunResult, B = never>(
    fulfilled?: ((result: RunResult) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#result.then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<SessionEvent> {
    yield* this.#events;
    await this.#result;
  }

  /** The text of the answers as it arrives. */
  async *textStream(): AsyncIterable<string> {
    for await (const event of this) if (event.type === 'content-chunk') yield event.text;
  }
}
