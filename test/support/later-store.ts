import { setImmediate as nextTick } from 'node:timers/promises';
import type { TapeStore } from '@tapedeck/tape';

/** What a store does when it is asked; `lockWaitMs` is a setting. */
export type Method = Exclude<keyof TapeStore, symbol | 'lockWaitMs'>;

/** The methods that give a sequence instead of one answer. */
type Streaming = {
  [M in Method]: TapeStore[M] extends (...args: never[]) => Iterable<unknown> | AsyncIterable<unknown>
    ? M
    : never;
}[Method];

const streaming: Readonly<Record<Streaming, true>> = {
  read: true,
  viewEntries: true,
  merges: true,
  lineage: true,
  verify: true,
};

/** How many ticks pass before one act after another is done: who does not wait for the first is overtaken. */
const ticksBefore = [4, 1, 3, 2];

/**
 * A store that does each act on a later tick than it was asked, and answers on a later tick still, as one does that is
 * reached over a network: promises for answers and errors, async iterables whose every item comes later. Acts that nobody
 * waits for may be done in another order than they were asked.
 */
export function laterStore(store: TapeStore): TapeStore {
  let asked = 0;
  const wait = async () => {
    const ticks = ticksBefore[asked % ticksBefore.length] ?? 1;
    asked += 1;
    for (let n = 0; n < ticks; n += 1) await nextTick();
  };
  return new Proxy(store, {
    get: (target, property) => {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      const act = (args: readonly unknown[]): unknown => Reflect.apply(value, target, args);
      return Object.hasOwn(streaming, property)
        ? (...args: readonly unknown[]) => itemsOf(wait(), () => act(args) as Iterable<unknown>)
        : (...args: readonly unknown[]) => answerOf(wait(), () => act(args));
    },
  });
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
