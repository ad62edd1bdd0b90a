/**
 * Tool calls. `traits.ts` is what a tool declares, `schema.ts` its definition for the model and the check of its
 * arguments, `execute.ts` runs one call within its time, `tilde.ts` shortens paths in its error, `open-batch.ts` finds the calls without a result and what each
 * waits for, `interrupted.ts` tells whether a process died during a run, and `orphans.ts` closes what it left.
 * Imports `model`, `lease`, `stream` and `errors`.
 */
import { setImmediate } from 'node:timers/promises';
import { type Draft, type Json, type JsonObject, toolResult } from '@tapedeck/tape';
import { isOfDatabase, messageOf } from '../errors.ts';
import type { ModelMessage } from '../model/model.ts';
import type { OpenCall } from '../stream/call.ts';
import { ChildrenWait } from './children-wait.ts';
import { placeIn } from './file-place.ts';
import { parseArguments } from './schema.ts';
import { withTilde } from './tilde.ts';
import { type DeckTool, type DeckTools, isRepeatable, pathsOf, toolOf } from './traits.ts';
import { type Patience, within } from './within.ts';

/** The outcome of a call: the entry to append, and the output to publish. */
export interface Executed {
  readonly draft: Draft;
  readonly success: boolean;
  readonly output: Json;
}

/** What calls run with. */
export interface CallSettings {
  readonly tools: DeckTools;
  readonly messages: readonly ModelMessage[];
  /** The `context` that tools receive in their options. */
  readonly context: object;
  /** Whether the run is done again when the database stops it. */
  readonly isDoneAgain: boolean;
  /** Whether a tool is offered but not allowed in this session. */
  readonly forbidden: (name: string) => boolean;
  /** How long to wait for a call; a tool can set its own timeout. */
  readonly patience: Patience;
  /** Called with the values that a tool yields before its last one. */
  readonly onPreliminary: (call: OpenCall, output: Json) => void;
}

/** Why a call cannot run, whatever its approval; the text of its error result. */
export function refusalOf(
  { tools, forbidden }: Pick<CallSettings, 'tools' | 'forbidden'>,
  call: OpenCall,
): string | undefined {
  if (forbidden(call.toolName)) return `Tool '${call.toolName}' may not be used in this session.`;
  if (toolOf(tools, call.toolName) === undefined) return `Unknown tool '${call.toolName}'.`;
  return call.invalid;
}

/**
 * Runs one tool call. An unknown tool, invalid arguments, a timeout or an exception give an error result, and
 * the run continues. Returns `undefined` when the run was aborted before the call ended, and `children` when children of
 * the call wait for answers: the call stays open.
 */
export async function executeCall(
  call: OpenCall,
  settings: CallSettings,
): Promise<Executed | 'children' | undefined> {
  const { tools, patience } = settings;
  const { signal } = patience;
  const tool = toolOf(tools, call.toolName);
  const refusal = refusalOf(settings, call);
  if (tool === undefined || refusal !== undefined) return failed(call, refusal ?? '', noPaths);
  const timeoutMs = tool.timeoutMs ?? patience.timeoutMs;
  const own = { ...patience, timeoutMs };
  const checked = await within(parseArguments(tool, call.input), own);
  if (checked === 'aborted') return undefined;
  if (checked === 'timeout')
    return failed(call, `Checking the arguments took longer than ${timeoutMs} ms.`, noPaths);
  if ('fault' in checked) return failed(call, checked.fault, noPaths);
  const paths = pathsOf(tool, checked.value, placeIn(settings.context).directory);
  const abandoned = new AbortController();
  const work = outcomeOf(tool, call, { input: checked.value, abandoned: abandoned.signal, settings });
  const outcome = await within(work, own);
  if (outcome === 'aborted') {
    abandoned.abort(signal.reason);
    return undefined;
  }
  if (outcome === 'timeout') {
    const why = `The tool took longer than ${timeoutMs} ms and was abandoned; its outcome is unknown.`;
    abandoned.abort(new Error(why));
    return failed(call, why, paths);
  }
  // A tool that stops on the signal throws the abort reason. Its call stays open.
  if ('error' in outcome) {
    if (signal.aborted) return undefined;
    if (outcome.error instanceof ChildrenWait && isRepeatable(tools, call)) return 'children';
    // Done again, the run repeats the call.
    if (settings.isDoneAgain && isRepeatable(tools, call) && isOfDatabase(outcome.error)) throw outcome.error;
    return failed(call, messageOf(outcome.error), paths);
  }
  const { draft, output } = outcome;
  return { draft: withPaths(draft, paths), success: true, output };
}

