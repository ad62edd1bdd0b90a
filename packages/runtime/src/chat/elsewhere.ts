import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Entry } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { Chunk } from '../stream/chunks.ts';
import { watchChunks } from '../stream/replay.ts';
import { type Fresh, follow } from '../stream/tail.ts';
import { type ChildCall, childCallChunks, childCallsOf } from '../ui/child-calls.ts';
import { answerFacts, childChunks } from '../ui/messages.ts';
import { childrenOf } from '../ui/started.ts';
import { isReport, lastTurn, runOf, turnsOf } from '../ui/turns.ts';
import type { GoOn } from './left.ts';
import { LiveChildren, readMs } from './live-children.ts';
import { at, type ChatPlace, isWritten, joined, lastAnswer, readAnswer, turnWith } from './streams.ts';

/**
 * The answer that another process writes, from the beginning of its turn; ends with it, or when the session is idle. When
 * the process dies, `goOn` lets the answer go on.
 */
export async function* otherStream(place: ChatPlace, goOn?: GoOn): AsyncGenerator<Chunk> {
  const { store, session } = place;
  const turn = await lastTurn(store, session.id);
  const first = turn?.entries[0]?.seq ?? (turn?.opening === undefined ? 1 : turn.opening.seq + 1);
  const shown: Entry[] = [];
  const isOver = async () => !(await isWritten(place)) && (await goOn?.(place)) !== true;
  const news = ofTurn(follow(store, session.id, { from: first, isOver }), turn?.opening);
  const chunks = withChildren(place, watchChunks(noted(news, shown)), shown);
  const id = turn?.id ?? session.id;
  yield* readAnswer(joined(chunks, waitingBelow(place)), {
    id,
    metadata: async () => {
      const done = await turnWith(place, id);
      return done === undefined ? undefined : answerFacts(done);
    },
  });
}

/** The same news. An entry is added to `shown` once all chunks that come of it are taken. */
async function* noted(news: AsyncIterable<Fresh>, shown: Entry[]): AsyncGenerator<Fresh> {
  for await (const fresh of news) {
    yield fresh;
    if (fresh.type === 'entry') shown.push(fresh.entry);
  }
}

/**
 * The chunks of an answer, and between them how the children of its last step do and what they ask: their own tapes have
 * that while they work, and the tape of the session only what has come of them.
 */
async function* withChildren(
  place: ChatPlace,
  chunks: AsyncIterable<Chunk>,
  shown: readonly Entry[],
): AsyncGenerator<Chunk> {
  const reader = chunks[Symbol.asyncIterator]();
  using live = new LiveChildren(place);
  let asked: readonly ChildCall[] = [];
  const below = async (): Promise<readonly Chunk[]> => {
    const last = { entries: shown.slice(lastAnswer({ entries: shown })) };
    const children = await childrenOf(at(place), last);
    await live.look(children, true);
    const calls = await childCallsOf(
      place.store,
      children.filter(({ isAwaited }) => isAwaited),
    );
    const more = isDeepStrictEqual(calls, asked) ? [] : childCallChunks(calls);
    asked = calls;
    return [...live.take(), ...more];
  };
  let next = reader.next();
  let pause = pauseOnce();
  let known = 0;
  try {
    for (;;) {
      const found = await Promise.race([next, pause]);
      if (found === undefined || shown.length > known) {
        known = shown.length;
        yield* await below();
        pause = pauseOnce();
      }
      if (found === undefined) continue;
      if (found.done === true) return;
      yield found.value;
      next = reader.next();
    }
  } finally {
    await reader.return?.();
  }
}

async function pauseOnce(): Promise<undefined> {
  await sleep(readMs, undefined, { ref: false });
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
