import type { TapeStore } from '@tapedeck/tape';
import { clientCalls, isObject } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import { chunksOf, type Run } from '../run/run.ts';
import type { Session } from '../session/session.ts';
import type { Chunk } from '../stream/chunks.ts';
import { awaitsAnswer, openCallsOf } from '../tools/open-batch.ts';
import { type ChatStart, chatChunks } from '../ui/chat-chunks.ts';
import { type ChildCall, childCallsOf } from '../ui/child-calls.ts';
import { answerFacts, turnChunks } from '../ui/messages.ts';
import { childrenOf, type TurnPlace } from '../ui/started.ts';
import { runOf, type Turn, turnOf } from '../ui/turns.ts';

/** A session, and the store that its tape is in. */
export interface ChatPlace {
  readonly store: TapeStore;
  readonly session: Session;
}

/**
 * The answer of a run, from its first chunk. A run that continues an answer sends what it adds; with `whole`, also what the
 * runs before it have answered.
 */
export async function* runStream(
  place: ChatPlace,
  run: Run,
  { whole = false }: { readonly whole?: boolean } = {},
): AsyncGenerator<Chunk> {
  const id = await messageIdOf(run);
  const turn = id === undefined || id === run.id ? undefined : await turnWith(place, id);
  const before = { entries: (turn?.entries ?? []).filter((entry) => runOf(entry) !== run.id) };
  const rest = whole ? {} : await shownIn(place, before);
  const chunks = whole ? joined(turnChunks(at(place), before), readRun(run)) : readRun(run);
  const message = {
    id: id ?? run.id,
    ...rest,
    metadata: async () => {
      const done = await turnWith(place, id ?? run.id);
      return done === undefined ? undefined : answerFacts(done);
    },
  };
  for await (const chunk of chatChunks(chunks, message)) {
    if (chunk.type === 'error') throw await failureOf(run, chunk.errorText);
    yield chunk;
  }
}

/** The chunks of a run, from the first. */
export function readRun(run: Run): AsyncIterable<Chunk> {
  return chunksOf.get(run) ?? run.uiStream();
}

/** Why a run failed. */
export async function failureOf(run: Run, text: string): Promise<unknown> {
  const failure = await run.then(
    ({ error }) => error,
    (error: unknown) => error,
  );
  return failure ?? new SessionError('SESSION_MODEL_FAILED', text);
}

/** An answer of the tape. What ended it is thrown, so that the handler decides what of it the client learns. */
export async function* readAnswer(chunks: AsyncIterable<Chunk>, start: ChatStart): AsyncGenerator<Chunk> {
  for await (const chunk of chatChunks(chunks, start)) {
    if (chunk.type === 'error') throw new SessionError('SESSION_MODEL_FAILED', chunk.errorText);
    yield chunk;
  }
}

/** The id of the message that a run writes; undefined when it fails before it has one. */
export async function messageIdOf(run: Run): Promise<string | undefined> {
  for await (const chunk of readRun(run)) if (chunk.type === 'start') return chunk.messageId;
  return undefined;
}

export function at({ store, session }: ChatPlace): TurnPlace {
  return { store, session: session.id };
}

export async function turnWith({ store, session }: ChatPlace, id: string): Promise<Turn | undefined> {
  return await turnOf(store, session.id, id);
}

function answersOf({ entries }: Pick<Turn, 'entries'>): number {
  return entries.filter(({ kind }) => kind === 'message').length;
}

/** The calls that wait, or waited, for approval. */
function askedIn({ entries }: Pick<Turn, 'entries'>): readonly string[] {
  return openCallsOf(entries)
    .filter((call) => call.for === 'approval' && (awaitsAnswer(call) || call.decision !== undefined))
    .map(({ toolCallId }) => toolCallId);
}

/** What a message shows already. */
export type Shown = Pick<ChatStart, 'step' | 'asked' | 'calls' | 'below'>;

/** What a message shows already of the entries of its turn. */
export async function shownIn(place: ChatPlace, before: Pick<Turn, 'entries'>): Promise<Shown> {
  const calls = await callsBelow(place, before);
  const last = await callsBelow(place, { entries: before.entries.slice(lastAnswer(before)) });
  return {
    step: answersOf(before),
    calls: before.entries.flatMap(({ payload }) => clientCalls(payload)),
    asked: [...askedIn(before), ...calls.flatMap((call) => (call.for === 'approval' ? [call.ref] : []))],
    below: { calls: calls.map(({ ref }) => ref), isLast: last.length > 0 },
  };
}

/** The calls that wait, or waited, in the children of a turn. */
export async function callsBelow(
  place: ChatPlace,
  turn: Pick<Turn, 'entries'>,
): Promise<readonly ChildCall[]> {
  const children = await childrenOf(at(place), turn);
  return await childCallsOf(
    place.store,
    children.filter(({ isAwaited }) => isAwaited),
  );
}

/** The index of the last answer of a turn; 0 without one. */
export function lastAnswer({ entries }: Pick<Turn, 'entries'>): number {
  return Math.max(
    0,
    entries.findLastIndex(
      ({ kind, payload }) => kind === 'message' && isObject(payload) && payload.role === 'assistant',
    ),
  );
}

export async function* joined(...streams: AsyncIterable<Chunk>[]): AsyncGenerator<Chunk> {
  for (const stream of streams) yield* stream;
}

/** How often what a stream waits for is looked for, in milliseconds. */
export const lookMs = 20;

/** Whether a process writes the session. */
export async function isWritten({ store, session }: ChatPlace): Promise<boolean> {
  return (await store.leases.list()).some(({ id }) => id === session.id);
}

/** A turn that is on the tape, or its entries from one on. */
export async function* recordedStream(place: ChatPlace, turn: Turn, from = 0): AsyncGenerator<Chunk> {
  const before = { entries: turn.entries.slice(0, from) };
  if (turn.id === undefined) yield { type: 'finish' };
  else
    yield* readAnswer(turnChunks(at(place), { entries: turn.entries.slice(from) }), {
      id: turn.id,
      ...(await shownIn(place, before)),
      metadata: async () => answerFacts(turn),
    });
}
