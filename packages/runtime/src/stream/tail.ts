import { setTimeout as sleep } from 'node:timers/promises';
import type { Entry, Seq, TapeStore } from '@tapedeck/tape';
import { isObject, Patience } from '@tapedeck/tape/internal';
import type { Chunk } from './chunks.ts';

/** News of a tape: an entry, or a chunk of an answer in progress. */
export type Fresh =
  | { readonly type: 'entry'; readonly entry: Entry }
  | { readonly type: 'chunk'; readonly run: string; readonly chunk: Chunk };

/** Options of `tail`. */
export interface TailOptions {
  /** The first position to read (default: the one after the head). */
  readonly from?: Seq;
  /** True: ends once everything is read and the session has no writer. By default it never ends. */
  readonly untilIdle?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** The interval at which the store is checked for writes, in milliseconds. */
const pollMs = 50;

/** The owner of the session is checked only each so many times: one that ends says so by a write, one that dies does not. */
const ownerLooks = 10;

/**
 * The entries of a session's tape from a position on, then those that any process appends: each entry once,
 * in order, and between them the chunks of the live answer as they are saved. Takes no lease and blocks no
 * writer. An entry may repeat the content of its chunks.
 *
 * @example
 * ```ts
 * import { openDeck, tail } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.run('Plan the release.');
 * for await (const fresh of tail(deck.store, 'main', { from: 1, untilIdle: true }))
 *   if (fresh.type === 'entry') console.log(fresh.entry.seq, fresh.entry.kind);
 *   // 1 anchor
 *   // 2 message
 *   // 3 message
 * ```
 */
export async function* tail(store: TapeStore, ref: string, options: TailOptions = {}): AsyncGenerator<Fresh> {
  const { untilIdle = false, ...rest } = options;
  yield* follow(store, ref, {
    ...rest,
    ...(untilIdle && { isOver: async () => !(await isOwned(store, ref)) }),
  });
}

/** The same, until `isOver` says that no process writes the session. */
export async function* follow(
  store: TapeStore,
  ref: string,
  {
    from,
    signal,
    isOver = async () => false,
  }: Omit<TailOptions, 'untilIdle'> & { readonly isOver?: () => Promise<boolean> },
): AsyncGenerator<Fresh> {
  let next = from ?? ((await store.sessions.find(ref))?.head ?? 0) + 1;
  const sent = new Map<string, number>();
  const isStopped = () => signal?.aborted === true;
  const patience = new Patience();
  while (!isStopped())
    try {
      const changes = await store.changes();
      // Checked before reading, so that this round still reads what the last owner wrote.
      const isIdle = await isOver();
      for await (const entry of store.entries.read(ref, { from: next })) {
        next = entry.seq + 1;
        yield { type: 'entry', entry };
      }
      yield* livePieces(store, ref, { next, sent });
      if (isIdle) return;
      patience.renew();
      for (let looks = 1; (await store.changes()) === changes; looks += 1) {
        if (isStopped()) return;
        await sleep(pollMs, undefined, { signal }).catch(() => {});
        if (looks % ownerLooks === 0 && (await isOver())) break;
      }
    } catch (error) {
      await patience.wait(error);
    }
}

async function* livePieces(
  store: TapeStore,
  ref: string,
  { next, sent }: { readonly next: Seq; readonly sent: Map<string, number> },
): AsyncGenerator<Fresh> {
  for (const { run, chunks } of await store.live.read(ref, { from: Object.fromEntries(sent) })) {
    // Entries settled meanwhile come first, in the next round.
    if (((await store.sessions.find(ref))?.head ?? 0) >= next) return;
    for (const { index, chunk } of chunks) {
      sent.set(run, index + 1);
      yield { type: 'chunk', run, chunk: chunk as unknown as Chunk };
    }
  }
}

async function isOwned(store: TapeStore, ref: string): Promise<boolean> {
  const id = (await store.sessions.find(ref))?.id;
  return (await store.leases.list()).some((owner) => owner.id === id);
}

/** How many entries are searched for the start of a run. */
const runMax = 2_000;

/**
 * The first position of the run in progress, or else of a session's last run; undefined if the searched
 * entries have none.
 */
export async function lastRunStart(store: TapeStore, ref: string): Promise<Seq | undefined> {
  const live = (await store.live.read(ref)).at(-1)?.run;
  let start: { readonly run: unknown; readonly seq: Seq } | undefined;
  let next = 1;
  for await (const entry of store.entries.read(ref, { last: runMax })) {
    next = entry.seq + 1;
    const run = runOf(entry);
    if (run !== undefined && start?.run !== run) start = { run, seq: entry.seq };
  }
  // A run without input of its own has no entries until its first answer is complete.
  return live === undefined || start?.run === live ? start?.seq : next;
}

/** The run that wrote an entry; the notes of a run name it in their payload. */
function runOf({ kind, name, meta, payload }: Entry): unknown {
  if (kind === 'message' || kind === 'tool-result') return meta.run;
  return name?.startsWith('run/') === true && isObject(payload) ? payload.run : undefined;
}
