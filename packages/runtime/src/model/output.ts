import type { Json, JsonObject } from '@tapedeck/tape';
import type { OutputInterface } from 'ai';
import { SessionError } from '../errors.ts';

/** What the AI SDK passes to a parser beside the text: facts of the call, for its errors. */
type ParseContext = Parameters<OutputInterface['parseCompleteOutput']>[1];

/**
 * Schema of a result: an AI SDK `Output.object({ schema })`, or any object with the same `responseFormat`. The type
 * of the result is that of the schema.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 * import { Output } from 'ai';
 * import { z } from 'zod';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * const output = Output.object({ schema: z.object({ passed: z.number() }) });
 * const [tests] = await main.delegate({ task: 'Check the tests as JSON.', output });
 * console.log(tests.output?.passed); // 12
 * ```
 */
export interface OutputSpec<T = Json> {
  readonly responseFormat: PromiseLike<{ readonly type: string; readonly schema?: unknown } | undefined>;
  /** Checks a result and makes the value of it. Without it, the value is the JSON that the tape has. */
  parseCompleteOutput?(options: { readonly text: string }, context: ParseContext): PromiseLike<T>;
}

/** @throws SESSION_BAD_INPUT when the output has no JSON Schema */
export async function outputSchema(output: OutputSpec<unknown>): Promise<JsonObject> {
  const format = await output.responseFormat;
  if (format?.type === 'json' && format.schema !== undefined) return format.schema as JsonObject;
  throw new SessionError('SESSION_BAD_INPUT', 'cannot request this output: it has no JSON Schema', {});
}

const noTokens = undefined;

/** The parser wants the facts of a call; the result can be of an earlier one. */
const context: ParseContext = {
  response: { id: '', timestamp: new Date(0), modelId: '' },
  usage: {
    inputTokens: noTokens,
    inputTokenDetails: { noCacheTokens: noTokens, cacheReadTokens: noTokens, cacheWriteTokens: noTokens },
    outputTokens: noTokens,
    outputTokenDetails: { textTokens: noTokens, reasoningTokens: noTokens },
    totalTokens: noTokens,
  },
  finishReason: 'stop',
};

/**
 * The value of a recorded result, as its schema makes it.
 * @throws the error of the schema, when it refuses the result
 */
export async function outputOf<T>(output: OutputSpec<T> | undefined, recorded: Json): Promise<T> {
  const parsed = output?.parseCompleteOutput?.({ text: JSON.stringify(recorded) }, context);
  // Without a parser, `T` is `Json`.
  return parsed === undefined ? (recorded as T) : await parsed;
}
