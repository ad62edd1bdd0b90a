import type { Entry, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type Chunk, eventOf } from '../stream/chunks.ts';
import { messageChunk } from '../stream/replay.ts';
import { childCallIn } from './child-calls.ts';

/** What a stream of an assistant message begins with. */
export interface ChatStart {
  /** The id of the message. */
  readonly id: string;
  /** The number of answers that the message has already. */
  readonly step?: number;
  /** The calls of the message that wait for approval. */
  readonly asked?: Iterable<string>;
  /** The calls that the message has already. */
  readonly calls?: Iterable<string>;
  /** The calls of sessions below that the message has; `isLast`: its last step has them. */
  readonly below?: { readonly calls: Iterable<string>; readonly isLast: boolean };
  /** Reads the metadata of the message, at the end of the stream. */
  readonly metadata?: () => Promise<JsonObject | undefined>;
}

/**
 * The chunks of runs as the stream of one assistant message, which the AI SDK's chats read. The same answer makes the
 * same message, whether the chunks are those of a run or were read from the tape: empty texts, events and the
 * difference of their ids are left out, and a part that was cut off is closed. Nothing is sent before there is something to
 * show, so that a run without an answer leaves no empty message.
 */
export async function* chatChunks(
  chunks: AsyncIterable<Chunk>,
  { id, step = 0, asked = [], calls = [], below, metadata }: ChatStart,
): AsyncGenerator<Chunk> {
  const message = new ChatMessage({ step, asked, calls, below });
  let isBegun = false;
  let error: Chunk | undefined;
  for await (const chunk of chunks) {
    if (chunk.type === 'error') {
      error = chunk;
      continue;
    }
    for (const shown of message.take(chunk)) {
      if (!isBegun) yield { type: 'start', messageId: id };
      isBegun = true;
      yield shown;
    }
  }
  yield* message.close();
  const facts = isBegun ? await metadata?.() : undefined;
  if (facts !== undefined) yield { type: 'message-metadata', messageMetadata: facts };
  // A chat stops reading at an error.
  if (error !== undefined) yield error;
  else yield { type: 'finish' };
}

type Kind = 'text' | 'reasoning';

/** A text that has begun. It is sent with its first characters. */
interface Open {
  readonly kind: Kind;
  readonly id: string;
  isSent: boolean;
  start: Chunk;
}

/** The state of an assistant message while its chunks are sent. */
class ChatMessage {
  #step: number;
  #parts = 0;
  #isStepDue = false;
  #isStepOpen = false;
  readonly #open = new Map<string, Open>();
  readonly #asked: Set<string>;
  readonly #answered = new Set<string>();
  /** The calls that it has: a chat that gets the result of another one stops reading. */
  readonly #calls: Set<string>;
  /** The calls of sessions below that it has. */
  readonly #below: Set<string>;
  /** Whether its last step has them. */
  #isBelow: boolean;

  constructor({
    step,
    asked,
    calls,
    below,
  }: Required<Pick<ChatStart, 'step' | 'asked' | 'calls'>> & { readonly below: ChatStart['below'] }) {
    this.#step = step;
    this.#asked = new Set(asked);
    this.#calls = new Set([...calls, ...(below?.calls ?? [])]);
    this.#below = new Set(below?.calls);
    this.#isBelow = below?.isLast === true;
  }

