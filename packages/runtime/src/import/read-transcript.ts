import { statSync } from 'node:fs';
import { basename } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import type { OnProgress } from '@tapedeck/tape/store';
import { readClaudeCode } from './claude-code/read-file.ts';
import { isClaudeCode } from './claude-code/records.ts';
import { ImportError } from './errors.ts';
import { chunksOf, parseJsonLines } from './json-lines.ts';
import { readNexus3 } from './nexus3.ts';
import { isSavedSession, readSavedSession } from './saved-session.ts';
import { isSessionRecord, readSessionJsonl } from './session-jsonl.ts';
import type { Transcript } from './transcript.ts';

/** A supported transcript format. */
export type TranscriptFormat = 'claude-code' | 'nexus3' | 'session-jsonl';

/** How to read a transcript. */
export interface ReadOptions {
  /** Default: that of the content. */
  readonly format?: 'auto' | TranscriptFormat;
  /** The bytes of a transcript that is no file. */
  readonly chunks?: Iterable<Uint8Array>;
  /** Receives how many bytes were read. */
  readonly onProgress?: OnProgress;
}

/**
 * Reads a transcript file as one session, named after the file if it names none. The caller writes the
 * drafts to a tape. With `chunks`, `file` is only used in names.
 * @throws ImportError: IMPORT_CANNOT_READ, IMPORT_EMPTY, IMPORT_BAD_JSON with `line` and byte `offset` (see `parseJsonLines`), and
 * IMPORT_UNKNOWN_FORMAT when the file does not have the format
 */
export function readTranscript(
  file: string,
  { format = 'auto', chunks, onProgress }: ReadOptions = {},
): Transcript & { readonly format: TranscriptFormat } {
  const all = chunks === undefined ? undefined : [...chunks];
  const bytes = () => all ?? chunksOf(file);
  const shown = () => (onProgress === undefined ? bytes() : counted(bytes(), sizeOf(file, all), onProgress));
  if (format === 'nexus3' || (format === 'auto' && isSaved(bytes())))
    return {
      format: 'nexus3',
      ...readNexus3(readSavedSession(shown(), file), { name: basename(file, '.json') }),
    };
  const lines = parseJsonLines(shown(), { file });
  const has = (test: (value: JsonObject) => boolean) => lines.records.some(({ value }) => test(value));
  if (format !== 'claude-code' && has(isSessionRecord))
    return { format: 'session-jsonl', ...readSessionJsonl(lines, { file }) };
  if (format === 'session-jsonl' || !has(isClaudeCode))
    throw new ImportError(
      'IMPORT_UNKNOWN_FORMAT',
      `cannot import ${quote(file)}: it contains no record of ${format === 'auto' ? 'Claude Code or of a session.jsonl, and is no saved session of NEXUS3' : `format ${format}`}`,
      { data: { file } },
    );
  return { format: 'claude-code', ...readClaudeCode(lines, { name: basename(file, '.jsonl') }) };
}

/** Whether a file begins as a saved session. */
function isSaved(chunks: Iterable<Uint8Array>): boolean {
  for (const chunk of chunks) return isSavedSession(chunk);
  return false;
}

function sizeOf(file: string, chunks: readonly Uint8Array[] | undefined): number {
  if (chunks !== undefined) return chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** Chunks, with a report of each that was taken. */
function* counted(
  chunks: Iterable<Uint8Array>,
  total: number,
  onProgress: OnProgress,
): Generator<Uint8Array> {
  let done = 0;
  for (const chunk of chunks) {
    yield chunk;
    done += chunk.byteLength;
    onProgress({ done: Math.min(done, total), total });
  }
}
