import { basename } from 'node:path';
import { quote } from '@tapedeck/tape';
import { readClaudeCode } from './claude-code.ts';
import { ImportError } from './errors.ts';
import { readJsonLines } from './json-lines.ts';
import { isClaudeCode } from './records.ts';
import type { Transcript } from './transcript.ts';

/** A transcript format that can be read. */
export type TranscriptFormat = 'claude-code';

/**
 * Reads one transcript file as one session; the file's name is the session when no record names one. Reads only;
 * writing the drafts to a tape is the caller's.
 * @throws ImportError: IMPORT_CANNOT_READ, IMPORT_EMPTY, IMPORT_BAD_JSON with `line` and byte `offset`, and
 * IMPORT_UNKNOWN_FORMAT when no record looks like one of the format's.
 */
export function readTranscript(
  file: string,
  { format = 'auto' }: { format?: 'auto' | TranscriptFormat } = {},
): Transcript & { readonly format: TranscriptFormat } {
  const lines = readJsonLines(file);
  if (!lines.records.some(({ value }) => isClaudeCode(value)))
    throw new ImportError(
      'IMPORT_UNKNOWN_FORMAT',
      `cannot import ${quote(file)}: none of its records is one of ${format === 'auto' ? 'a known format' : format}`,
      { data: { file } },
    );
  return { format: 'claude-code', ...readClaudeCode(lines, { name: basename(file, '.jsonl') }) };
}
