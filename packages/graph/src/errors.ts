import { CodedError } from '@tapedeck/tape/errors';

/** What can go wrong with a graph file. Callers branch on the code, never on the message. */
export type GraphErrorCode =
  /** The file is there but cannot be read as one: a directory, a symbolic link, no permission, a failing disk. */
  | 'GRAPH_UNREADABLE'
  /** The journal could not open, read or write its file; nothing may be taken for written. */
  | 'GRAPH_IO'
  /** No session of the graph answers to the reference, or more than one does. */
  | 'GRAPH_NO_SESSION';

export class GraphError extends CodedError<GraphErrorCode> {
  override readonly name = 'GraphError';
}

/** The code of a failed system call, as `ENOENT`. */
export function systemCode(cause: unknown): string | undefined {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined;
}

/** Why a system call failed, in a few words. */
export function reason(cause: unknown): string {
  const code = systemCode(cause);
  if (code === 'ELOOP') return 'it is a symbolic link';
  if (code === 'EISDIR') return 'it is a directory';
  return cause instanceof Error ? cause.message : String(cause);
}
