import type { Compression, FileFacts, ReadState } from '../lines/index.ts';
import type { Role } from '../plan/format.ts';

/**
 * A file in which a session was seen, and how far it was read. It is no truth: without it the file is read from its
 * beginning again, and brings nothing that its tape has.
 */
export interface Source extends FileFacts {
  readonly path: string;
  readonly compression?: Compression;
  readonly tool: string;
  /** The tool's own id of what the file holds: what a session is, wherever its file lies. */
  readonly session: string;
  /** The main session of its conversation. */
  readonly main: string;
  readonly role: Role;
  /** The working directory that its first records name. */
  readonly project?: string;
  /** The time of its first record that has one. */
  readonly first?: string;
  readonly read: ReadState;
  /** When it was last read, in milliseconds since 1970; 0 for what an export wrote, and no import has read. */
  readonly at: number;
  /** Whether its session has more than the file had: what is there later does not follow that. */
  readonly isBehind?: true;
  /**
   * The sessions of the file, where one that was deleted here took nothing of what was read: the file is read again when that is
   * brought back, even if it has not changed. Empty where that cannot be known.
   */
  readonly lacks?: readonly SessionOfFile[];
  /** Since when the file is not there; what it held stays. */
  readonly goneAt?: number;
  /** Since when its conversation is not to be taken, wherever it is seen. */
  readonly forgottenAt?: number;
}

/** A session that a file has. */
export interface SessionOfFile {
  readonly conversation: string;
  readonly session: string;
  /** The deleted session for which it takes nothing: itself, or one of which it is part. */
  readonly deleted?: { readonly session: string; readonly id: string };
}
