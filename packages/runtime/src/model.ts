import type { Json, JsonObject, Meta, Part } from '@tapedeck/tape';
import { isStepCount, type LanguageModel, type ModelMessage, streamText, type ToolSet } from 'ai';
import { messageOf, SessionError } from './errors.ts';
import { normaliseUsage, type Usage } from './usage.ts';

/** One model call: what to ask, and where its stream goes. */
export interface ModelCall {
  readonly model: LanguageModel;
  readonly instructions?: string | undefined;
  readonly messages: readonly ModelMessage[];
  readonly tools: ToolSet;
  readonly signal: AbortSignal;
  readonly onText: (text: string) => void;
  readonly onReasoning: (text: string) => void;
}

/** A tool call that the model asked this side to run. */
export interface AskedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Json;
  /** Why the call cannot be run: no such tool, or arguments that do not fit. */
  readonly invalid?: string;
}

/** What a model call came to. */
export interface Answer {
  /** The parts of the assistant message, verbatim. */
  readonly content: readonly Part[];
  readonly text: string;
  readonly calls: readonly AskedCall[];
  readonly finish: string;
  readonly usage: Usage;
  /** Provider, model, response id, and the raw text of arguments that were not JSON. */
  readonly meta: Meta;
}

/** A model call that failed, with the text that had arrived. */
export class ModelFailure extends Error {
  readonly partial: string;
  /** The response's id, where the failure tells it. */
  readonly response: string | undefined;

  constructor(cause: unknown, partial: string) {
    super(messageOf(cause), { cause });
    this.partial = partial;
    const { responseId } = (cause ?? {}) as { responseId?: unknown };
    this.response = typeof responseId === 'string' ? responseId : undefined;
  }
}

/**
 * Asks a model once. Tools go as definitions without `execute`: the SDK runs nothing and records nothing, the loop
 * does both.
 * @throws ModelFailure; the signal's reason when it is aborted
 */
export async function callModel(call: ModelCall): Promise<Answer> {
  const { model, instructions, messages, signal } = call;
  const result = streamText({
    model,
    messages: [...messages],
    tools: withoutExecute(call.tools),
    stopWhen: isStepCount(1),
    abortSignal: signal,
    // The SDK would print errors that the stream reports as well.
    onError: () => {},
    ...(instructions !== undefined && { instructions }),
  });
  const step = Promise.resolve(result.finalStep);
  step.catch(() => {}); // The stream tells of every failure; this promise repeats the last.
  let text = '';
  const calls: AskedCall[] = [];
  const raw: Record<string, Json> = {};
  try {
    for await (const part of result.stream) {
      if (part.type === 'text-delta') {
        text += part.text;
        call.onText(part.text);
      } else if (part.type === 'reasoning-delta') call.onReasoning(part.text);
      else if (part.type === 'error') throw part.error;
      else if (part.type === 'abort') throw signal.reason ?? new Error('aborted');
      else if (part.type === 'tool-call' && part.providerExecuted !== true) {
        if (part.invalid === true && typeof part.input === 'string') raw[part.toolCallId] = part.input;
        calls.push(askedCall(part));
      }
    }
    return await answerOf(model, { step: await step, text, calls, raw });
  } catch (error) {
    throw new ModelFailure(signal.aborted ? signal.reason : error, text);
  }
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
  { step, text, calls, raw }: { step: SdkStep; text: string; calls: AskedCall[]; raw: Record<string, Json> },
): Answer {
  const message = step.response.messages.find((m) => m.role === 'assistant');
  const content =
    typeof message?.content === 'string' ? [{ type: 'text', text: message.content }] : message?.content;
  const meta: JsonObject = {
    ...modelMeta(model),
    response: step.response.id,
    finish: step.finishReason,
    ...(Object.keys(raw).length > 0 && { raw_input: raw }),
  };
  return {
    content: (content ?? []) as readonly Part[],
    text,
    calls,
    finish: step.finishReason,
    usage: normaliseUsage(step.usage),
    meta,
  };
}

/** Provider and model of a model, as entries record them. */
export function modelMeta(model: LanguageModel): { readonly provider?: string; readonly model: string } {
  if (typeof model === 'string') return { model };
  return { provider: model.provider, model: model.modelId };
}

function askedCall(part: {
  toolCallId: string;
  toolName: string;
  input: unknown;
  invalid?: boolean | undefined;
  error?: unknown;
}): AskedCall {
  const { toolCallId, toolName, input } = part;
  const asked = { toolCallId, toolName, input: (input ?? {}) as Json };
  return part.invalid === true ? { ...asked, invalid: messageOf(part.error) } : asked;
}

function withoutExecute(tools: ToolSet): ToolSet {
  return Object.fromEntries(
    Object.entries(tools).map(([name, { execute: _, ...definition }]) => [
      name,
      definition as ToolSet[string],
    ]),
  );
}

/** @throws SESSION_NO_MODEL when no model was given anywhere. */
export function needModel(model: LanguageModel | undefined, session: string): LanguageModel {
  if (model !== undefined) return model;
  throw new SessionError('SESSION_NO_MODEL', `cannot run '${session}': no model was given`, {
    data: { session },
  });
}

export type { LanguageModel, ModelMessage, ToolSet };
