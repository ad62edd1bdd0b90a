import { CodedError } from '@tapedeck/tape/errors';

/** Error codes of graph files. Callers branch on the code, never on the message. */
export type GraphErrorCode =
  /**
   * The path exists but cannot be read as a file: a directory, a symbolic link, no permission, a failing
   * disk.
   */
  | 'GRAPH_UNREADABLE'
  /** The journal could not open, read or write its file; no line of the call counts as written. */
  | 'GRAPH_IO'
  /** The reference matches no session of the graph, or more than one. */
  | 'GRAPH_NO_SESSION';

/**
 * An error of a graph file or of a query of a graph. `code` says which.
 *
 * @example
 * ```ts
 * import { drawTree, GraphError, SessionGraph } from '@tapedeck/graph';
 *
 * try {
 *   drawTree(SessionGraph.fromRecords([]), 'main');
 * } catch (error) {
 *   if (!(error instanceof GraphError)) throw error;
 *   console.log(error.code); // GRAPH_NO_SESSION
 * }
 * ```
 */
export class GraphError extends CodedError<GraphErrorCode> {
  override readonly name = 'GraphError';
}

/** The code of a failed system call, such as `ENOENT`; undefined for other errors. */
export function systemCode(cause: unknown): string | undefined {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined;
}

/** The reason of a failed system call, for a message. */
export function reason(cause: unknown): string {
  const code = systemCode(cause);
  if (code === 'ELOOP') return 'it is a symbolic link';
  if (code === 'EISDIR') return 'it is a directory';
  return cause instanceof Error ? cause.message : String(cause);
}
