import { CodedError } from '@tapedeck/tape/errors';

/** Codes of errors when a transcript is read. Callers branch on the code, never on the message. */
export type ImportErrorCode =
  | 'IMPORT_CANNOT_READ'
  | 'IMPORT_EMPTY'
  | 'IMPORT_BAD_JSON'
  | 'IMPORT_UNKNOWN_FORMAT'
  | 'IMPORT_TOO_LARGE'
  | 'IMPORT_SOURCE_CHANGED'
  | 'IMPORT_FORMAT_FAILED'
  | 'IMPORT_CANNOT_WRITE'
  | 'IMPORT_EXCLUDED'
  | 'IMPORT_FORGOTTEN';

/**
 * `data` contains `file`; for `IMPORT_BAD_JSON` also `line` and the byte `offset` in the file; for `IMPORT_FORGOTTEN` the
 * `session` in the place of the file, where a tape says it. `cause` of an `IMPORT_FORMAT_FAILED` is what the format threw.
 */
export class ImportError extends CodedError<ImportErrorCode> {
  override readonly name = 'ImportError';
}
