import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { objects } from './chat.ts';
import {
  type Answer,
  apiKey,
  brokenText,
  type Failure,
  invalid,
  isBase64,
  type Protocol,
  textsOf,
} from './protocol.ts';
import { isSealed, sealed } from './signed.ts';

/** The model of this server: Google has it in the path. */
export const googleModel = 'gemini-2.5-pro';

/** Google's generateContent. */
export const google: Protocol = {
  path: `/v1/models/${googleModel}:streamGenerateContent?alt=sse`,
  refuses: (headers) =>
    headers['x-goog-api-key'] === apiKey
      ? undefined
      : { status: 400, message: 'API key not valid. Please pass a valid API key.', type: 'INVALID_ARGUMENT' },
  fault: (body) => {
    const fault = requestFault(body);
    return fault === undefined ? undefined : invalid(fault);
  },
  overflow: invalid(
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  ),
  errorBody,
  begin: (_request, { reasoning, text }) => [
    ...(reasoning === undefined
      ? []
      : [event([{ text: reasoning, thought: true, thoughtSignature: sealed(reasoning) }])]),
    ...textsOf(text).map((words) => event([{ text: words }])),
  ],
  end: (_request, answer) => {
    if (answer.breaks) return [line(errorBody({ status: 503, message: 'overloaded', type: 'UNAVAILABLE' }))];
    const calls = (answer.calls ?? []).map(({ id, name, arguments: args }) => ({
      functionCall: { ...(id !== undefined && { id }), name, args },
    }));
    return [event(calls, { finishReason: answer.finish ?? 'STOP' }, { usageMetadata: usageOf(answer) })];
  },
};

function errorBody({ status, message, type = 'INVALID_ARGUMENT' }: Failure): JsonObject {
  return { error: { code: status, message, status: type } };
}

function line(data: JsonObject): string {
  return `data: ${JSON.stringify(data)}\r\n\r\n`;
}

function event(parts: readonly JsonObject[], candidate: JsonObject = {}, more: JsonObject = {}): string {
  const content = { role: 'model', parts: [...parts] };
  return line({ candidates: [{ content, index: 0, ...candidate }], modelVersion: googleModel, ...more });
}

function usageOf({ usage: [prompt, completion] = [10, 5] }: Answer): JsonObject {
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: completion,
    totalTokenCount: prompt + completion,
  };
}

/** The name of a function, in a declaration and in a call. */
const functionName = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/;

/** The faults for which generateContent refuses a request. */
function requestFault(body: unknown): string | undefined {
  if (!isObject(body)) return 'Invalid JSON payload received.';
  const broken = brokenText(body);
  if (broken !== undefined) return `Invalid JSON payload received. Unexpected token: ${broken}`;
  const declared = objects(body.tools).flatMap((tool) => objects(tool.functionDeclarations));
  for (const { name } of declared) if (!functionName.test(String(name))) return invalidName(name);
  if (new Set(declared.map(({ name }) => name)).size !== declared.length)
    return 'Duplicate function declaration found';
  const contents = objects(body.contents);
  if (contents.length === 0) return '* GenerateContentRequest.contents: contents is not specified';
  let before: Turn = { role: 'start', calls: [] };
  for (const [i, content] of contents.entries()) {
    const turn = turnOf(content);
    const fault = typeof turn === 'string' ? turn : orderFault(turn, before);
    if (fault !== undefined) return `contents[${i}]: ${fault}`;
    before = turn as Turn;
  }
  if (before.calls.length > 0) return unequal;
  return before.role === 'model' ? 'Please ensure that the last turn is of the user.' : undefined;
}

const unequal =
  'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';

function invalidName(name: Json | undefined): string {
  return `Invalid function name: ${name}. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.`;
}

interface Turn {
  readonly role: 'start' | 'user' | 'responses' | 'model';
  /** The names of calls in it. */
  readonly calls: readonly string[];
  readonly responses?: readonly string[];
}

/** What a content says, or the fault of one of its parts. */
function turnOf({ role, parts: list }: Record<string, Json>): Turn | string {
  if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.';
  const parts = objects(list);
  if (parts.length === 0) return 'contents.parts must not be empty.';
  for (const [k, part] of parts.entries()) {
    const fault = partFault(part, role);
    if (fault !== undefined) return `parts[${k}]: ${fault}`;
  }
  const namesOf = (kind: string) =>
    parts.flatMap((part) => (isObject(part[kind]) ? [String(part[kind].name)] : []));
  const responses = namesOf('functionResponse');
  if (role === 'model') return { role, calls: namesOf('functionCall') };
  return responses.length > 0 ? { role: 'responses', calls: [], responses } : { role, calls: [] };
}

function orderFault({ role, calls, responses = [] }: Turn, before: Turn): string | undefined {
  if (role === 'responses') {
    if (before.calls.length === 0)
      return 'Please ensure that function response turn comes immediately after a function call turn.';
    return [...responses].sort().join() === [...before.calls].sort().join() ? undefined : unequal;
  }
  if (before.calls.length > 0) return unequal;
  if (calls.length > 0 && before.role !== 'user' && before.role !== 'responses')
    return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
  return role === 'model' && before.role === 'start'
    ? 'Please ensure that the first turn is of the user.'
    : undefined;
}

const kinds = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
];

function partFault(part: Record<string, Json>, role: 'user' | 'model'): string | undefined {
  const given = kinds.filter((kind) => part[kind] !== undefined && part[kind] !== '');
  const [kind] = given;
  if (part.thoughtSignature !== undefined && !isSealed(part.thoughtSignature))
    return 'Thought signature is not valid';
  if (kind === undefined && part.thoughtSignature !== undefined) return undefined;
  if (kind === undefined || given.length > 1)
    return "required oneof field 'data' must have one initialized field";
  const data = part[kind];
  if (kind === 'text') return typeof data === 'string' ? undefined : 'Invalid value (text)';
  if (!isObject(data)) return `Invalid value (${kind})`;
  if (kind === 'functionCall' || kind === 'functionResponse') {
    if ((kind === 'functionCall') !== (role === 'model')) return `${kind} is not a part of a ${role}`;
    if (!functionName.test(String(data.name))) return invalidName(data.name);
    const fields = kind === 'functionCall' ? data.args : data.response;
    return isObject(fields)
      ? undefined
      : `Invalid value at '${kind}' (type.googleapis.com/google.protobuf.Struct)`;
  }
  if (kind === 'inlineData' || kind === 'fileData') return fileFault(data);
  return undefined;
}

const mimeTypes =
  /^(?:image\/(?:png|jpeg|webp|heic|heif)|application\/pdf|text\/[\w.+-]+|audio\/(?:wav|mp3|mpeg|aiff|aac|ogg|flac)|video\/[\w.+-]+)$/;

function fileFault({ mimeType, data, fileUri }: Record<string, Json>): string | undefined {
  if (!mimeTypes.test(String(mimeType))) return `Unsupported MIME type: ${mimeType}`;
  if (fileUri !== undefined)
    return /^(?:https?|gs):\/\/|^files\//.test(String(fileUri)) ? undefined : `Invalid file URI: ${fileUri}`;
  return isBase64(data) ? undefined : 'Base64 decoding failed';
}
