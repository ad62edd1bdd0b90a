import { basename } from 'node:path';
import { quote } from '@tapedeck/tape/internal';
import { readClaudeCode } from './claude-code.ts';
import { ImportError } from './errors.ts';
import { parseJsonLines, readJsonLines } from './json-lines.ts';
import { isClaudeCode } from './records.ts';
import type { Transcript } from './transcript.ts';

/** A supported transcript format. */
export type TranscriptFormat = 'claude-code';

/**
 * Reads a transcript file as one session, named after the file if no record names one. The caller writes the
 * drafts to a tape. `chunks`: the bytes of a transcript that is no file; `file` is only used in names then.
 * @throws ImportError: IMPORT_CANNOT_READ, IMPORT_EMPTY, IMPORT_BAD_JSON with `line` and byte `offset`, and
 * IMPORT_UNKNOWN_FORMAT when no record has the format
 */
export function readTranscript(
  file: string,
  { format = 'auto', chunks }: { format?: 'auto' | TranscriptFormat; chunks?: Iterable<Uint8Array> } = {},
): Transcript & { readonly format: TranscriptFormat } {
  const lines = chunks === undefined ? readJsonLines(file) : parseJsonLines(chunks, { file });
  if (!lines.records.some(({ value }) => isClaudeCode(value)))
    throw new ImportError(
      'IMPORT_UNKNOWN_FORMAT',
      `cannot import ${quote(file)}: it contains no record of ${format === 'auto' ? 'Claude Code, the one known format' : `format ${format}`}`,
      { data: { file } },
    );
  return { format: 'claude-code', ...readClaudeCode(lines, { name: basename(file, '.jsonl') }) };
}
