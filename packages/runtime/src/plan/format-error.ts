import { quote } from '@tapedeck/tape/internal';
import { messageOf } from '../errors.ts';
import { ImportError } from '../lines/errors.ts';
import type { TranscriptTool } from './format.ts';

/** What a format threw, as an error of the file that it was given. What is wrong with the file itself stays as it is. */
export function formatError(
  cause: unknown,
  {
    tool: { name },
    file,
    ...about
  }: {
    readonly tool: Pick<TranscriptTool, 'name'>;
    readonly file: string;
    /** Further facts for programs. */
    readonly [fact: string]: unknown;
  },
): ImportError {
  if (cause instanceof ImportError) return cause;
  const why = `the format ${quote(name)} failed: ${messageOf(cause)}`;
  return new ImportError('IMPORT_FORMAT_FAILED', `cannot import ${quote(file)}: ${why}`, {
    data: { file, tool: name, why, ...about },
    cause,
  });
}
