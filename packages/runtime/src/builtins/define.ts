import type { JsonObject } from '@tapedeck/tape';
import { type FilePlace, placeIn } from '../tools/file-place.ts';
import { jsonInput } from '../tools/json-input.ts';
import type { DeckTool, ToolTraits } from '../tools/traits.ts';

/** What a call of a built-in tool runs with. */
interface CallPlace {
  readonly place: FilePlace;
  readonly signal: AbortSignal;
}

/** A built-in tool: its properties are all arguments, and `required` are those that each call has. */
export interface BuiltinDefinition<I> extends ToolTraits {
  readonly description: string;
  readonly properties: JsonObject;
  readonly required: readonly (keyof I & string)[];
  readonly execute: (input: I, call: CallPlace) => Promise<unknown>;
}

/** Makes a tool of the AI SDK without loading it. */
export function defineBuiltin<I>({
  properties,
  required,
  execute,
  ...definition
}: BuiltinDefinition<I>): DeckTool {
  return {
    ...definition,
    inputSchema: jsonInput<I>({
      type: 'object',
      properties,
      required: [...required],
      additionalProperties: false,
    }),
    execute: async (
      input: I,
      { context, abortSignal }: { readonly context?: unknown; readonly abortSignal?: AbortSignal } = {},
    ) =>
      await execute(input, { place: placeIn(context), signal: abortSignal ?? new AbortController().signal }),
  } as unknown as DeckTool;
}

/** The argument with the path of a file. */
export const pathArgument = (what: string): JsonObject => ({
  type: 'string',
  minLength: 1,
  description: `${what}, from the workspace`,
});

/** An argument with a whole number from 1. */
export const countArgument = (description: string): JsonObject => ({
  type: 'integer',
  minimum: 1,
  description,
});
