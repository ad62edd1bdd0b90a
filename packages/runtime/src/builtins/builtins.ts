/**
 * The built-in tools of an agent: one file for each. `define.ts` makes a tool of the AI SDK, `errors.ts` has their
 * failures and `limits.ts` what they return at most. Files are reached by descriptor: `held-directory.ts` holds the
 * directory of a path open and decides again where it is, `open-file.ts` opens what is a regular file there, and
 * `replace-file.ts` puts a new file in its place. A search walks (`walk.ts`, `ignored.ts`) and matches (`matcher.ts`); a
 * command is `group-command.ts`, and `output-window.ts` keeps the beginning and the end of what it prints.
 * Imports `permissions`, `tools`, `process-group` and `errors`.
 */
import type { RuleTexts } from '../permissions/rule.ts';
import type { DeckTool, DeckTools } from '../tools/traits.ts';
import { copyFileTool } from './copy-file.ts';
import { editFileTool } from './edit-file.ts';
import { type BuiltinLimits, defaultBuiltinLimits } from './limits.ts';
import { listDirectoryTool } from './list-directory.ts';
import { readFileTool } from './read-file.ts';
import { runCommandTool } from './run-command.ts';
import { searchFilesTool } from './search-files.ts';
import { writeFileTool } from './write-file.ts';

/** The name of a built-in tool. */
export type BuiltinName =
  | 'read_file'
  | 'write_file'
  | 'edit_file'
  | 'copy_file'
  | 'list_directory'
  | 'search_files'
  | 'run_command';

/** Makes each tool. */
const makers: Readonly<Record<BuiltinName, (options: BuiltinOptions & BuiltinLimits) => DeckTool>> = {
  read_file: readFileTool,
  write_file: writeFileTool,
  edit_file: editFileTool,
  copy_file: copyFileTool,
  list_directory: listDirectoryTool,
  search_files: searchFilesTool,
  run_command: runCommandTool,
};

/** The names of the built-in tools. */
export const builtinNames: readonly BuiltinName[] = Object.keys(makers) as readonly BuiltinName[];

/** Which built-in tools, and how. */
export interface BuiltinOptions extends Partial<BuiltinLimits> {
  /** The tools (default: all). */
  readonly only?: readonly BuiltinName[];
  /** The rules that count where neither the deck nor its home has any (default `sandboxed`). */
  readonly rules?: RuleTexts;
  /** The environment of commands. Default: that of the process, without the variables that have secrets. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * The built-in tools by name: files, search and commands, from the workspace of the session. In a deck without rules
 * those of `sandboxed` count, with which no command runs.
 *
 * @example
 * ```ts
 * import { builtins, openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * const store = openTapeStore(':memory:');
 * await using deck = await openDeck({ store, model: 'script:answers.json', tools: builtins() });
 * const main = await deck.session('main');
 * const { verdict } = await main.permits({ tool: 'write_file', input: { path: '/etc/hosts', text: '' } });
 * console.log(verdict); // deny
 * ```
 */
export function builtins({
  only = builtinNames,
  rules = 'sandboxed',
  ...options
}: BuiltinOptions = {}): DeckTools {
  const all = { ...defaultBuiltinLimits, ...options };
  return Object.fromEntries(only.map((name) => [name, { ...makers[name](all), rules }]));
}
