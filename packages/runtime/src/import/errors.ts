/** What can go wrong when a transcript is read. Callers branch on the code, never on the message. */
export type ImportErrorCode =
  | 'IMPORT_CANNOT_READ'
  | 'IMPORT_EMPTY'
  | 'IMPORT_BAD_JSON'
  | 'IMPORT_UNKNOWN_FORMAT';

export interface ImportErrorOptions {
  /** Facts for programs: `file`; for `IMPORT_BAD_JSON` also `line` and the byte `offset` in the file. */
  readonly data?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** Says which transcript could not be read, where, and why. */
export class ImportError extends Error {
  override readonly name = 'ImportError';
  readonly code: ImportErrorCode;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: ImportErrorCode, message: string, { data = {}, cause }: ImportErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = data;
  }
}
