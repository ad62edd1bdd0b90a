/**
 * Thrown by a tool that delegates, when a child waits for an answer: the call stays open, and runs again when its session
 * continues. Only a tool that is safe to repeat can wait in this way.
 */
export class ChildrenWait extends Error {
  override readonly name = 'ChildrenWait';

  /** @param sessions the names of the children that wait */
  constructor(sessions: readonly string[]) {
    super(`waits for the children ${sessions.join(', ')}, which wait for answers`);
  }
}
