/**
 * What a run publishes while it runs. `events.ts` and `call.ts` are the types, `chunks.ts` makes chunks of the AI
 * SDK's UI protocol of them and back, `event-log.ts` and `broadcast.ts` hand them to readers in this process,
 * `chunk-writer.ts` saves them for other processes, which read them with `tail.ts` and `replay.ts`. Imports `usage`,
 * `crash-point` and `errors`.
 */
import type { JsonObject } from '@tapedeck/tape';
import type { UIMessageChunk } from 'ai';
import type { ChildProgress, SessionEvent } from './events.ts';

/**
 * What a run sends to its watchers, in the AI SDK's UI message stream protocol. Events without a chunk type
 * in the protocol are transient `data-event` chunks, which `useChat` passes to `onData` and keeps out of
 * messages.
 */
export type Chunk = UIMessageChunk;

/**
 * An event as a chunk. Events that stand for text need none: the answer's own chunks carry the text. The progress of a child
 * is a part of the answer, which the next one replaces, when a call of the answer delegates to it.
 */
export function eventChunk(event: SessionEvent): Chunk {
  if (event.type === 'child-progress') return childChunk(event);
  return { type: 'data-event', data: event, transient: true };
}

/** The decision on a call that waited for approval, of the payload of its note. */
export function decisionChunk({ toolCallId, approved, reason }: JsonObject): Chunk {
  return {
    type: 'tool-approval-response',
    approvalId: String(toolCallId),
    approved: approved === true,
    ...(typeof reason === 'string' && { reason }),
  };
}

/** The progress of a child as a chunk. */
export function childChunk({
  type: _,
  ...progress
}: ChildProgress & { readonly type?: 'child-progress' }): Chunk {
  const transient = progress.toolCallId === undefined ? { transient: true } : {};
  return { type: 'data-child', id: progress.session, data: progress, ...transient };
}

/** The event that a chunk carries, if any. Events are derived from a run's chunks. Pure. */
export function eventOf(chunk: Chunk): SessionEvent | undefined {
  switch (chunk.type) {
    case 'text-delta':
      return { type: 'content-chunk', text: chunk.delta };
    case 'reasoning-start':
      return { type: 'reasoning-started' };
    case 'reasoning-delta':
      return { type: 'reasoning-chunk', text: chunk.delta };
    case 'reasoning-end':
      return { type: 'reasoning-ended' };
    case 'data-child':
      return { type: 'child-progress', ...(chunk as { readonly data: ChildProgress }).data };
    case 'data-event':
      return (chunk as { readonly data: SessionEvent }).data;
    default:
      return undefined;
  }
}

/**
 * The events among chunks.
 *
 * @example
 * ```ts
 * import { eventsOf, openDeck, tail, watchChunks } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.run('Plan the release.');
 * const chunks = watchChunks(tail(deck.store, 'main', { from: 1, untilIdle: true }));
 * for await (const event of eventsOf(chunks))
 *   if (event.type === 'session-completed') console.log(event.finish); // stop
 * ```
 */
export async function* eventsOf(chunks: AsyncIterable<Chunk>): AsyncGenerator<SessionEvent> {
  for await (const chunk of chunks) {
    const event = eventOf(chunk);
    if (event !== undefined) yield event;
  }
}

/** The answer to which the chunks after it belong. Saved with the chunks, never shown. */
export interface AnswerHead {
  readonly step: number;
  readonly provider?: string | undefined;
  readonly model: string;
}

export function headChunk(head: AnswerHead): Chunk {
  return { type: 'data-answer', data: head, transient: true };
}

export function headOf(chunk: Chunk): AnswerHead | undefined {
  return chunk.type === 'data-answer' ? (chunk as { readonly data: AnswerHead }).data : undefined;
}

/**
 * Whether a chunk is part of a model's answer. These are saved as they arrive, until the answer is an entry.
 */
export function isAnswer(chunk: Chunk): boolean {
  if (chunk.type === 'tool-output-available' || chunk.type === 'tool-output-error')
    return chunk.providerExecuted === true;
  if (chunk.type.startsWith('data-')) return chunk.type === 'data-answer';
  return answerTypes.has(chunk.type);
}

const answerTypes: ReadonlySet<string> = new Set([
  'text-start',
  'text-delta',
  'text-end',
  'reasoning-start',
  'reasoning-delta',
  'reasoning-end',
  'tool-input-start',
  'tool-input-delta',
  'tool-input-available',
  'tool-input-error',
  'source-url',
  'source-document',
  'file',
]);
