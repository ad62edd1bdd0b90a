import type { FilePlace } from '../tools/file-place.ts';
import type { Session } from './session.ts';

/** Where a tool runs: passed to it as the `context` of its options. */
export interface ToolContext extends FilePlace {
  /** The session whose model called the tool. */
  readonly session: Session;
  readonly run: string;
  /** The directory of the session's worktree, if it has one. */
  readonly workspace?: string;
}
