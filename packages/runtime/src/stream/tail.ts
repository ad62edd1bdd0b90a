import { setTimeout as sleep } from 'node:timers/promises';
import { type Entry, isObject, type Seq, type TapeStore } from '@tapedeck/tape';
import type { Chunk } from './chunks.ts';

/** Something new on a tape: an entry, or a piece of an answer that is still coming. */
export type Fresh =
  | { readonly type: 'entry'; readonly entry: Entry }
  | { readonly type: 'chunk'; readonly run: string; readonly chunk: Chunk };

export interface TailOptions {
  /** The first position to tell of (default: what comes after the head). */
  readonly from?: Seq;
  /** True: it ends when all is told and nobody is writing the session; by default it goes on for ever. */
  readonly untilIdle?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** How often it looks whether anybody has written, in milliseconds. */
const pollMs = 50;

/**
 * What is on a session's tape from a position on, and then what is written to it, by whatever process: each entry once, in
 * order, and between them the pieces of the live answer as they are saved. It holds nothing and disturbs nobody (G66).
 * An entry may hold what its pieces have told before.
 */
export async function* tail(store: TapeStore, ref: string, options: TailOptions = {}): AsyncGenerator<Fresh> {
  const { signal, untilIdle = false } = options;
  const at = await store.find(ref);
  let next = options.from ?? (at?.head ?? 0) + 1;
  const told = new Map<string, number>();
  const isStopped = () => signal?.aborted === true;
  while (!isStopped()) {
    const changes = await store.changes();
    // Asked before the reading: what the last owner wrote is then read in this round.
    const isIdle = untilIdle && !(await isOwned(store, ref));
    for await (const entry of store.read(ref, { from: next })) {
      next = entry.seq + 1;
      yield { type: 'entry', entry };
    }
    yield* livePieces(store, ref, { next, told });
    if (isIdle) return;
    while ((await store.changes()) === changes) {
      if (isStopped()) return;
      await sleep(pollMs, undefined, { signal }).catch(() => {});
      // A process that dies changes nothing.
      if (untilIdle && !(await isOwned(store, ref))) break;
    }
  }
}

async function* livePieces(
  store: TapeStore,
  ref: string,
  { next, told }: { readonly next: Seq; readonly told: Map<string, number> },
): AsyncGenerator<Fresh> {
  for (const run of await store.liveRuns(ref)) {
    const pieces = await store.chunks(ref, run, told.get(run) ?? 0);
    // What was settled meanwhile comes before them, in the next round.
    if (((await store.find(ref))?.head ?? 0) >= next) return;
    for (const { index, chunk } of pieces) {
      told.set(run, index + 1);
      yield { type: 'chunk', run, chunk: chunk as unknown as Chunk };
    }
  }
}

async function isOwned(store: TapeStore, ref: string): Promise<boolean> {
  const id = (await store.find(ref))?.id;
  return (await store.owners()).some((owner) => owner.id === id);
}

/** How far back the beginning of a run is looked for. */
const runMax = 2_000;

/** The first position of the run under way, else of a session's last run; `undefined` when it has had none lately. */
export async function lastRunStart(store: TapeStore, ref: string): Promise<Seq | undefined> {
  const live = (await store.liveRuns(ref)).at(-1);
  let start: { readonly run: unknown; readonly seq: Seq } | undefined;
  let next = 1;
  for await (const entry of store.read(ref, { last: runMax })) {
    next = entry.seq + 1;
    const run = runOf(entry);
    if (run !== undefined && start?.run !== run) start = { run, seq: entry.seq };
  }
  // One that goes on from the tail has nothing on it before its first answer is whole.
  return live === undefined || start?.run === live ? start?.seq : next;
}

/** The run that an entry was written by, which the notes of a run name themselves. */
function runOf({ kind, name, meta, payload }: Entry): unknown {
  if (kind === 'message' || kind === 'tool-result') return meta.run;
  return name?.startsWith('run/') === true && isObject(payload) ? payload.run : undefined;
}
