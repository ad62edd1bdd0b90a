/**
 * Tool calls. `traits.ts` is what a tool declares, `schema.ts` its definition for the model and the check of its
 * arguments, `execute.ts` runs one call within its time, `open-batch.ts` finds the calls without a result and what each
 * waits for, `orphans.ts` closes those of a process that died. Imports `model`, `lease`, `stream` and `errors`.
 */
import { setImmediate } from 'node:timers/promises';
import { type Draft, type Json, type JsonObject, toolResult } from '@tapedeck/tape';
import { messageOf } from '../errors.ts';
import type { ModelMessage } from '../model/model.ts';
import type { OpenCall } from '../stream/call.ts';
import { parseArguments } from './schema.ts';
import { type DeckTool, type DeckTools, pathsOf, toolOf } from './traits.ts';
import { type Patience, within } from './within.ts';

/** What running a call came to: the entry to append, and what to tell those who watch. */
export interface Executed {
  readonly draft: Draft;
  readonly success: boolean;
  readonly output: Json;
}

/** What calls are run with. */
export interface CallSettings {
  readonly tools: DeckTools;
  readonly messages: readonly ModelMessage[];
  /** What a tool is told of where it runs. */
  readonly context: object;
  /** Names of tools that are offered and may not be used here. */
  readonly forbidden: (name: string) => boolean;
  /** How long a call is waited for; a tool may have a time of its own. */
  readonly patience: Patience;
  /** Told what a tool yields before its last value. */
  readonly onPreliminary: (call: OpenCall, output: Json) => void;
}

/** Why a call cannot be run at all, whoever is asked: the model is told. */
export function refusalOf(
  { tools, forbidden }: Pick<CallSettings, 'tools' | 'forbidden'>,
  call: OpenCall,
): string | undefined {
  if (forbidden(call.toolName)) return `Tool '${call.toolName}' may not be used in this session.`;
  if (toolOf(tools, call.toolName) === undefined)
    return `Unknown tool '${call.toolName}': there is no such tool here.`;
  return call.invalid;
}

/**
 * Runs one tool call. A tool that throws, takes too long, does not exist or was asked with arguments that do not fit gives an
 * error result, never an exception: the model is told, and the run goes on. `undefined` when the run was aborted and
 * the call came to no end: it stays as it is (G75).
 */
export async function executeCall(call: OpenCall, settings: CallSettings): Promise<Executed | undefined> {
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
  const paths = pathsOf(tool, checked.value);
  const givenUp = new AbortController();
  const work = outcomeOf(tool, call, { input: checked.value, givenUp: givenUp.signal, settings });
  const outcome = await within(work, own);
  if (outcome === 'aborted') {
    givenUp.abort(signal.reason);
    return undefined;
  }
  if (outcome === 'timeout') {
    const why = `The tool took longer than ${timeoutMs} ms and was given up; what it did is not known.`;
    givenUp.abort(new Error(why));
    return failed(call, why, paths);
  }
  // A tool that heeds the signal ends with its reason: its call stays open, as the abort found it.
  if ('error' in outcome) return signal.aborted ? undefined : failed(call, messageOf(outcome.error), paths);
  const { draft, output } = outcome;
  return { draft: withPaths(draft, paths), success: true, output };
}

type Outcome = { readonly draft: Draft; readonly output: Json } | { readonly error: unknown };

async function outcomeOf(
  tool: DeckTool,
  call: OpenCall,
  { input, givenUp, settings }: { input: unknown; givenUp: AbortSignal; settings: CallSettings },
): Promise<Outcome> {
  const { toolCallId } = call;
  try {
    const messages = [...settings.messages];
    const abortSignal = AbortSignal.any([settings.patience.signal, givenUp]);
    const answer = tool.execute?.(input, {
      toolCallId,
      messages,
      abortSignal,
      context: { ...settings.context },
    });
    const output = await lastOf(answer, givenUp, (value) => {
      const json = snapshot(value);
      if (json !== undefined) settings.onPreliminary(call, json);
    });
    const typed = await tool.toModelOutput?.({ toolCallId, input, output });
    if (typed != null) return { draft: toolResult(call, typed as Json), output: snapshot(output) ?? null };
    if (typeof output === 'function' || typeof output === 'symbol')
      throw new TypeError(`The tool answered a ${typeof output}, which has no JSON form.`);
    const json = (output ?? null) as Json;
    return { draft: toolResult(call, plainOutput(json)), output: json };
  } catch (error) {
    return { error };
  }
}

/** What a tool or a client answered is data, even where it looks like an output that `toModelOutput` would give. */
export function plainOutput(value: Json): JsonObject {
  return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value };
}

/** A value as those who watch can be shown it, whatever the tool does with it later; `undefined` for what is no JSON. */
function snapshot(value: unknown): Json | undefined {
  try {
    return JSON.parse(JSON.stringify(value ?? null)) as Json;
  } catch {
    return undefined;
  }
}

/** The result of a call that was not run: pairs stay complete (X62, K26). */
export function skipped(call: OpenCall, why: string): Executed {
  return failed(call, `Not run: ${why}.`, noPaths);
}

/** The result of a call that a person did not allow. */
export function denied(call: OpenCall, reason: string | undefined): Executed {
  const why = reason ?? 'denied';
  const output = { type: 'execution-denied', reason: why };
  return { draft: withPaths(toolResult(call, output), noPaths), success: false, output: why };
}

/** The result of a call that was run, and whose own result cannot be recorded. */
export function unstorable(call: OpenCall, why: string, meta: Draft['meta']): Executed {
  const lost = failed(call, `The tool ran, and its result was lost: ${why}.`, undefined);
  return { ...lost, draft: { ...lost.draft, meta } };
}

/** What a call touches that was never run. */
const noPaths = { read: [], write: [] } as const;

function failed(call: OpenCall, why: string, paths: Paths | undefined): Executed {
  const draft = toolResult(call, { type: 'error-text', value: why });
  return { draft: withPaths(draft, paths), success: false, output: why };
}

type Paths = { readonly read: readonly string[]; readonly write: readonly string[] };

/** A result tells what its call touched, if its tool declares that: merges look for conflicts there. */
function withPaths(draft: Draft, paths: Paths | undefined): Draft {
  return paths === undefined ? draft : { ...draft, meta: { paths: paths as unknown as JsonObject } };
}

/** A tool may yield preliminary results; the last one counts. One that was given up is asked for no more of them. */
async function lastOf(
  output: unknown,
  givenUp: AbortSignal,
  onPreliminary: (value: unknown) => void,
): Promise<unknown> {
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output)) return await output;
  let last: unknown;
  let breath = performance.now();
  for await (const value of output as AsyncIterable<unknown>) {
    givenUp.throwIfAborted();
    last = value;
    onPreliminary(value);
    if (performance.now() - breath < breathMs) continue;
    await setImmediate();
    breath = performance.now();
  }
  return last;
}

/** How long a tool may yield at a stretch, in milliseconds, before timers and others get their turn. */
const breathMs = 20;
