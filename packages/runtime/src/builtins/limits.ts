/** What the built-in tools return and touch at most. */
export interface BuiltinLimits {
  /** The most bytes of an output. More is cut, with a note on how to read on. */
  readonly outputBytes: number;
  /** The most bytes of a file that is edited, copied, or searched. */
  readonly fileBytes: number;
  /** How long a command may take that names no time, in milliseconds; one that does may take ten times as long. */
  readonly commandTimeoutMs: number;
  /** How long a search may take, in milliseconds. */
  readonly searchTimeoutMs: number;
}

export const defaultBuiltinLimits: BuiltinLimits = {
  outputBytes: 30_000,
  fileBytes: 32 * 1024 * 1024,
  commandTimeoutMs: 120_000,
  searchTimeoutMs: 20_000,
};
