/**
 * Runs: what happens from an input until a session is idle. `worker.ts` holds the lease and starts one run after
 * another, `queue.ts` decides from the inbox which comes next, `perform.ts` carries one run from its input to its
 * recorded end, `run.ts` is what a caller reads of it. Imports `turn` and what lies below.
 */
import type { Seq } from '@tapedeck/tape';
import { messageOf, type SessionError } from '../errors.ts';
import { createUIMessageStreamResponse } from '../model/model.ts';
import { type Chunk, eventsOf } from '../stream/chunks.ts';
import { EventLog } from '../stream/event-log.ts';
import type { Finish, SessionEvent } from '../stream/events.ts';
import type { Usage } from '../usage/usage.ts';

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

/** What to call for events of a run, by their type (X2). */
export type Callbacks = {
  readonly [T in SessionEvent['type']]?: (event: Extract<SessionEvent, { readonly type: T }>) => void;
};

/** How whoever does the work of a run tells of it. */
export interface RunControl {
  /** Aborted when the run is to stop. */
  readonly signal: AbortSignal;
  /** Aborted with it, for children that are run on behalf of this run: their tapes say by whom they were stopped. */
  readonly forChildren: AbortSignal;
  emit(chunk: Chunk): void;
  /** Says which items of the inbox the run begins with. */
  take(items: readonly string[]): void;
  /** `following` has taken up what waited after it. */
  end(result: RunResult, following?: Run): void;
  fail(error: unknown): void;
}

/** A run, and what its work tells of itself through. `signal` stops it as its own `abort` does. */
export function newRun(
  id: string,
  signal?: AbortSignal,
): { readonly run: Run; readonly control: RunControl } {
  let control: RunControl | undefined;
  const run = new Run(
    id,
    (given) => {
      control = given;
    },
    signal,
  );
  if (control === undefined) throw new TypeError('a run hands out its control');
  return { run, control };
}

/**
 * A run under way: it goes on whether or not anyone reads. Iterate it for its events, from the first, as often as
 * you like; await it for its result. It rejects when it could not start or could not be recorded; a model that fails
 * is a result with `finish: 'error'`. Leaving a loop over it, or closing a response made of it, does not stop it
 * (G66, G76); `abort` does.
 */
export class Run implements AsyncIterable<SessionEvent>, PromiseLike<RunResult> {
  readonly id: string;
  readonly #controller = new AbortController();
  readonly #chunks = new EventLog<Chunk>();
  readonly #result: PromiseWithResolvers<RunResult> = Promise.withResolvers();
  #took: readonly string[] = [];
  #following: Run | undefined;

  /** `begin` is handed what its work tells of itself through. */
  constructor(id: string, begin: (control: RunControl) => void, signal?: AbortSignal) {
    this.id = id;
    // Whoever awaits the run sees its failure; a run that nobody awaits must not end the process.
    this.#result.promise.catch(() => {});
    const stop =
      signal === undefined ? this.#controller.signal : AbortSignal.any([this.#controller.signal, signal]);
    const children = new AbortController();
    const stopChildren = () => children.abort(new Error('aborted by parent'));
    if (stop.aborted) stopChildren();
    else stop.addEventListener('abort', stopChildren, { once: true });
    begin({
      signal: stop,
      forChildren: children.signal,
      emit: (chunk) => this.#chunks.push(chunk),
      take: (items) => {
        this.#took = items;
      },
      end: (result, following) => {
        this.#following = following;
        this.#result.resolve(result);
        this.#chunks.close();
      },
      fail: (error) => {
        this.#result.reject(error);
        // Whoever has the stream alone is told, too: an answer without a word would look like success.
        this.#chunks.push({ type: 'error', errorText: messageOf(error) });
        this.#chunks.close();
      },
    });
  }

  /** The messages and answers that it began with, by the ids that `Sent` gave them. */
  get took(): readonly string[] {
    return this.#took;
  }

  /** Once it is over: the run that has gone on, in this process, with what waited in the inbox. */
  get following(): Run | undefined {
    return this.#following;
  }

  /** Stops the run: the model and its tools are told, and what has been said so far stays on the tape. */
  abort(reason = 'aborted'): void {
    this.#controller.abort(new Error(reason));
  }

  then<A = RunResult, B = never>(
    fulfilled?: ((result: RunResult) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#result.promise.then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<SessionEvent> {
    yield* eventsOf(this.#chunks);
    await this.#result.promise;
  }

  /** The text of the answers as it arrives. */
  async *textStream(): AsyncIterable<string> {
    for await (const event of this) if (event.type === 'content-chunk') yield event.text;
  }

  /** Calls back for each event, and resolves with all text of the run (X5). Rejects when a callback throws. */
  async watch(callbacks: Callbacks): Promise<string> {
    let text = '';
    for await (const event of this) {
      if (event.type === 'content-chunk') text += event.text;
      (callbacks[event.type] as ((event: SessionEvent) => void) | undefined)?.(event);
    }
    return text;
  }

  /** The run as the AI SDK's UI protocol, from its first chunk (G61, G68). Each call gives a stream of its own. */
  uiStream(): ReadableStream<Chunk> {
    return ReadableStream.from(this.#chunks);
  }

  /** An HTTP response that streams the run to `useChat`. */
  toResponse(init: ResponseInit = {}): Response {
    return createUIMessageStreamResponse({ ...init, stream: this.uiStream() });
  }
}
