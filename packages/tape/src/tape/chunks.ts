import { encodeJson, type Json } from '../entry/json.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { Ref, TapeRow } from './tape.ts';

/** A chunk of a live answer, in the order it arrived. */
export interface StreamChunk {
  readonly index: number;
  readonly chunk: Json;
}

/** Chunks of one run's live answer that have landed. */
export interface LiveStream {
  readonly session: Ref;
  readonly run: string;
  readonly chunks: readonly StreamChunk[];
}

/** Saves chunks of a run's live answer, in the caller's transaction; one that is there already stays as it is. */
export function saveChunks(db: Db, tape: TapeRow, { run, chunks }: LiveStream): void {
  for (const { index, chunk } of chunks)
    db.run(
      'INSERT INTO stream_chunk (tape_id, run, idx, chunk) VALUES (@tape, @run, @index, @chunk) ON CONFLICT DO NOTHING',
      { tape: tape.id, run, index, chunk: encodeJson(chunk, 'a chunk') },
    );
}

/** The chunks of a run that are saved, from an index on, in order. */
export function savedChunks(db: Db, tape: TapeRow, run: string, from: number): StreamChunk[] {
  return db
    .all<{ idx: number; chunk: string }>(
      'SELECT idx, chunk FROM stream_chunk WHERE tape_id = @tape AND run = @run AND idx >= @from ORDER BY idx',
      { tape: tape.id, run, from },
    )
    .map(({ idx, chunk }) => ({ index: idx, chunk: JSON.parse(chunk) as Json }));
}

/** The runs of a session whose answer is under way, or was when their process died. */
export function liveRuns(db: Db, tape: TapeRow): string[] {
  return db
    .all<{ run: string }>('SELECT DISTINCT run FROM stream_chunk WHERE tape_id = @tape', { tape: tape.id })
    .map(({ run }) => run);
}

/** Forgets the chunks of a run: what they came to is on the tape. */
export function dropChunks(db: Db, tape: TapeRow, run: string): void {
  db.run('DELETE FROM stream_chunk WHERE tape_id = @tape AND run = @run', { tape: tape.id, run });
}
