/**
 * Models. `model.ts` makes one model call, and loads the AI SDK for it; `spec.ts` finds the model that a name means,
 * `script.ts` is the scripted one. `prompt.ts`, `cache-points.ts`, `window.ts` and `retry.ts` are rules
 * about a call, `call-queues.ts` bounds how many run at once. Imports `stream`, `telemetry`, `usage` and `errors`.
 */
import { assistant, type Json, type JsonObject, type Meta, type Part, toolCall } from '@tapedeck/tape';
import { assertDraft } from '@tapedeck/tape/store';
import type { LanguageModel, ModelMessage, SystemModelMessage, TextStreamPart, ToolSet } from 'ai';
import { messageOf, SessionError } from '../errors.ts';
import { type OpenCall, rawMax } from '../stream/call.ts';
import type { Chunk } from '../stream/chunks.ts';
import { modelAttributes, usageAttributes } from '../telemetry/chat.ts';
import { traced } from '../telemetry/span.ts';
import { normaliseUsage, type Usage } from '../usage/usage.ts';
import type { CallSettings } from './call-settings.ts';
import { withLegalNames } from './offered-names.ts';
import { hearingWarnings } from './sdk-warnings.ts';

/** One model call: its input, and where its stream goes. */
export interface ModelCall {
  readonly model: LanguageModel;
  readonly instructions?: string | SystemModelMessage | undefined;
  readonly messages: readonly ModelMessage[];
  /** Definitions of tools, without `execute`. */
  readonly tools: ToolSet;
  readonly signal: AbortSignal;
  readonly maxOutputTokens?: number | undefined;
  readonly settings?: CallSettings | undefined;
  /** JSON Schema of the requested answer. */
  readonly output?: JsonObject | undefined;
  readonly onChunk: (chunk: Chunk) => void;
  /** Called with each warning of the AI SDK. */
  readonly onWarning: (message: string) => void;
}

/** The result of a model call. */
export interface Answer {
  /** The parts of the assistant message, verbatim. */
  readonly content: readonly Part[];
  readonly text: string;
  /** The client-side calls, which the turn loop runs. */
  readonly calls: readonly OpenCall[];
  readonly finish: string;
  readonly usage: Usage;
  /** Provider, model, response id, and the raw text of invalid arguments. */
  readonly meta: Meta;
}

/** A model call that failed. */
export class ModelFailure extends Error {
  /** The id of the response, if the failure gives one. */
  readonly response: string | undefined;

  constructor(cause: unknown) {
    super(shortened(messageOf(cause)), { cause });
    const { responseId } = (cause ?? {}) as { responseId?: unknown };
    this.response = typeof responseId === 'string' ? responseId : undefined;
  }
}

/** The most characters of the message of a failure. Some errors quote all that the provider sent. */
const messageMax = 10_000;

/** A message of a length that an entry can hold. */
function shortened(message: string): string {
  if (message.length <= messageMax) return message;
  const left = message.length - messageMax;
  return `${message.slice(0, messageMax).toWellFormed()} … (${left} more characters)`;
}

/**
 * Calls a model once, without retries. The tools have no `execute`: the turn loop runs them and records the
 * results.
 * @throws ModelFailure, with the reason of the signal as its cause when it aborts
 */
export async function callModel(call: ModelCall): Promise<Answer> {
  const of = modelMeta(call.model);
  return await traced(
    () => ({
      name: `chat ${of.model}`,
      isClient: true,
      attributes: { 'gen_ai.operation.name': 'chat', ...modelAttributes(of) },
    }),
    async (span) => {
      const answer = await hearingWarnings(call.onWarning, async () => await streamed(call));
      const { response } = answer.meta;
      span?.set({
        ...usageAttributes(answer.usage),
        'gen_ai.response.finish_reasons': [answer.finish],
        ...(typeof response === 'string' && { 'gen_ai.response.id': response }),
      });
      return answer;
    },
  );
}

let sdk: typeof import('ai') | undefined;

