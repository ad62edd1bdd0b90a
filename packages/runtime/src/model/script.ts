import { readFile } from 'node:fs/promises';
import { matchesGlob } from 'node:path';
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import { sha256 } from '@tapedeck/tape/store';
import { z } from 'zod';
import { messageOf, SessionError } from '../errors.ts';

/** One scripted answer of a cassette. */
export interface ScriptAnswer {
  readonly text?: string | undefined;
  readonly toolCalls?:
    | readonly { readonly name: string; readonly input: unknown; readonly id?: string | undefined }[]
    | undefined;
  readonly delayMs?: number | undefined;
  readonly usage?: { readonly input?: number | undefined; readonly output?: number | undefined } | undefined;
  /** Makes the call fail with this message. */
  readonly error?: string | undefined;
  /**
   * Restricts the answer to calls of sessions that match a glob, or whose last user message contains a text.
   */
  readonly when?: { readonly session?: string | undefined; readonly text?: string | undefined } | undefined;
}

const answers: z.ZodType<readonly ScriptAnswer[]> = z.array(
  z.strictObject({
    text: z.string().optional(),
    toolCalls: z
      .array(z.strictObject({ name: z.string(), input: z.unknown(), id: z.string().optional() }))
      .optional(),
    delayMs: z.number().nonnegative().optional(),
    usage: z.object({ input: z.number().optional(), output: z.number().optional() }).optional(),
    error: z.string().optional(),
    when: z.strictObject({ session: z.string().optional(), text: z.string().optional() }).optional(),
  }),
);

/**
 * Reads a cassette: a JSON array of answers.
 * @throws SESSION_NO_FILE, SESSION_BAD_SCRIPT
 */
export async function readScript(file: string): Promise<readonly ScriptAnswer[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    const isMissing = (cause as { code?: unknown }).code === 'ENOENT';
    const why = isMissing ? 'there is no such file' : messageOf(cause);
    throw new SessionError('SESSION_NO_FILE', `cannot read script '${file}': ${why}`, { cause });
  }
  return parseScript(text, file);
}

/**
 * Parses a cassette: the JSON text of an array of answers. `name` is what the error calls it.
 * @throws SESSION_BAD_SCRIPT
 */
export function parseScript(text: string, name: string): readonly ScriptAnswer[] {
  try {
    return answers.parse(JSON.parse(text));
  } catch (cause) {
    const why = cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause);
    throw new SessionError('SESSION_BAD_SCRIPT', `cannot use script '${name}': ${why}`, { cause });
  }
}

/** The session that a scripted model serves. */
export interface ScriptContext {
  readonly session: string;
  /** The response ids of the model calls that the session's own entries record, oldest first. */
  readonly answered: () => Promise<readonly string[]>;
}

/**
 * A model that answers from a cassette. It keeps no state: the session's recorded calls determine the next
 * answer, so another process can continue the session. An answer with `when` serves only calls that match;
 * each answer is used once per session.
 */
export function scriptModel(script: readonly ScriptAnswer[], context: ScriptContext): LanguageModelV4 {
  const next = async (prompt: LanguageModelV4Prompt) => {
    const given = new Set(await context.answered());
    const text = lastUserText(prompt);
    const index = script.findIndex(
      (answer, i) => !given.has(responseId(i)) && matches(answer, { session: context.session, text }),
    );
    const answer = script[index];
    if (answer === undefined)
      throw new SessionError(
        'SESSION_SCRIPT_ENDED',
        `cannot answer '${context.session}': no answer of the script is left for this call`,
        { data: { session: context.session, answered: given.size } },
      );
    return { answer, index };
  };
  return {
    specificationVersion: 'v4',
    provider: 'script',
    modelId: 'script',
    supportedUrls: {},
    async doGenerate({ prompt, abortSignal }: LanguageModelV4CallOptions) {
      const { answer, index } = await next(prompt);
      await delay(answer.delayMs ?? 0, abortSignal);
      return wholeOf(parts(answer, index, context.session));
    },
    async doStream({ prompt, abortSignal }: LanguageModelV4CallOptions) {
      const { answer, index } = await next(prompt);
      await delay(answer.delayMs ?? 0, abortSignal);
      return { stream: streamOf(parts(answer, index, context.session)) };
    },
  };
}

/** A failure from the script. It carries a response id, so that the recorded failure counts as a call. */
class ScriptedFailure extends Error {
  readonly responseId: string;

  constructor(message: string, id: string) {
    super(message);
    this.responseId = id;
  }
}

function responseId(index: number): string {
  return `script-${index}`;
}

function parts(answer: ScriptAnswer, index: number, session: string): LanguageModelV4StreamPart[] {
  const { text, toolCalls = [], usage, error } = answer;
  const start: LanguageModelV4StreamPart[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: responseId(index), modelId: 'script' },
  ];
  if (error !== undefined)
    return [...start, { type: 'error', error: new ScriptedFailure(error, responseId(index)) }];
  return [
    ...start,
    ...(text === undefined
      ? []
      : ([
          { type: 'text-start', id: 't' },
          ...text.split(/(?<=\s)/).map((delta) => ({ type: 'text-delta', id: 't', delta }) as const),
          { type: 'text-end', id: 't' },
        ] as const)),
    ...toolCalls.map(
      ({ name, input, id }, i) =>
        ({
          type: 'tool-call',
          toolCallId: id ?? `call_${sha256(session).slice(0, 8)}_${index}_${i}`,
          toolName: name,
          input: JSON.stringify(input ?? {}),
        }) as const,
    ),
    {
      type: 'finish',
      finishReason: { unified: toolCalls.length > 0 ? 'tool-calls' : 'stop', raw: undefined },
      usage: {
        inputTokens: {
          total: usage?.input,
          noCache: usage?.input,
          cacheRead: undefined,
          cacheWrite: undefined,
        },
        outputTokens: { total: usage?.output, text: usage?.output, reasoning: undefined },
      },
    },
  ];
}

/** The parts of an answer as a whole one. */
function wholeOf(sent: readonly LanguageModelV4StreamPart[]): LanguageModelV4GenerateResult {
  const failure = sent.find((part) => part.type === 'error');
  const end = sent.find((part) => part.type === 'finish');
  if (failure !== undefined || end === undefined) throw failure?.error;
  const text = sent.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('');
  const { finishReason, usage } = end;
  return {
    content: [
      ...(text === '' ? [] : [{ type: 'text', text } as const]),
      ...sent.filter((part) => part.type === 'tool-call'),
    ],
    finishReason,
    usage,
    response: { ...sent.find((part) => part.type === 'response-metadata') },
    warnings: [],
  };
}

function matches(answer: ScriptAnswer, call: { session: string; text: string }): boolean {
  const { session, text } = answer.when ?? {};
  return (
    (session === undefined || matchesGlob(call.session, session)) &&
    (text === undefined || call.text.includes(text))
  );
}

function lastUserText(prompt: LanguageModelV4Prompt): string {
  const message = prompt.findLast((m) => m.role === 'user');
  return (message?.content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('\n');
}

async function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms <= 0) return;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

function streamOf(parts: readonly LanguageModelV4StreamPart[]): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}
