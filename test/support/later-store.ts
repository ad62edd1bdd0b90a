import { setImmediate as nextTick } from 'node:timers/promises';
import type { TapeStore } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';

/** The groups of a store's methods. */
type Group = Exclude<keyof TapeStore, symbol | 'lockWaitMs' | 'base' | 'inRealm' | 'verify' | 'changes'>;

/** The methods of a store, by group; `lockWaitMs` is a setting. */
export type Method =
  | { [G in Group]: `${G}.${keyof TapeStore[G] & string}` }[Group]
  | Extract<keyof TapeStore, 'verify' | 'changes'>;

type Act<M extends Method> = M extends `${infer G extends Group}.${infer N}`
  ? N extends keyof TapeStore[G]
    ? TapeStore[G][N]
    : never
  : M extends keyof TapeStore
    ? TapeStore[M]
    : never;

/** The methods that give a sequence instead of one answer. */
type Streaming = {
  [M in Method]: Act<M> extends (...args: never[]) => Iterable<unknown> | AsyncIterable<unknown> ? M : never;
}[Method];

const streaming: Readonly<Record<Streaming, true>> = {
  'entries.read': true,
  'views.entries': true,
  'lineage.read': true,
  verify: true,
};

/** How many ticks pass before one act after another is done: who does not wait for the first is overtaken. */
const ticksBefore = [4, 1, 3, 2];

/**
 * A store that does each act on a later tick than the call, and answers on a later tick still, as a store behind a
 * network does: promises for answers and errors, async iterables whose every item comes later. Acts that are not
 * awaited may be done in another order than their calls.
 */
export function laterStore(store: TapeStore): TapeStore {
  let asked = 0;
  const wait = async () => {
    const ticks = ticksBefore[asked % ticksBefore.length] ?? 1;
    asked += 1;
    for (let n = 0; n < ticks; n += 1) await nextTick();
  };
  return wrapStore(store, ({ method, act }) =>
    Object.hasOwn(streaming, method)
      ? itemsOf(wait(), () => act() as Iterable<unknown>)
      : answerOf(wait(), act),
  );
}

async function answerOf(turn: Promise<void>, act: () => unknown): Promise<unknown> {
  await turn;
  try {
    return await act();
  } finally {
    await nextTick();
  }
}

async function* itemsOf(
  turn: Promise<void>,
  act: () => Iterable<unknown> | AsyncIterable<unknown>,
): AsyncGenerator<unknown> {
  await turn;
  try {
    for await (const item of act()) {
      yield item;
      await nextTick();
    }
  } finally {
    await nextTick();
  }
}
