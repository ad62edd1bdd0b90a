import type { Db } from '../db/db.ts';
import { encodeJson, type Json } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
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
  /** The epoch of the lease under which the run writes: once another owner has the session, nothing is saved. */
  readonly epoch?: number;
}

/** The saved chunks of one run, in order. */
export interface LiveRun {
  readonly run: string;
  readonly chunks: readonly StreamChunk[];
}

/** The tape of a live answer. */
type OfTape = Pick<TapeRow, 'id' | 'name'>;

/** Selects runs of a session, and their chunks. */
export interface LiveQuery {
  /** Only this run. */
  readonly run?: string;
  /** Index of the first chunk of each run (default 0). A run without later chunks has an empty list. */
  readonly from?: number | Readonly<Record<string, number>>;
}

/**
 * Saves chunks of a run's live answer, in the caller's transaction. Chunks that are already saved do not
 * change.
 */
export function saveChunks(
  db: Db,
  tape: OfTape & Pick<TapeRow, 'epoch'>,
  { run, chunks, epoch }: LiveStream,
): void {
  if (epoch !== undefined && epoch !== tape.epoch) return;
  for (const { index, chunk } of chunks)
    db.run(
      'INSERT INTO stream_chunk (tape_id, run, idx, chunk) VALUES (@tape, @run, @index, @chunk) ON CONFLICT DO NOTHING',
      { tape: tape.id, run, index, chunk: encodeJson(chunk, 'a chunk') },
    );
}

/**
 * Returns the runs of a session that have saved chunks, and the chunks: the run is live, or its process died.
 */
export function liveRuns(db: Db, tape: OfTape, { run: only, from = 0 }: LiveQuery = {}): LiveRun[] {
  const one = only === undefined ? '' : 'AND run = @only';
  return db
    .all<{ run: string }>(`SELECT DISTINCT run FROM stream_chunk WHERE tape_id = @tape ${one}`, {
      tape: tape.id,
      ...(only !== undefined && { only }),
    })
    .map(({ run }) => ({
      run,
      chunks: savedChunks(db, tape, run, typeof from === 'number' ? from : (from[run] ?? 0)),
    }));
}

function savedChunks(db: Db, tape: OfTape, run: string, from: number): StreamChunk[] {
  return db
    .all<{ idx: number; chunk: string }>(
      'SELECT idx, chunk FROM stream_chunk WHERE tape_id = @tape AND run = @run AND idx >= @from ORDER BY idx',
      { tape: tape.id, run, from },
    )
    .map(({ idx, chunk }) => ({ index: idx, chunk: parsedChunk(tape, run, { idx, chunk }) }));
}

function parsedChunk(
  { name }: OfTape,
  run: string,
  { idx, chunk }: { readonly idx: number; readonly chunk: string },
): Json {
  try {
    return JSON.parse(chunk) as Json;
  } catch (cause) {
    throw new TapeError(
      'TAPE_CORRUPT',
      `cannot read piece ${idx} of run ${run} of '${name}': it is not JSON`,
      {
        data: { session: name },
        cause,
      },
    );
  }
}

/** Deletes the chunks of a run, once its answer is on the tape. */
export function dropChunks(db: Db, tape: OfTape, run: string): void {
  db.run('DELETE FROM stream_chunk WHERE tape_id = @tape AND run = @run', { tape: tape.id, run });
}
