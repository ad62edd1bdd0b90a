import { setTimeout as sleep } from 'node:timers/promises';
import { type Draft, type Json, type JsonObject, toolResult } from '@tapedeck/tape';
import { messageOf } from './errors.ts';
import type { ModelMessage } from './model.ts';
import type { OpenCall } from './open-batch.ts';
import { checkArguments } from './tool-schema.ts';
import { type DeckTool, type DeckTools, pathsOf, toolOf } from './tool-traits.ts';

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
  readonly signal: AbortSignal;
  /** How long a call may take, unless its tool says otherwise, in milliseconds. */
  readonly timeoutMs: number;
  /** How long a call that does not heed the signal is waited for after an abort, in milliseconds (G74). */
  readonly graceMs: number;
  /** Told what a tool yields before its last value. */
  readonly onPreliminary: (call: OpenCall, output: Json) => void;
}

/** Why a call cannot be run at all, whoever is asked: the model is told. */
export function refusalOf(tools: DeckTools, call: OpenCall): string | undefined {
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
  const { tools, signal } = settings;
  const tool = toolOf(tools, call.toolName);
  const refusal = refusalOf(tools, call);
  if (tool === undefined || refusal !== undefined) return failed(call, refusal ?? '');
  const checked = await checkArguments(tool, call.input);
  if ('fault' in checked) return failed(call, checked.fault);
  const paths = pathsOf(tool, checked.value);
  const timeoutMs = tool.timeoutMs ?? settings.timeoutMs;
  const timeout = new AbortController();
  const stop = AbortSignal.any([signal, timeout.signal]);
  const work = outcomeOf(tool, call, { input: checked.value, signal: stop, settings });
  const outcome = await endOf(work, { timeoutMs, graceMs: settings.graceMs, signal });
  if (outcome === 'aborted') return undefined;
  if (outcome === 'timeout') {
    const why = `The tool took longer than ${timeoutMs} ms and was given up; what it did is not known.`;
    timeout.abort(new Error(why));
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
  { input, signal, settings }: { input: unknown; signal: AbortSignal; settings: CallSettings },
): Promise<Outcome> {
  const { toolCallId } = call;
  try {
    const messages = [...settings.messages];
    const answer = tool.execute?.(input, { toolCallId, messages, abortSignal: signal, context: {} });
    const output = await lastOf(answer, (value) => settings.onPreliminary(call, (value ?? null) as Json));
    const typed = await tool.toModelOutput?.({ toolCallId, input, output });
    const json = (output ?? null) as Json;
    return { draft: toolResult(call, (typed ?? json) as Json), output: json };
  } catch (error) {
    return { error };
  }
}

async function endOf(
  work: Promise<Outcome>,
  { timeoutMs, graceMs, signal }: { timeoutMs: number; graceMs: number; signal: AbortSignal },
): Promise<Outcome | 'timeout' | 'aborted'> {
  const over = new AbortController();
  const limit = (ms: number) => sleep(Math.min(ms, timerMaxMs), undefined, { signal: over.signal });
  const timeout = limit(timeoutMs).then(() => 'timeout' as const);
  const aborted = aborting(signal, over.signal)
    .then(() => limit(graceMs))
    .then(() => 'aborted' as const);
  for (const timer of [timeout, aborted]) timer.catch(() => {});
  try {
    return await Promise.race([work, ...(Number.isFinite(timeoutMs) ? [timeout] : []), aborted]);
  } finally {
    over.abort();
  }
}

/** The longest that a timer of Node can take. */
const timerMaxMs = 2 ** 31 - 1;

function aborting(signal: AbortSignal, over: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', () => resolve(), { once: true, signal: over });
  return promise;
}

/** The result of a call that was not run: pairs stay complete (X62, K26). */
export function skipped(call: OpenCall, why: string): Executed {
  return failed(call, `Not run: ${why}.`);
}

/** The result of a call that a person did not allow. */
export function denied(call: OpenCall, reason: string | undefined): Executed {
  const why = reason ?? 'denied';
  const output = { type: 'execution-denied', reason: why };
  return { draft: withPaths(toolResult(call, output), noPaths), success: false, output: why };
}

/** The result of a call that was run, and whose own result cannot be recorded. */
export function unstorable(call: OpenCall, why: string, meta: Draft['meta']): Executed {
  const lost = failed(call, `The tool ran, and its result was lost: ${why}.`);
  return { ...lost, draft: { ...lost.draft, meta } };
}

/** What a call touches that was never run. */
const noPaths = { read: [], write: [] } as const;

function failed(call: OpenCall, why: string, paths: Paths | undefined = noPaths): Executed {
  const draft = toolResult(call, { type: 'error-text', value: why });
  return { draft: withPaths(draft, paths), success: false, output: why };
}

type Paths = { readonly read: readonly string[]; readonly write: readonly string[] };

/** A result tells what its call touched, if its tool declares that: merges look for conflicts there. */
function withPaths(draft: Draft, paths: Paths | undefined): Draft {
  return paths === undefined ? draft : { ...draft, meta: { paths: paths as unknown as JsonObject } };
}

/** A tool may yield preliminary results; the last one counts. */
async function lastOf(output: unknown, onPreliminary: (value: unknown) => void): Promise<unknown> {
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output)) return await output;
  let last: unknown;
  for await (const value of output as AsyncIterable<unknown>) {
    last = value;
    onPreliminary(value);
  }
  return last;
}
