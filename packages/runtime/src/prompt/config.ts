/** What instructions hold beside the deck's own. What is not asked for is not there. */
export interface PromptConfig {
  /**
   * The project's: `AGENTS.md`, `CLAUDE.md` and `CONTEXT.md` of the directory that sessions work in and of those above it, or
   * of another directory that is named.
   */
  readonly project?: boolean | string;
  /** Folders that are skills, or have some in them: their names are told, and the tool `read_skill` reads them. */
  readonly skills?: readonly string[];
  /** Platform, directory, git branch, date and model, as they were when the session's view began. */
  readonly environment?: boolean;
  /** The tools, in words: for models that are not told of them otherwise. */
  readonly tools?: boolean;
}
