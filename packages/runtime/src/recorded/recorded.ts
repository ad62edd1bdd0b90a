/**
 * Model calls of an application that keeps its own loop. `recorded.ts` wraps its model, `tools.ts` its tools; `call.ts`
 * is one call of the model, from its history to its recorded end; `begun-call.ts` one of a tool, `approval.ts` whether it
 * is asked about, and `tool-lease.ts` the lease meanwhile. `pieces.ts` and `plan.ts` compare a history with a tape, which is
 * pure, and `reconcile.ts` makes the tape agree. `live-chunk.ts` and `sdk.ts` know the AI SDK's model specification.
 * Imports `session` and what lies below.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { SessionError } from '../errors.ts';
import { assertFields, type Fields } from '../fields.ts';
import type { ModelSpec } from '../model/spec.ts';
import { partsOf as deckOf } from '../session/parts.ts';
import type { Session } from '../session/session.ts';
import { sessionModel } from '../terms/model-for.ts';
import type { RecordedCall } from './call.ts';
import type { Divergence } from './divergence.ts';
import type { RecordedPlace } from './place.ts';
import { type ModelV4, partsOf, wrapped } from './sdk.ts';

/** Options of `recorded`. */
export interface RecordedOptions {
  /**
   * Called when the application sends a history that is not what the tape has. The tape then reads as the history that
   * was sent; what it hides stays readable.
   */
  readonly onDivergence?: (divergence: Divergence) => void;
}

const recordedFields: Fields<RecordedOptions> = { onDivergence: 'function' };

/**
 * Wraps a model, or the model of a name, for an application that keeps its own loop: `streamText`, `generateText` or a
 * `ToolLoopAgent`. Each call goes to the model as it is, and is recorded on the tape of the session: the messages that
 * are new, each piece of the answer before it is forwarded, the answer with its usage, or its failure.
 *
 * The calls of tools in an answer are on the tape before the application has them, so before it runs them. Their results
 * are recorded when the application sends them back; `recordedTools` records the start and the result of each one at
 * once.
 *
 * One call at a time has the session: another one, or a run, is refused with SESSION_BUSY.
 * @throws SESSION_NO_MODEL, SESSION_NO_KEY, SESSION_NO_FILE, SESSION_BAD_SCRIPT for a name that cannot be used;
 *   SESSION_BAD_INPUT. A call of the model throws SESSION_BUSY, SESSION_CLOSED, TAPE_ARCHIVED, and TAPE_BAD_ENTRY when
 *   its history cannot be stored, before the model is called
 *
 * @example
 * ```ts
 * import { openDeck, recorded } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 * import { streamText } from 'ai';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:') });
 * const main = await deck.session('main');
 * const model = await recorded(main, 'script:answers.json');
 * const { text } = streamText({ model, prompt: 'Plan the release.' });
 * console.log(await text); // Test, tag, publish.
 * const { messages } = await main.view();
 * console.log(messages.map(({ role }) => role)); // [ 'user', 'assistant' ]
 * ```
 */
export async function recorded(
  session: Session,
  model: ModelSpec,
  options: RecordedOptions = {},
): Promise<ModelV4> {
  const parts = deckOf.get(session);
  if (parts === undefined)
    throw new SessionError(
      'SESSION_BAD_INPUT',
      'cannot record a model: the first argument must be a session',
    );
  assertFields(options, recordedFields, `record a model in '${session.name}'`);
  const facts = await parts.worker({ session: session.name, id: session.id }).facts();
  const given = await sessionModel(parts, facts, model, 'run');
  if (typeof given === 'string') throw new TypeError('a model was resolved to a name');
  const place: RecordedPlace = {
    parts,
    session: { name: session.name, id: session.id },
    spec: typeof model === 'string' ? model : undefined,
    onDivergence: options.onDivergence,
  };
  const { RecordedCall } = await import('./call.ts');
  return await wrapped(given, {
    wrapGenerate: async ({ params, model: inner }) => {
      const call = await RecordedCall.begin(place, inner, params);
      try {
        const result = await inner.doGenerate({ ...params, abortSignal: call.signal });
        for (const part of await partsOf(inner, result)) call.collect(part);
        await call.settle();
        return result;
      } catch (error) {
        await call.fail(error);
        throw error;
      }
    },
    wrapStream: async ({ params, model: inner }) => {
      const call = await RecordedCall.begin(place, inner, params);
      try {
        const { stream, ...rest } = await inner.doStream({ ...params, abortSignal: call.signal });
        return { ...rest, stream: forwarded(call, stream) };
      } catch (error) {
        await call.fail(error);
        throw error;
      }
    },
  });
}

type Part = LanguageModelV4StreamPart;

/**
 * The stream of an answer, each part of which is saved before it is forwarded. A call of a tool, and what comes after
 * it, is forwarded when the answer is on the tape: the AI SDK runs a tool as soon as it has the call. The answer is
 * recorded without a reader, too; a reader that cancels aborts the call.
 */
function forwarded(call: RecordedCall, stream: ReadableStream<Part>): ReadableStream<Part> {
  return new ReadableStream<Part>({
    start: (to) => {
      void forward(call, stream, (part) => to.enqueue(part)).then(
        () => close(to),
        (error: unknown) => to.error(error),
      );
    },
    cancel: async () => {
      call.stop('the application stopped reading');
      await call.over;
    },
  });
}

/** A reader that has cancelled has closed the stream. */
function close(to: ReadableStreamDefaultController<Part>): void {
  try {
    to.close();
  } catch {}
}

async function forward(
  call: RecordedCall,
  stream: ReadableStream<Part>,
  send: (part: Part) => void,
): Promise<void> {
  const { signal } = call;
  const held: Part[] = [];
  let failure: { readonly error: unknown } | undefined;
  const reader = stream.getReader();
  // Also ends the answer of a model that ignores the signal.
  const leave = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener('abort', leave, { once: true });
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const part = next.value;
      await call.take(part);
      if (part.type === 'error') failure ??= { error: part.error };
      if (held.length > 0 || part.type === 'finish' || isClientCall(part)) held.push(part);
      else send(part);
    }
    signal.throwIfAborted();
    if (failure === undefined) await call.settle();
  } catch (error) {
    await call.fail(error);
    throw error;
  } finally {
    signal.removeEventListener('abort', leave);
  }
  if (failure !== undefined) await call.fail(failure.error);
  // A call in an answer that broke off does not run.
  for (const part of held) if (failure === undefined || !isClientCall(part)) send(part);
}

function isClientCall(part: Part): boolean {
  return part.type === 'tool-call' && part.providerExecuted !== true;
}