  *take(chunk: Chunk): Generator<Chunk> {
    switch (chunk.type) {
      case 'start-step':
        this.#isStepDue = true;
        this.#step += 1;
        this.#parts = 0;
        return;
      case 'finish-step':
        yield* this.close();
        return;
      case 'text-start':
      case 'reasoning-start':
        this.#begin(chunk);
        return;
      case 'text-delta':
      case 'reasoning-delta':
        yield* this.#delta(chunk);
        return;
      case 'text-end':
      case 'reasoning-end':
        yield* this.#end(chunk);
        return;
      case 'tool-input-start':
        this.#calls.add(chunk.toolCallId);
        yield* this.#content({ ...bare(chunk), type: 'tool-input-start' });
        return;
      case 'tool-input-delta':
      case 'source-url':
      case 'source-document':
      case 'file':
      case 'reasoning-file':
      case 'custom':
        yield* this.#content(chunk);
        return;
      case 'tool-input-available':
      case 'tool-input-error':
        this.#calls.add(chunk.toolCallId);
        if (childCallIn(chunk) !== undefined) yield* this.#call(chunk);
        else yield* this.#content({ ...called(chunk), type: 'tool-input-available' });
        return;
      case 'tool-output-available':
      case 'tool-output-error':
        if (this.#calls.has(chunk.toolCallId)) yield bareResult(chunk);
        return;
      case 'tool-output-denied':
        if (!this.#calls.has(chunk.toolCallId)) return;
        // A chat takes a denied call only with its answer.
        yield* this.#ask(chunk.toolCallId);
        yield* this.#answer({
          type: 'tool-approval-response',
          approvalId: chunk.toolCallId,
          approved: false,
        });
        yield { type: 'tool-output-denied', toolCallId: chunk.toolCallId };
        return;
      case 'tool-approval-request':
        yield* this.#ask(chunk.toolCallId);
        return;
      case 'tool-approval-response':
        if (this.#asked.has(chunk.approvalId)) yield* this.#answer(chunk);
        return;
      case 'steering-message':
      case 'abort':
        yield* this.close();
        yield chunk;
        return;
      case 'data-event':
        yield* this.#event(chunk);
        return;
      case 'data-message':
        yield* this.close();
        yield steering(chunk);
        return;
      case 'data-answer':
        return;
      default:
        if (chunk.type.startsWith('data-') && this.#isOwn(chunk)) yield chunk;
    }
  }

  /** Whether a part is not the progress of a child that a call of another message has started. */
  #isOwn(chunk: Chunk): boolean {
    const data: unknown = 'data' in chunk ? chunk.data : undefined;
    const call = chunk.type === 'data-child' && isObject(data) ? data.toolCallId : undefined;
    return typeof call !== 'string' || this.#calls.has(call);
  }

  /** Closes what is open: the model sends no end of a part that is cut off. */
  *close(): Generator<Chunk> {
    for (const { kind, id, isSent } of this.#open.values()) if (isSent) yield { type: `${kind}-end`, id };
    this.#open.clear();
    if (this.#isStepOpen) yield { type: 'finish-step' };
    this.#isStepOpen = false;
    this.#isStepDue = false;
  }

  #begin(chunk: Extract<Chunk, { type: 'text-start' | 'reasoning-start' }>): void {
    const kind = chunk.type === 'text-start' ? 'text' : 'reasoning';
    const id = `${this.#step}-${this.#parts}`;
    this.#parts += 1;
    this.#open.set(`${kind} ${chunk.id}`, { kind, id, isSent: false, start: { ...chunk, id } });
  }

  *#delta(chunk: Extract<Chunk, { type: 'text-delta' | 'reasoning-delta' }>): Generator<Chunk> {
    const kind = chunk.type === 'text-delta' ? 'text' : 'reasoning';
    const open = this.#open.get(`${kind} ${chunk.id}`);
    if (open === undefined || chunk.delta === '') return;
    if (!open.isSent) yield* this.#content(open.start);
    open.isSent = true;
    yield { ...chunk, id: open.id };
  }

  *#end(chunk: Extract<Chunk, { type: 'text-end' | 'reasoning-end' }>): Generator<Chunk> {
    const key = `${chunk.type === 'text-end' ? 'text' : 'reasoning'} ${chunk.id}`;
    const open = this.#open.get(key);
    this.#open.delete(key);
    if (open?.isSent === true) yield { ...chunk, id: open.id };
  }

