import {
  type Appended,
  type Draft,
  encodeJson,
  type Json,
  type Lease,
  type LiveStream,
  type StreamChunk,
  type TapeStore,
} from '@tapedeck/tape';
import { runPoint } from '../crash-point.ts';
import { isUnstorable } from '../errors.ts';
import { type Chunk, isAnswer } from './chunks.ts';

/** How long chunks gather before they are saved, in milliseconds: what a kill may take of a live answer. */
const gatherMs = 25;

/** Saves one run's live answer as it lands. */
interface Recorder {
  /** Takes a chunk; those that belong to no answer are not saved. */
  add(chunk: Chunk): void;
  /** Writes what the answer came to in place of its chunks. */
  settle(drafts: readonly Draft[], lease: Lease): Promise<Appended>;
}

/** Saves the live answers of all runs of a deck, in one transaction every 25 ms (G87). */
export interface ChunkWriter {
  recorder(session: string, run: string): Recorder;
  /** The failure of a save that nobody waited for: the run that it belongs to must stop (law 11). */
  onFailure(run: string, listener: (error: unknown) => void): () => void;
}

interface Stream {
  readonly session: string;
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
      await store.saveChunks(saved);
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      // What is too large or too deep to be saved is so for an entry, too: whoever settles the answer deals with it.
      await store.saveChunks(
        saved.map((stream) => ({ ...stream, chunks: stream.chunks.filter(isStorable) })),
      );
    }
  };
  const flush = () => {
    planned = false;
    const batch = [...streams].filter(({ waiting }) => waiting.length > 0);
    // All of it may have been settled before its time came.
    if (batch.length === 0) return;
    const saved = batch.map((stream) => ({ session: stream.session, run: stream.run, chunks: take(stream) }));
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
    recorder: (session, run) => {
      const stream: Stream = { session, run, next: 0, waiting: [] };
      return {
        add: (chunk) => {
          if (!isAnswer(chunk)) return;
          streams.add(stream);
          stream.waiting.push(chunk);
          if (!planned) setTimeout(flush, gatherMs);
          planned = true;
        },
        settle: async (drafts, lease) => {
          stream.waiting = [];
          streams.delete(stream);
          // What is being saved must not land after its chunks were dropped.
          await saving;
          return await store.settle(run, drafts, { lease });
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

/** What waits, with neighbouring pieces of one text joined: whoever replays it reads the same text in fewer pieces. */
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
