import { setTimeout as sleep } from 'node:timers/promises';
import type { Entry, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import { chunksOf, type Run } from '../run/run.ts';
import type { StartOptions } from '../session/options.ts';
import type { Session } from '../session/session.ts';
import type { Chunk } from '../stream/chunks.ts';
import { watchChunks } from '../stream/replay.ts';
import { type Fresh, tail } from '../stream/tail.ts';
import { awaitsAnswer, openCallsOf } from '../tools/open-batch.ts';
import { type ChatStart, chatChunks } from '../ui/chat-chunks.ts';
import { type ChildCall, childCallsOf } from '../ui/child-calls.ts';
import { answerFacts, childChunks, turnChunks } from '../ui/messages.ts';
import { childrenOf, type TurnPlace } from '../ui/started.ts';
import { isReport, lastTurn, runOf, type Turn, turnOf, turnsOf } from '../ui/turns.ts';

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
async function* readAnswer(chunks: AsyncIterable<Chunk>, start: ChatStart): AsyncGenerator<Chunk> {
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
export type Shown = Pick<ChatStart, 'step' | 'asked' | 'below'>;

/** What a message shows already of the entries of its turn. */
export async function shownIn(place: ChatPlace, before: Pick<Turn, 'entries'>): Promise<Shown> {
  const calls = await callsBelow(place, before);
  const last = await callsBelow(place, { entries: before.entries.slice(lastAnswer(before)) });
  return {
    step: answersOf(before),
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

/**
 * The stream of the run that takes up an item of the inbox, once it begins. When no process runs the session, it starts the
 * next run. `written` gives what a run that is over has made of the item.
 */
export async function* itemStream(
  place: ChatPlace,
  item: string,
  { options, written }: { readonly options: StartOptions; readonly written: () => AsyncIterable<Chunk> },
): AsyncGenerator<Chunk> {
  const { store, session } = place;
  let seen: Run | undefined;
  for (;;) {
    const run: Run | undefined = session.attach() ?? seen?.following;
    if (run?.took.includes(item) === true) {
      yield* runStream(place, run);
      return;
    }
    const isQueued = (await store.inbox.list(session.id)).some(({ id }) => id === item);
    if (!isQueued && session.attach() === undefined) {
      yield* (await isWritten(place)) ? otherStream(place) : written();
      return;
    }
    // A run that begins has not taken up its items yet.
    if (run !== undefined) {
      seen = run;
      await Promise.race([run.then(ignored, ignored), sleep(lookMs)]);
      continue;
    }
    if (!(await isWritten(place))) {
      const fault = await startNext(session, item, options);
      if (fault !== undefined) throw fault;
    }
    await sleep(lookMs);
  }
}

/** Starts the run of what waits longest. Returns why it could not, unless the session is run elsewhere. */
async function startNext(session: Session, item: string, options: StartOptions): Promise<unknown> {
  if (session.attach() !== undefined) return undefined;
  const run = session.run(undefined, options);
  const fault = await Promise.race([run.then(ignored, (error: unknown) => error), sleep(lookMs)]);
  const isHarmless =
    fault === undefined ||
    run.took.includes(item) ||
    (fault instanceof SessionError && fault.code === 'SESSION_BUSY');
  return isHarmless ? undefined : fault;
}

function ignored(): undefined {
  return undefined;
}

/** The answer that another process writes, from the beginning of its turn; ends with it, or when the session is idle. */
export async function* otherStream(place: ChatPlace): AsyncGenerator<Chunk> {
  const { store, session } = place;
  const turn = await lastTurn(store, session.id);
  const first = turn?.entries[0]?.seq ?? (turn?.opening === undefined ? 1 : turn.opening.seq + 1);
  const news = watchChunks(ofTurn(tail(store, session.id, { from: first, untilIdle: true }), turn?.opening));
  const id = turn?.id ?? session.id;
  yield* readAnswer(joined(news, waitingBelow(place)), {
    id,
    metadata: async () => {
      const done = await turnWith(place, id);
      return done === undefined ? undefined : answerFacts(done);
    },
  });
}

/**
 * What is news of one turn, up to the message that opens the next. A report of a child is held until what follows shows
 * whether it is a part of the answer.
 */
async function* ofTurn(news: AsyncIterable<Fresh>, opening: Entry | undefined): AsyncGenerator<Fresh> {
  const entries = opening === undefined ? [] : [opening];
  let held: Fresh[] = [];
  for await (const fresh of news) {
    if (fresh.type === 'entry') {
      const { entry } = fresh;
      if (entry.kind === 'rewind') return;
      entries.push(entry);
      held.push(fresh);
      if (held.length > 1 || (isObject(entry.payload) && entry.payload.role === 'user')) {
        const [, ...next] = turnsOf(entries);
        if (next.some((turn) => turn.opening === undefined || !isReport(turn.opening))) return;
        if (next.length > 0) continue;
      }
    } else if (held.length > 0 && !entries.some((entry) => runOf(entry) === fresh.run)) return;
    yield* held;
    held = [];
    if (fresh.type === 'chunk') yield fresh;
  }
}

/** What the children of the last answer wait for, when another process has ended. */
async function* waitingBelow(place: ChatPlace): AsyncGenerator<Chunk> {
  const turn = await lastTurn(place.store, place.session.id);
  if (turn === undefined) return;
  const last = { entries: turn.entries.slice(lastAnswer(turn)) };
  yield* childChunks(place.store, await childrenOf(at(place), last));
}

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
