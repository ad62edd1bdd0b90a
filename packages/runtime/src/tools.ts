import { type Draft, type Json, toolResult } from '@tapedeck/tape';
import { messageOf } from './errors.ts';
import type { AskedCall, ModelMessage, ToolSet } from './model.ts';

/** What running a call came to: the entry to append, and what to tell those who watch. */
export interface Executed {
  readonly draft: Draft;
  readonly success: boolean;
  readonly output: Json;
}

/**
 * Runs one tool call. A tool that throws, does not exist or was asked with arguments that do not fit gives an error
 * result, never an exception: the model is told, and the run goes on.
 */
export async function executeCall(
  tools: ToolSet,
  call: AskedCall,
  { messages, signal }: { messages: readonly ModelMessage[]; signal: AbortSignal },
): Promise<Executed> {
  const tool = Object.hasOwn(tools, call.toolName) ? tools[call.toolName] : undefined;
  if (tool === undefined) return failed(call, `Unknown tool '${call.toolName}': there is no such tool here.`);
  if (call.invalid !== undefined) return failed(call, call.invalid);
  if (tool.execute === undefined) return failed(call, `Tool '${call.toolName}' cannot be run here.`);
  try {
    const { toolCallId, input } = call;
    const output = await lastOf(
      tool.execute(input, { toolCallId, messages: [...messages], abortSignal: signal, context: {} }),
    );
    const typed = await tool.toModelOutput?.({ toolCallId, input, output });
    const json = (output ?? null) as Json;
    return { draft: toolResult(call, (typed ?? json) as Json), success: true, output: json };
  } catch (error) {
    return failed(call, messageOf(error));
  }
}

/** The result of a call that was not run: pairs stay complete (X62, K26). */
export function skipped(call: AskedCall, why: string): Executed {
  return failed(call, `Not run: ${why}.`);
}

/** The result of a call that was run, and whose own result cannot be recorded. */
export function unstorable(call: AskedCall, why: string): Executed {
  return failed(call, `The tool ran, and its result was lost: ${why}.`);
}

function failed(call: AskedCall, why: string): Executed {
  return { draft: toolResult(call, { type: 'error-text', value: why }), success: false, output: why };
}

/** A tool may yield preliminary results; the last one counts. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output)) return await output;
  let last: unknown;
  for await (const value of output as AsyncIterable<unknown>) last = value;
  return last;
}
