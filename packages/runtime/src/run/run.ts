/**
 * Runs: what happens from an input until a session is idle. `worker.ts` holds the lease and starts one run after
 * another, `queue.ts` decides from the inbox which comes next, `perform.ts` carries one run from its input to its
 * recorded end, `run.ts` is what a caller reads of it. Imports `turn` and what lies below.
 */
import type { Seq, SessionInfo } from '@tapedeck/tape';
import { messageOf, type SessionError } from '../errors.ts';
import { assertFields, type Fields } from '../fields.ts';
import { type Chunk, eventsOf } from '../stream/chunks.ts';
import { EventLog } from '../stream/event-log.ts';
import type { Finish, SessionEvent } from '../stream/events.ts';
import type { Usage } from '../usage/usage.ts';

/** The result of a run. Its entries are `from` to `to`, inclusive. */
export interface RunResult<T = unknown> {
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
  /** The structured result, of a run of a session with an output schema that came to its result. */
  readonly output?: T;
  /**
   * Present on a run without input that found nothing to continue: no model was called, nothing was written, and `from`
   * to `to` is empty.
   */
  readonly nothingToContinue?: true;
}

/** Callbacks for the events of a run, by type. */
export type Callbacks = {
  readonly [T in SessionEvent['type']]?: (event: Extract<SessionEvent, { readonly type: T }>) => void;
};

/** The fields of `Callbacks`. */
export const callbackFields: Fields<Callbacks> = {
  'child-event': 'function',
  'child-progress': 'function',
  compacted: 'function',
  'content-chunk': 'function',
  'history-diverged': 'function',
  'inbox-waiting': 'function',
  'iteration-completed': 'function',
  lagged: 'function',
  pruned: 'function',
  'reasoning-chunk': 'function',
  'reasoning-ended': 'function',
  'reasoning-started': 'function',
  retrying: 'function',
  'run-started': 'function',
  'session-cancelled': 'function',
  'session-completed': 'function',
  'status-changed': 'function',
  steered: 'function',
  superseded: 'function',
  'tool-batch-completed': 'function',
  'tool-batch-halted': 'function',
  'tool-batch-started': 'function',
  'tool-completed': 'function',
  'tool-detected': 'function',
  'tool-started': 'function',
  'tool-waiting': 'function',
  warning: 'function',
};

/** The side of a run that the worker uses. */
export interface RunControl {
  /** Aborted to stop the run. */
  readonly signal: AbortSignal;
  /**
   * Aborted together with `signal`, for the children of this run. Its reason, `aborted by parent`, is on
   * their tapes.
   */
  readonly forChildren: AbortSignal;
  emit(chunk: Chunk): void;
  /** Sets the inbox items that the run begins with. */
  take(items: readonly string[]): void;
  /** Ends the run. `following` is the run that took up the inbox after it. */
  end(result: RunResult, following?: Run): void;
  fail(error: unknown): void;
}

/** Makes a run and its control. `signal` aborts it like `Run.abort`. */
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
  if (control === undefined) throw new TypeError('the run did not pass its control');
  return { run, control };
}

/** The chunks of each run, from the first: for readers to whom a stream for each of them would cost too much. */
export const chunksOf: WeakMap<Run, AsyncIterable<Chunk>> = new WeakMap();

/** The row of a session as a run of it has left it. */
export const rowAfter: WeakMap<RunResult, SessionInfo> = new WeakMap();

/**
 * A run. It continues without a reader. Iterate it for its events, each time from the first; await it for its
 * result. It rejects when it could not start or could not be recorded; a failed model call is a result with
 * `finish: 'error'`. Leaving a loop over it, or closing a response made of it, does not stop it; `abort`
 * does.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * const run = main.run('Plan the release.');
 * for await (const event of run) if (event.type === 'content-chunk') console.log(event.text.trim());
 * // Test,
 * // tag,
 * // publish.
 * const { finish, from, to } = await run;
 * console.log(finish, from, to); // stop 2 3
 * ```
 */
export class Run<T = unknown> implements AsyncIterable<SessionEvent>, PromiseLike<RunResult<T>> {
  readonly id: string;
  readonly #controller = new AbortController();
  readonly #chunks = new EventLog<Chunk>();
  readonly #result: PromiseWithResolvers<RunResult> = Promise.withResolvers();
  #took: readonly string[] = [];
  #following: Run | undefined;

  /** Calls `begin` with the control of the run. */
  constructor(id: string, begin: (control: RunControl) => void, signal?: AbortSignal) {
    this.id = id;
    chunksOf.set(this, this.#chunks);
    // A caller that awaits the run sees the failure; without one, the rejection must not end the process.
    this.#result.promise.catch(() => {});
    // A signal of `AbortSignal.any` with a listener is never collected, and neither would be the run.
    const stop = this.#controller.signal;
    const stopAsGiven = () => this.#controller.abort(signal?.reason);
    if (signal?.aborted === true) stopAsGiven();
    else signal?.addEventListener('abort', stopAsGiven, { once: true });
    const isOver = () => signal?.removeEventListener('abort', stopAsGiven);
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
        isOver();
        this.#following = following;
        this.#result.resolve(result);
        this.#chunks.close();
      },
      fail: (error) => {
        isOver();
        this.#result.reject(error);
        // A reader of only the stream must see the failure, too: an empty stream would look like success.
        this.#chunks.push({ type: 'error', errorText: messageOf(error) });
        this.#chunks.close();
      },
    });
  }

  /** The ids of the messages and answers that the run began with, as in `Sent`. */
  get took(): readonly string[] {
    return this.#took;
  }

  /** After the end: the next run in this process, which took up the inbox. */
  get following(): Run | undefined {
    return this.#following;
  }

  /** Aborts the run, its model call and its tools. The text received so far stays on the tape. */
  abort(reason = 'aborted'): void {
    this.#controller.abort(new Error(reason));
  }

  then<A = RunResult<T>, B = never>(
    fulfilled?: ((result: RunResult<T>) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    // The run was started with the schema that makes a `T`.
    return (this.#result.promise as Promise<RunResult<T>>).then(fulfilled, rejected);
  }

  /** The events, from the first. Rejects at the end as the run does. */
  async *[Symbol.asyncIterator](): AsyncIterator<SessionEvent> {
    yield* eventsOf(this.#chunks);
    await this.#result.promise;
  }

  /** The text of the answers, as it arrives. */
  async *textStream(): AsyncIterable<string> {
    for await (const event of this) if (event.type === 'content-chunk') yield event.text;
  }

  /**
   * Calls the callback of each event. Resolves with the whole text of the run; rejects when a callback
   * throws.
   */
  async watch(callbacks: Callbacks): Promise<string> {
    assertFields(callbacks, callbackFields, 'watch a run');
    let text = '';
    for await (const event of this) {
      if (event.type === 'content-chunk') text += event.text;
      (callbacks[event.type] as ((event: SessionEvent) => void) | undefined)?.(event);
    }
    return text;
  }

  /** A new stream of the run in the AI SDK's UI message protocol, from the first chunk. */
  uiStream(): ReadableStream<Chunk> {
    return ReadableStream.from(this.#chunks);
  }

  /** An HTTP response that streams the run to `useChat`. */
  async toResponse(init: ResponseInit = {}): Promise<Response> {
    const { createUIMessageStreamResponse } = await import('ai');
    return createUIMessageStreamResponse({ ...init, stream: this.uiStream() });
  }
}