async function streamed(call: ModelCall): Promise<Answer> {
  const { model, instructions, messages, tools, signal, maxOutputTokens, output } = call;
  const { temperature, effort, providerOptions } = call.settings ?? {};
  try {
    signal.throwIfAborted();
    // Each `import` of a loaded module is looked up anew, for as long as a part of a model call takes.
    sdk ??= await import('ai');
    const { isStepCount, jsonSchema, Output, streamText, toUIMessageChunk, wrapLanguageModel } = sdk;
    const result = streamText({
      model: withLegalNames(model, tools, wrapLanguageModel),
      messages: [...messages],
      tools,
      stopWhen: isStepCount(1),
      maxRetries: 0,
      abortSignal: signal,
      // By default the SDK also prints errors that the stream reports.
      onError: () => {},
      ...(instructions !== undefined && { instructions }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(temperature !== undefined && { temperature }),
      ...(effort !== undefined && { reasoning: effort }),
      ...(providerOptions !== undefined && { providerOptions }),
      ...(output !== undefined && { output: Output.object({ schema: jsonSchema(output) }) }),
    });
    const step = Promise.resolve(result.finalStep);
    step.catch(() => {}); // The stream reports every failure; this promise repeats the last one.
    let text = '';
    const calls: OpenCall[] = [];
    const raw = new Map<string, string>();
    for await (const sent of result.stream) {
      const part = sent.type === 'tool-call' ? storable(sent) : sent;
      if (sent.type === 'tool-call' && sent.providerExecuted !== true && 'invalid' in part && part.invalid)
        raw.set(sent.toolCallId, rawOf(sent.input));
      if (part.type === 'error') throw part.error;
      if (part.type === 'abort') throw signal.reason ?? new Error('aborted');
      if (part.type === 'text-delta') text += part.text;
      else if (part.type === 'tool-call' && part.providerExecuted !== true) calls.push(openCall(part));
      const chunk = isOfLoop(part) ? undefined : toUIMessageChunk(part, { tools, ...shown });
      if (chunk !== undefined) call.onChunk(chunk);
    }
    return await answerOf(model, { step: await step, text, calls, raw });
  } catch (error) {
    throw new ModelFailure(signal.aborted ? signal.reason : error);
  }
}

/** What becomes a chunk for those who watch the run. */
const shown = { sendSources: true, sendStart: false, sendFinish: false, onError: messageOf } as const;

/** Whether a stream part is the result of a client-side call, which the turn loop reports. */
function isOfLoop(part: TextStreamPart<ToolSet>): boolean {
  const { type } = part;
  return (type === 'tool-result' || type === 'tool-error') && part.providerExecuted !== true;
}

interface SdkStep {
  readonly finishReason: string;
  readonly usage: Parameters<typeof normaliseUsage>[0];
  readonly response: {
    readonly id: string;
    readonly modelId: string;
    readonly messages: readonly ModelMessage[];
  };
}

function answerOf(
  model: LanguageModel,
  {
    step,
    text,
    calls,
    raw,
  }: { step: SdkStep; text: string; calls: OpenCall[]; raw: ReadonlyMap<string, string> },
): Answer {
  const message = step.response.messages.find((m) => m.role === 'assistant');
  const content =
    typeof message?.content === 'string' ? [{ type: 'text', text: message.content }] : message?.content;
  const meta: JsonObject = {
    ...modelMeta(model),
    response: step.response.id,
    finish: step.finishReason,
    ...(raw.size > 0 && { raw_input: Object.fromEntries(raw) }),
  };
  return {
    content: (content ?? []).map(withStorableInput) as readonly Part[],
    text,
    calls,
    finish: step.finishReason,
    usage: normaliseUsage(step.usage),
    meta,
  };
}

/**
 * Marks a call as invalid, with empty input, if no entry can hold its arguments (too large or nested too
 * deep). The model then receives the error.
 */
function storable<T extends { readonly input: unknown }>(
  part: T,
): T & { invalid?: boolean; error?: unknown } {
  try {
    assertDraft(assistant([toolCall('id', 'name', (part.input ?? {}) as Json)]));
    return part;
  } catch (error) {
    return { ...part, input: {}, invalid: true, error };
  }
}

function withStorableInput(part: { readonly type: string }): object {
  if (part.type !== 'tool-call' || !('input' in part)) return part;
  const { invalid, error, ...stored } = storable(part);
  return stored;
}

function rawOf(input: unknown): string {
  return (typeof input === 'string' ? input : JSON.stringify(input ?? null)).slice(0, rawMax);
}

/** The provider and name of a model, as entries record them. */
export function modelMeta(model: LanguageModel): { readonly provider?: string; readonly model: string } {
  if (typeof model === 'string') return { model };
  return { provider: model.provider, model: model.modelId };
}

function openCall(part: {
  toolCallId: string;
  toolName: string;
  input: unknown;
  invalid?: boolean | undefined;
  error?: unknown;
}): OpenCall {
  const { toolCallId, toolName, input } = part;
  const call = { toolCallId, toolName, input: (input ?? {}) as Json, state: 'begun' } as const;
  return part.invalid === true ? { ...call, invalid: messageOf(part.error) } : call;
}

/** @throws SESSION_NO_MODEL when neither the session nor the deck has a model */
export function getModel(model: LanguageModel | undefined, session: string): LanguageModel {
  if (model !== undefined) return model;
  throw new SessionError('SESSION_NO_MODEL', `cannot run '${session}': no model was given`, {
    data: { session },
  });
}

export type { LanguageModel, ModelMessage, SystemModelMessage };
