import type { Appended, Draft, Json, Lease, TapeStore } from '@tapedeck/tape';
import { encodeJson, type LiveStream, type StreamChunk } from '@tapedeck/tape/store';
import { runPoint } from '../crash-point.ts';
import { isUnstorable } from '../errors.ts';
import { type Chunk, isAnswer } from './chunks.ts';

/**
 * How long chunks are collected before they are saved, in milliseconds: the most of a live answer that a kill
 * loses.
 */
const gatherMs = 25;

/** Saves the live answer of one run as it arrives. */
interface Recorder {
  /** Adds a chunk. Chunks that are not part of an answer are not saved. */
  add(chunk: Chunk): void;
  /** Saves what was added now, instead of within 25 ms. */
  saved(): Promise<void>;
  /** Writes the settled entries in place of the chunks. */
  settle(drafts: readonly Draft[], lease: Lease): Promise<Appended>;
  /** Ends the run: drops what is not saved yet, so that nothing of it is saved after a later run has begun. */
  close(): Promise<void>;
}

/** Saves the live answers of all runs of a deck, in one transaction every 25 ms. */
export interface ChunkWriter {
  recorder(lease: Lease, run: string): Recorder;
  /**
   * Subscribes to failures of background saves. The run must stop then: a run never continues with output
   * that is not stored.
   */
  onFailure(run: string, listener: (error: unknown) => void): () => void;
}

interface Stream {
  readonly lease: Lease;
  readonly run: string;
  next: number;
  waiting: Chunk[];
}

export function openChunkWriter(store: TapeStore): ChunkWriter {
  const streams = new Set<Stream>();
  const listeners = new Map<string, (error: unknown) => void>();
  let planned = false;
  let saving: Promise<void> = Promise.resolve();
  const save = async (saved: readonly LiveStream[]) => {
    try {
      await store.live.save(saved);
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      // A chunk that cannot be stored cannot become an entry either; `settle` handles that.
      await store.live.save(saved.map((stream) => ({ ...stream, chunks: stream.chunks.filter(isStorable) })));
    }
  };
  const flush = () => {
    planned = false;
    const batch = [...streams].filter(({ waiting }) => waiting.length > 0);
    // Everything may have been settled before the timer fired.
    if (batch.length === 0) return;
    const saved = batch.map((stream) => ({
      session: stream.lease.id,
      run: stream.run,
      chunks: take(stream),
      epoch: stream.lease.epoch,
    }));
    saving = saving.then(async () => {
      try {
        runPoint('stream/before-save');
        await save(saved);
        runPoint('stream/saved');
      } catch (error) {
        for (const { run } of saved) listeners.get(run)?.(error);
      }
    });
  };
  return {
    recorder: (lease, run) => {
      const stream: Stream = { lease, run, next: 0, waiting: [] };
      return {
        add: (chunk) => {
          if (!isAnswer(chunk)) return;
          streams.add(stream);
          stream.waiting.push(chunk);
          if (!planned) setTimeout(flush, gatherMs);
          planned = true;
        },
        saved: async () => {
          flush();
          await saving;
        },
        settle: async (drafts, lease) => {
          stream.waiting = [];
          streams.delete(stream);
          // A save in progress must not write chunks after `settle` has deleted them.
          await saving;
          return await store.entries.append(lease.id, drafts, { lease, settles: run });
        },
        close: async () => {
          stream.waiting = [];
          streams.delete(stream);
          await saving;
        },
      };
    },
    onFailure: (run, listener) => {
      listeners.set(run, listener);
      return () => void listeners.delete(run);
    },
  };
}

function isStorable({ chunk }: StreamChunk): boolean {
  try {
    encodeJson(chunk);
    return true;
  } catch {
    return false;
  }
}

/**
 * The waiting chunks, with adjacent deltas of one text joined: a replay has the same text in fewer chunks.
 */
function take(stream: Stream): StreamChunk[] {
  const joined: Chunk[] = [];
  for (const chunk of stream.waiting) {
    const last = joined.at(-1);
    const both = last === undefined ? undefined : join(last, chunk);
    if (both === undefined) joined.push(chunk);
    else joined[joined.length - 1] = both;
  }
  stream.waiting = [];
  return joined.map((chunk) => {
    stream.next += 1;
    return { index: stream.next - 1, chunk: chunk as unknown as Json };
  });
}

function join(last: Chunk, chunk: Chunk): Chunk | undefined {
  if (chunk.type === 'tool-input-delta')
    return last.type === chunk.type && last.toolCallId === chunk.toolCallId
      ? { ...last, inputTextDelta: last.inputTextDelta + chunk.inputTextDelta }
      : undefined;
  if (chunk.type !== 'text-delta' && chunk.type !== 'reasoning-delta') return undefined;
  if (last.type !== chunk.type || last.id !== chunk.id || chunk.providerMetadata !== undefined)
    return undefined;
  return { ...last, delta: last.delta + chunk.delta };
}
