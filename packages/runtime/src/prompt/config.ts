/**
 * The parts of the system prompt besides the deck's own instructions. A part is included only if the
 * configuration enables it.
 */
export interface PromptConfig {
  /**
   * The project's instructions: `AGENTS.md`, `CLAUDE.md` and `CONTEXT.md` of the working directory of the
   * session and of the directories above it, or of a named directory.
   */
  readonly project?: boolean | string;
  /**
   * Folders that are skills or contain skills. The prompt lists their names; the tool `read_skill` reads
   * them.
   */
  readonly skills?: readonly string[];
  /** Platform, directory, git branch, date and model, as of the start of the session's view. */
  readonly environment?: boolean;
  /** The tools in words, for models that do not receive tool definitions. */
  readonly tools?: boolean;
}