type Outcome = { readonly draft: Draft; readonly output: Json } | { readonly error: unknown };

async function outcomeOf(
  tool: DeckTool,
  call: OpenCall,
  { input, abandoned, settings }: { input: unknown; abandoned: AbortSignal; settings: CallSettings },
): Promise<Outcome> {
  const { toolCallId } = call;
  try {
    const messages = [...settings.messages];
    const abortSignal = AbortSignal.any([settings.patience.signal, abandoned]);
    const answer = tool.execute?.(input, {
      toolCallId,
      messages,
      abortSignal,
      context: { ...settings.context },
    });
    const output = await lastOf(answer, abandoned, (value) => {
      const json = snapshot(value);
      if (json !== undefined) settings.onPreliminary(call, json);
    });
    const typed = await tool.toModelOutput?.({ toolCallId, input, output });
    if (typed != null) return { draft: toolResult(call, typed as Json), output: snapshot(output) ?? null };
    if (typeof output === 'function' || typeof output === 'symbol')
      throw new TypeError(`The tool returned a ${typeof output}, which has no JSON form.`);
    const json = (output ?? null) as Json;
    return { draft: toolResult(call, plainOutput(json)), output: json };
  } catch (error) {
    return { error };
  }
}

/** Wraps the output of a tool or client as data, even if it looks like an output of `toModelOutput`. */
export function plainOutput(value: Json): JsonObject {
  return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value };
}

/**
 * A JSON copy of a value, which later changes by the tool do not affect; `undefined` for a value that is not
 * JSON.
 */
function snapshot(value: unknown): Json | undefined {
  try {
    return JSON.parse(JSON.stringify(value ?? null)) as Json;
  } catch {
    return undefined;
  }
}

/** The result of a skipped call, because every call needs one. */
export function skipped(call: OpenCall, why: string): Executed {
  return failed(call, `Not run: ${why}.`, noPaths);
}

/** The result of a denied call. */
export function denied(call: OpenCall, reason: string | undefined): Executed {
  const why = reason ?? 'denied';
  const output = { type: 'execution-denied', reason: why };
  return { draft: withPaths(toolResult(call, output), noPaths), success: false, output: why };
}

/** The result of a call that ran, but whose own result cannot be stored. */
export function unstorable(call: OpenCall, why: string, meta: Draft['meta']): Executed {
  const lost = failed(call, `The tool ran, and its result was lost: ${why}.`, undefined);
  return { ...lost, draft: { ...lost.draft, meta } };
}

/** The paths of a call that never ran. */
const noPaths = { read: [], write: [] } as const;

function failed(call: OpenCall, reason: string, paths: Paths | undefined): Executed {
  const why = withTilde(reason);
  const draft = toolResult(call, { type: 'error-text', value: why });
  return { draft: withPaths(draft, paths), success: false, output: why };
}

type Paths = { readonly read: readonly string[]; readonly write: readonly string[] };

/** Adds the declared paths of a call to its result. Merges detect conflicts by them. */
function withPaths(draft: Draft, paths: Paths | undefined): Draft {
  return paths === undefined ? draft : { ...draft, meta: { paths: paths as unknown as JsonObject } };
}

/**
 * Awaits the last value of a tool that yields preliminary ones. Stops reading when the call was abandoned.
 */
async function lastOf(
  output: unknown,
  abandoned: AbortSignal,
  onPreliminary: (value: unknown) => void,
): Promise<unknown> {
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output)) return await output;
  let last: unknown;
  let resumedAt = performance.now();
  for await (const value of output as AsyncIterable<unknown>) {
    abandoned.throwIfAborted();
    last = value;
    onPreliminary(value);
    if (performance.now() - resumedAt < stretchMs) continue;
    await setImmediate();
    resumedAt = performance.now();
  }
  return last;
}

/** How long a tool can yield without a pause, in milliseconds, before timers and other tasks run. */
const stretchMs = 20;
