/** Where the files of a call are, and which of them it may reach: a part of the `context` that tools receive. */
export interface FilePlace {
  /**
   * The directory that relative paths start from: the worktree of the session, or else the directory of the deck. Absent
   * when the directory of the process was deleted.
   */
  readonly directory?: string;
  /**
   * Whether the rules let the call read or write a file, by its real path. A tool asks after it has opened a file, and for
   * files that its arguments do not name. Absent when no rule counts.
   */
  readonly mayReach?: Reach;
}

/** Decides on a file that a running call reaches. */
export type Reach = (kind: 'read' | 'write', path: string) => boolean;

/** The place that a tool is given, whatever else its context has. */
export function placeIn(context: unknown): FilePlace {
  const { directory, mayReach }: FilePlace = typeof context === 'object' && context !== null ? context : {};
  return { ...(directory !== undefined && { directory }), ...(mayReach !== undefined && { mayReach }) };
}
