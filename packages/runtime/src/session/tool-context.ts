import type { Session } from './session.ts';

/** What a tool is told of where it runs, as the `context` of its options. */
export interface ToolContext {
  /** The session whose model called it. */
  readonly session: Session;
  readonly run: string;
  /** The directory of the session's worktree, if it has one of its own. */
  readonly workspace?: string;
}