  /** Content of an answer: the step that it belongs to begins with it. */
  *#content(chunk: Chunk): Generator<Chunk> {
    if (this.#isStepDue) {
      this.#isStepDue = false;
      this.#isStepOpen = true;
      this.#isBelow = false;
      yield { type: 'start-step' };
    }
    yield chunk;
  }

  /** A call of a session below. The calls of all that an answer delegates to are one step. */
  *#call(chunk: Called): Generator<Chunk> {
    this.#isStepDue = false;
    if (this.#below.has(chunk.toolCallId)) return;
    this.#below.add(chunk.toolCallId);
    if (!this.#isBelow) yield { type: 'start-step' };
    this.#isBelow = true;
    const { toolMetadata } = chunk;
    yield { ...called(chunk), type: 'tool-input-available', ...(toolMetadata && { toolMetadata }) };
  }

  *#ask(toolCallId: string): Generator<Chunk> {
    if (this.#asked.has(toolCallId)) return;
    this.#asked.add(toolCallId);
    yield { type: 'tool-approval-request', approvalId: toolCallId, toolCallId };
  }

  *#answer(chunk: Extract<Chunk, { type: 'tool-approval-response' }>): Generator<Chunk> {
    if (this.#answered.has(chunk.approvalId)) return;
    this.#answered.add(chunk.approvalId);
    yield chunk;
  }

  *#event(chunk: Chunk): Generator<Chunk> {
    const event = eventOf(chunk);
    if (event?.type === 'child-event') yield { type: 'data-child-event', data: event, transient: true };
    if (event?.type !== 'tool-waiting') return;
    for (const call of event.calls) {
      const { toolCallId, claims = [], offers = [], askedFor } = call;
      if (call.for !== 'approval') continue;
      if (call.session === undefined) yield* this.#ask(toolCallId);
      yield {
        type: 'data-approval',
        data: { toolCallId, claims, offers, ...(askedFor !== undefined && { askedFor }) },
        transient: true,
      };
    }
  }
}

type Called = Extract<Chunk, { type: 'tool-input-available' | 'tool-input-error' }>;

/** A call without what the tape does not keep of it, such as its title. */
function bare({
  toolCallId,
  toolName,
  providerExecuted,
  providerMetadata,
}: Pick<Called, 'toolCallId' | 'toolName' | 'providerExecuted' | 'providerMetadata'>) {
  return {
    toolCallId,
    toolName,
    ...(providerExecuted === true && { providerExecuted }),
    ...(providerMetadata !== undefined && { providerMetadata }),
  };
}

function called(chunk: Called) {
  return { ...bare(chunk), input: chunk.input };
}

function bareResult(chunk: Extract<Chunk, { type: 'tool-output-available' | 'tool-output-error' }>): Chunk {
  const { toolCallId, providerExecuted } = chunk;
  const by = providerExecuted === true ? { providerExecuted } : {};
  if (chunk.type === 'tool-output-error')
    return { type: 'tool-output-error', toolCallId, errorText: chunk.errorText, ...by };
  const early = chunk.preliminary === true ? { preliminary: true } : {};
  return { type: 'tool-output-available', toolCallId, output: chunk.output, ...by, ...early };
}

/** A message that steered the run, as a part of the answer. */
function steering(chunk: Chunk): Chunk {
  const { id = '', data } = chunk as { readonly id?: string; readonly data: { readonly content?: unknown } };
  return steeringChunk(id, data.content);
}

/** The chunk of a message that reaches a run between two of its steps: of a user, or the report of a child. */
export function addedChunk(entry: Entry): Chunk {
  const chunk = messageChunk(entry);
  return chunk.type === 'data-message' ? steering(chunk) : chunk;
}

/** The chunk of a message that steers a run, of the parts of its content that are texts. */
function steeringChunk(id: string, content: unknown): Chunk {
  const parts = (Array.isArray(content) ? content : [{ type: 'text', text: String(content) }])
    .filter(({ type, text }) => type === 'text' && typeof text === 'string')
    .map(({ text }) => ({ type: 'text' as const, text: String(text) }));
  return { type: 'steering-message', id, parts };
}
