import { isAbsolute, normalize, relative } from 'node:path';
import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { ToolSet } from 'ai';
import type { CallName, OpenCall } from '../stream/call.ts';

/** The names of a tool's path arguments; each value is a path or a list of paths. */
export interface ToolPaths {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
  /** The argument that represents the call in events and user interfaces. */
  readonly display?: string;
}

/**
 * Properties of a tool in addition to those of the AI SDK. What it says that it touches (`paths`, `command`, `target`)
 * counts for rules. One that says nothing may touch anything.
 */
export interface ToolTraits {
  /** Its path arguments, for rules and for the conflicts of merges; `{}`: it touches no files. */
  readonly paths?: ToolPaths;
  /** The argument with a command: a text, or a list of words. Or several arguments: a program, and its words. */
  readonly command?: string | readonly string[];
  /** The argument that names a session that it sends to; `manager` is the parent. */
  readonly target?: string;
  /** True if running a call twice is harmless: a call that a crash interrupted then runs again. */
  readonly safeToRepeat?: boolean;
  /** Rules that count in a deck that has none, neither its own nor those of its home. */
  readonly rules?: string | readonly string[];
  /** Timeout of a call in milliseconds, instead of the deck's limit. */
  readonly timeoutMs?: number;
}

/** An AI SDK tool. A client answers the calls of one without `execute`. */
export type DeckTool = ToolSet[string] & ToolTraits;

/** Tools by name. Any AI SDK `ToolSet` is one. */
export type DeckTools = Readonly<Record<string, DeckTool>>;

/** The tool of a name. Inherited properties, such as `constructor`, do not count. */
export function toolOf(tools: DeckTools, name: string): DeckTool | undefined {
  return Object.hasOwn(tools, name) ? tools[name] : undefined;
}

/** Whether a call that a crash cut off runs again: its tool is safe to repeat, and the call was made here. */
export function isRepeatable(
  tools: DeckTools,
  { toolName, elsewhere }: Pick<OpenCall, 'toolName' | 'elsewhere'>,
): boolean {
  return elsewhere !== true && toolOf(tools, toolName)?.safeToRepeat === true;
}

/** A call as it appears in events, with its `display` argument, if the tool declares one. */
export function nameOf(
  tools: DeckTools,
  {
    toolCallId,
    toolName,
    input,
  }: { readonly toolCallId: string; readonly toolName: string; readonly input: Json },
): CallName {
  const argument = toolOf(tools, toolName)?.paths?.display;
  const shown = argument !== undefined && isObject(input) ? input[argument] : undefined;
  return { toolCallId, name: toolName, ...(typeof shown === 'string' && { display: shown }) };
}

/**
 * The paths that a call reads and writes, those below the directory of the session as they are from there, so that two
 * spellings of one path are one file to a merge. Undefined for a tool that declares no path arguments.
 */
export function pathsOf(
  { paths }: ToolTraits,
  input: unknown,
  directory?: string,
): { readonly read: readonly string[]; readonly write: readonly string[] } | undefined {
  if (paths === undefined) return undefined;
  const values = (names: readonly string[] = []): string[] =>
    names
      .map((name) => (input as Readonly<Record<string, Json>> | null)?.[name])
      .flatMap((value) => (Array.isArray(value) ? value : [value]))
      .filter((value) => typeof value === 'string')
      .map((path) => fromDirectory(path, directory));
  return { read: values(paths.read), write: values(paths.write) };
}

/** A path in its shortest form, from the directory where it leads below that. Pure: follows no links. */
function fromDirectory(path: string, directory: string | undefined): string {
  const normal = normalize(path).replace(/(?<=[^/])\/+$/, '');
  if (directory === undefined || !isAbsolute(normal)) return normal;
  const below = relative(directory, normal);
  return below === '..' || below.startsWith('../') ? normal : below === '' ? '.' : below;
}
