import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionInfo } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import type { Run } from '../run/run.ts';
import { partsOf } from '../session/parts.ts';
import { runningChildren } from '../status/waits.ts';
import type { Chunk } from '../stream/chunks.ts';
import { chatChunks } from '../ui/chat-chunks.ts';
import { childCallChunks, childCallsOf } from '../ui/child-calls.ts';
import { answerFacts, childChunks, turnChunks } from '../ui/messages.ts';
import { childrenOf, type StartedChild } from '../ui/started.ts';
import { lastTurn, type Turn } from '../ui/turns.ts';
import { LiveChildren } from './live-children.ts';
import {
  at,
  type ChatPlace,
  failureOf,
  isWritten,
  joined,
  lastAnswer,
  lookMs,
  messageIdOf,
  readRun,
  type Shown,
  turnWith,
} from './streams.ts';

/** The last turn of a session that no process runs, while its last answer waits for children that work. */
export async function turnAtWork(place: ChatPlace): Promise<Turn | undefined> {
  const turn = await lastTurn(place.store, place.session.id);
  if (turn === undefined) return undefined;
  return (await busyOf(place, await awaitedBy(place, turn))).length > 0 ? turn : undefined;
}

/**
 * What comes of a turn while its children work: how they do, what they wait for, and the run with which the session itself
 * goes on. Ends when nothing works any more. `shown`: what the message shows already; without it, the turn comes first.
 */
export async function* belowStream(place: ChatPlace, turn: Turn, shown?: Shown): AsyncGenerator<Chunk> {
  const { id = place.session.id } = turn;
  let run: Run | undefined;
  const follow = (next: Run) => {
    run = next;
  };
  const work = workBelow(place, turn, follow);
  const chunks = shown === undefined ? joined(turnChunks(at(place), turn), work) : work;
  const metadata = async () => answerFacts((await turnWith(place, id)) ?? turn);
  for await (const chunk of chatChunks(chunks, { id, ...shown, metadata })) {
    if (chunk.type === 'error')
      throw run === undefined
        ? new SessionError('SESSION_MODEL_FAILED', chunk.errorText)
        : await failureOf(run, chunk.errorText);
    yield chunk;
  }
}

/** The store is asked what works below only each so many looks: many pages can watch one session. */
const looksApart = 5;

async function* workBelow(place: ChatPlace, turn: Turn, follow: (run: Run) => void): AsyncGenerator<Chunk> {
  const { session, store } = place;
  using live = new LiveChildren(place);
  let before: string | undefined;
  for (let looks = 0; ; looks += 1) {
    if (looks % looksApart !== 0 && session.attach() === undefined) {
      yield* live.take();
      await sleep(lookMs);
      continue;
    }
    const children = await awaitedBy(place, turn);
    const busy = await busyOf(place, children);
    const run = session.attach();
    const message = run === undefined ? undefined : await messageIdOf(run);
    // A run that fails before it has a message fails the answer.
    if (run !== undefined && (message ?? turn.id) === turn.id) {
      follow(run);
      yield* readRun(run);
      return;
    }
    // Where a session has begun or ended to work, its tape says how it does, and what it waits for.
    const now = busy.map((info) => info.session).join(' ');
    const isNews = now !== before;
    await live.look(children, isNews);
    yield* live.take();
    if (isNews && before !== undefined) yield* childCallChunks(await childCallsOf(store, children));
    before = now;
    if (run !== undefined || (busy.length === 0 && !(await isWritten(place)))) break;
    await sleep(lookMs);
  }
  const { id = session.id, entries } = turn;
  const more = (await turnWith(place, id))?.entries.slice(entries.length) ?? [];
  yield* childChunks(store, await awaitedBy(place, turn));
  yield* turnChunks(at(place), { entries: more });
}

/**
 * Stops the children that work for the last answer of a session, and the run with which the session goes on when they have
 * ended.
 */
export async function stopBelow(place: ChatPlace, reason: string): Promise<void> {
  const { session, store } = place;
  const parts = partsOf.get(session);
  const turn = await lastTurn(store, session.id);
  if (parts === undefined || turn === undefined) return;
  const over = new AbortController();
  const following = stopRuns(session, { of: turn.id, reason, signal: over.signal });
  const asked = new Set<string>();
  for (let looks = 0; looks < stopLooks; looks += 1) {
    const busy = await busyOf(place, await awaitedBy(place, turn));
    const working = busy.map((info) => parts.session(info));
    if (await goesOn(place, turn)) working.push(session);
    if (working.length === 0) break;
    for (const one of working) {
      // Another process finds the request in the inbox, and is asked once.
      if (one.attach() === undefined && asked.has(one.id)) continue;
      asked.add(one.id);
      await one.abort(reason);
    }
    await sleep(lookMs);
  }
  over.abort();
  await following;
}

/** Stops each run of a session that continues a message, as soon as it starts. */
async function stopRuns(
  session: ChatPlace['session'],
  {
    of,
    reason,
    signal,
  }: { readonly of: string | undefined; readonly reason: string; readonly signal: AbortSignal },
): Promise<void> {
  for await (const { type } of session.subscribe({ signal })) {
    const run = type === 'run-started' ? session.attach() : undefined;
    if (run !== undefined && (await messageIdOf(run)) === of) await session.abort(reason);
  }
}

/** Whether a process continues a turn. A run of this process that has just begun shows it with its first message. */
async function goesOn(place: ChatPlace, turn: Turn): Promise<boolean> {
  const run = place.session.attach();
  return run === undefined ? await isWritten(place) : (await messageIdOf(run)) === turn.id;
}

/** How often it is looked whether all has stopped: a process that does not stop is left after ten seconds. */
const stopLooks = 500;

/** The children for which the last answer of a turn waits. */
async function awaitedBy(place: ChatPlace, turn: Turn): Promise<readonly StartedChild[]> {
  const last = { entries: turn.entries.slice(lastAnswer(turn)) };
  return (await childrenOf(at(place), last)).filter(({ isAwaited }) => isAwaited);
}

/** Those of these children, and of those to which they delegate in turn, that work or deliver what they have done. */
async function busyOf(place: ChatPlace, children: readonly StartedChild[]): Promise<readonly SessionInfo[]> {
  const owned = new Set((await place.store.leases.list()).map(({ id }) => id));
  const busy: SessionInfo[] = [];
  for (const { info } of children) busy.push(...(await busyFrom(place, info, owned)));
  return busy;
}

async function busyFrom(
  place: ChatPlace,
  info: SessionInfo,
  owned: ReadonlySet<string>,
): Promise<readonly SessionInfo[]> {
  const { store, session } = place;
  const unmerged = await store.sessions.list({ parent: info.id, unfinished: true });
  const below = new Map(
    [...unmerged, ...(await runningChildren(store, info.id))].map((one) => [one.id, one]),
  );
  const busy: SessionInfo[] = [];
  // From below: one that ends lets the one above it go on before it is quiet.
  for (const one of below.values()) busy.push(...(await busyFrom(place, one, owned)));
  const isBusy = owned.has(info.id) || partsOf.get(session)?.worker(info).isDelivering === true;
  return isBusy ? [...busy, info] : busy;
}
