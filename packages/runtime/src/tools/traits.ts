import { isObject, type Json } from '@tapedeck/tape';
import type { ToolSet } from 'ai';
import type { CallName } from '../stream/call.ts';

/** The names of a tool's arguments that hold paths (X57): each argument is a path or a list of paths. */
export interface ToolPaths {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
  /** The argument that stands for the call where it is shown to people. */
  readonly display?: string;
}

/** What a tool may say of itself beside what the AI SDK asks for. */
export interface ToolTraits {
  readonly paths?: ToolPaths;
  /** Running a call twice does no harm: one that a crash cut off is run again instead of being given up (R10). */
  readonly safeToRepeat?: boolean;
  /** How long a call may take, in milliseconds, instead of the deck's limit (X49, X61). */
  readonly timeoutMs?: number;
}

/** An AI SDK tool; one without `execute` is answered by a client. */
export type DeckTool = ToolSet[string] & ToolTraits;

/** Tools by name. Any AI SDK `ToolSet` is one. */
export type DeckTools = Readonly<Record<string, DeckTool>>;

/** The tool of a name, if there is one: a name such as `constructor` is none. */
export function toolOf(tools: DeckTools, name: string): DeckTool | undefined {
  return Object.hasOwn(tools, name) ? tools[name] : undefined;
}

/** A call as events name it: with what stands for it where it is shown, if its tool says which argument does. */
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

/** The paths that a call reads and writes, as its tool declares them; nothing for a tool that declares none. */
export function pathsOf(
  { paths }: ToolTraits,
  input: unknown,
): { readonly read: readonly string[]; readonly write: readonly string[] } | undefined {
  if (paths === undefined) return undefined;
  const values = (names: readonly string[] = []): string[] =>
    names
      .map((name) => (input as Readonly<Record<string, Json>> | null)?.[name])
      .flatMap((value) => (Array.isArray(value) ? value : [value]))
      .filter((value) => typeof value === 'string');
  return { read: values(paths.read), write: values(paths.write) };
}
