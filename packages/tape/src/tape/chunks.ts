import { encodeJson, type Json } from '../entry/json.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { Ref, TapeRow } from './tape.ts';

/** A chunk of a live answer, in order of arrival. */
export interface StreamChunk {
  readonly index: number;
  readonly chunk: Json;
}

/** Chunks to save of one run's live answer. */
export interface LiveStream {
  readonly session: Ref;
  readonly run: string;
  readonly chunks: readonly StreamChunk[];
}

/**
 * Saves chunks of a run's live answer, in the caller's transaction. Chunks that are already saved do not
 * change.
 */
export function saveChunks(db: Db, tape: TapeRow, { run, chunks }: LiveStream): void {
  for (const { index, chunk } of chunks)
    db.run(
      'INSERT INTO stream_chunk (tape_id, run, idx, chunk) VALUES (@tape, @run, @index, @chunk) ON CONFLICT DO NOTHING',
      { tape: tape.id, run, index, chunk: encodeJson(chunk, 'a chunk') },
    );
}

/** Returns the saved chunks of a run in order, from an index on. */
export function savedChunks(db: Db, tape: TapeRow, run: string, from: number): StreamChunk[] {
  return db
    .all<{ idx: number; chunk: string }>(
      'SELECT idx, chunk FROM stream_chunk WHERE tape_id = @tape AND run = @run AND idx >= @from ORDER BY idx',
      { tape: tape.id, run, from },
    )
    .map(({ idx, chunk }) => ({ index: idx, chunk: JSON.parse(chunk) as Json }));
}

/** Returns the runs of a session whose answer is live, or was when their process died. */
export function liveRuns(db: Db, tape: TapeRow): string[] {
  return db
    .all<{ run: string }>('SELECT DISTINCT run FROM stream_chunk WHERE tape_id = @tape', { tape: tape.id })
    .map(({ run }) => run);
}

/** Deletes the chunks of a run, once its answer is on the tape. */
export function dropChunks(db: Db, tape: TapeRow, run: string): void {
  db.run('DELETE FROM stream_chunk WHERE tape_id = @tape AND run = @run', { tape: tape.id, run });
}
