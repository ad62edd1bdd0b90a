import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import {
  type Answer,
  apiKey,
  brokenText,
  type ChatRequest,
  type Failure,
  imageTypes,
  invalid,
  isBase64,
  type Protocol,
  randomId,
  textsOf,
} from './protocol.ts';

/** OpenAI's chat completions, whole or streamed. */
export const wholeChat: Protocol = {
  ...chatWith({ streamsOnly: false }),
  whole: ({ model }, answer) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: textsOf(answer.text).join('') || null,
          ...(answer.reasoning !== undefined && { reasoning_content: answer.reasoning }),
          ...(answer.calls !== undefined && {
            tool_calls: answer.calls.map(({ id, name, arguments: given }) => ({
              id: id ?? `call_${randomId()}`,
              type: 'function',
              function: { name, arguments: typeof given === 'string' ? given : JSON.stringify(given) },
            })),
          }),
        },
        finish_reason: answer.finish ?? (answer.calls === undefined ? 'stop' : 'tool_calls'),
      },
    ],
    usage: usageOf(answer),
  }),
};

/** OpenAI's chat completions. */
export const chat: Protocol = chatWith({ streamsOnly: true });

function chatWith({ streamsOnly }: { readonly streamsOnly: boolean }): Protocol {
  return {
    path: '/v1/chat/completions',
    refuses: ({ authorization }) =>
      authorization === `Bearer ${apiKey}`
        ? undefined
        : {
            status: 401,
            message: 'incorrect API key provided',
            type: 'invalid_request_error',
            code: 'invalid_api_key',
          },
    fault: (body) => {
      const fault = requestFault(body, streamsOnly);
      return fault === undefined ? undefined : invalid(fault);
    },
    overflow: invalid(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
      'context_length_exceeded',
    ),
    errorBody,
    begin: (request, answer) => {
      const { delta } = events(request);
      return [
        delta({ role: 'assistant', content: '' }),
        ...(answer.reasoning === undefined ? [] : [delta({ reasoning_content: answer.reasoning })]),
        ...textsOf(answer.text).map((text) => delta({ content: text })),
      ];
    },
    end: (request, answer) => {
      const { event, delta } = events(request);
      if (answer.breaks)
        return [`data: ${JSON.stringify(errorBody({ status: 503, message: 'overloaded' }))}\n\n`];
      const finish = answer.finish ?? (answer.calls === undefined ? 'stop' : 'tool_calls');
      return [
        ...callDeltas(answer).map((fields) => delta(fields)),
        delta({}, finish),
        ...(wantsUsage(request) ? [event({ choices: [], usage: usageOf(answer) })] : []),
        'data: [DONE]\n\n',
      ];
    },
  };
}

function errorBody({ message, type = 'invalid_request_error', code }: Failure): JsonObject {
  return { error: { message, type, param: null, code: code ?? null } };
}

function events({ model }: ChatRequest) {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model };
  const event = (more: JsonObject) => `data: ${JSON.stringify({ ...head, ...more })}\n\n`;
  const delta = (fields: JsonObject, finish: string | null = null) =>
    event({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });
  return { event, delta };
}

function callDeltas({ calls = [] }: Answer): JsonObject[] {
  return calls.flatMap((call, index) => {
    const { id = `call_${randomId()}`, name } = call;
    const text = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);
    const half = Math.floor(text.length / 2);
    return [
      { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
      ...[text.slice(0, half), text.slice(half)].map((part) => ({
        tool_calls: [{ index, function: { arguments: part } }],
      })),
    ];
  });
}

function wantsUsage({ stream_options: options }: ChatRequest): boolean {
  return isObject(options) && options.include_usage === true;
}

function usageOf({ usage: [prompt, completion] = [10, 5] }: Answer): JsonObject {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** The faults for which a strict server would refuse a request. */
function requestFault(body: unknown, streamsOnly: boolean): string | undefined {
  if (!isObject(body) || typeof body.model !== 'string' || body.model === '')
    return 'you must provide a model';
  if (streamsOnly && body.stream !== true) return 'this server only streams';
  const broken = brokenText(body);
  if (broken !== undefined) return `we could not parse the JSON body of your request: ${broken}`;
  const { messages, tools } = body;
  if (!Array.isArray(messages) || messages.length === 0) return '[] is too short - messages';
  const fault = namesFault(
    objects(tools).map((tool) => (isObject(tool.function) ? tool.function.name : null)),
  );
  if (fault !== undefined) return fault;
  let open: string[] = [];
  const seen = new Set<string>();
  for (const [i, message] of messages.entries()) {
    if (!isObject(message)) return `messages.${i}: not an object`;
    if (message.role === 'tool') {
      const at = open.indexOf(String(message.tool_call_id));
      if (at === -1) return `messages.${i}: no tool call before it has the id ${message.tool_call_id}`;
      open.splice(at, 1);
      if (typeof message.content !== 'string') return `messages.${i}: the content must be a text`;
      continue;
    }
    if (open.length > 0) return `messages.${i}: these calls have no result: ${open.join(', ')}`;
    const fault = messageFault(message, seen);
    if (fault !== undefined) return `messages.${i}: ${fault}`;
    open = callsOf(message).map(({ id }) => String(id));
  }
  return open.length === 0 ? undefined : `these calls have no result: ${open.join(', ')}`;
}

const roles = new Set(['system', 'developer', 'user', 'assistant']);

function messageFault(message: Record<string, Json>, seen: Set<string>): string | undefined {
  const { role, content } = message;
  if (!roles.has(String(role))) return `no such role: ${String(role)}`;
  const calls = callsOf(message);
  for (const call of calls) {
    const fault = callFault(call, seen);
    if (fault !== undefined) return fault;
  }
  if (calls.length > 0 && (content === null || content === undefined || content === '')) return undefined;
  return contentFault(content, role === 'user');
}

function contentFault(content: Json | undefined, files: boolean): string | undefined {
  if (typeof content === 'string') return content.trim() === '' ? 'the content is empty' : undefined;
  if (!Array.isArray(content) || content.length === 0) return 'the content is empty';
  for (const part of content) {
    const fault = isObject(part) ? partFault(part, files) : 'a part is not an object';
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function partFault(part: Record<string, Json>, files: boolean): string | undefined {
  if (part.type === 'text')
    return typeof part.text === 'string' && part.text.trim() !== ''
      ? undefined
      : 'a text of the content is empty';
  if (!files) return `invalid content type: ${part.type}`;
  switch (part.type) {
    case 'image_url':
      return imageFault(isObject(part.image_url) ? part.image_url.url : undefined);
    case 'input_audio':
      return isObject(part.input_audio) && isBase64(part.input_audio.data) ? undefined : 'invalid audio';
    case 'file': {
      if (isObject(part.file) && typeof part.file.file_id === 'string') return undefined;
      const data = isObject(part.file) ? String(part.file.file_data) : '';
      return data.startsWith('data:application/pdf;base64,') ? undefined : 'invalid file data';
    }
    default:
      return `invalid content type: ${part.type}`;
  }
}

/** The fault of an image, given as an address or as data. */
export function imageFault(url: Json | undefined): string | undefined {
  const [, type, data] = /^data:([^;,]*);base64,(.*)$/s.exec(String(url)) ?? [];
  if (type === undefined) return /^https?:\/\//.test(String(url)) ? undefined : `invalid image URL: ${url}`;
  if (!imageTypes.has(type)) return `unsupported image: ${type}`;
  return isBase64(data) ? undefined : 'invalid base64 of an image';
}

/** The name of a tool, in every protocol. */
export const toolNamePattern = /^[a-zA-Z0-9_-]{1,64}$/;

/** Whether a value is the name of a tool. */
export function isToolName(name: Json | undefined): name is string {
  return typeof name === 'string' && toolNamePattern.test(name);
}

/** The fault of the names of tools that a request offers. */
export function namesFault(names: readonly (Json | undefined)[]): string | undefined {
  const wrong = names.find((name) => !isToolName(name));
  if (wrong !== undefined)
    return `Invalid tool name: ${wrong}. It should match pattern '${toolNamePattern.source}'`;
  return new Set(names).size === names.length ? undefined : 'tool names must be unique';
}

/** The objects of a list. */
export function objects(list: Json | undefined): Record<string, Json>[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function callFault(call: Record<string, Json>, seen: Set<string>): string | undefined {
  const { id } = call;
  if (typeof id !== 'string' || id === '') return 'a tool call has no id';
  if (id.length > 40) return `the id of a tool call is longer than 40: ${id}`;
  if (seen.has(id)) return `two tool calls have the id ${id}`;
  seen.add(id);
  const asked = call.function;
  if (!isObject(asked) || !isToolName(asked.name)) return 'a call has no valid name';
  return argumentsFault(asked.arguments);
}

/** The fault of the arguments of a call, which are a text in OpenAI's protocols. */
export function argumentsFault(text: Json | undefined): string | undefined {
  if (typeof text !== 'string') return 'the arguments of a call must be a text';
  try {
    return isObject(JSON.parse(text)) ? undefined : 'the arguments of a call must be an object';
  } catch {
    return 'the arguments of a call are not JSON';
  }
}

function callsOf(message: Record<string, Json>): Record<string, Json>[] {
  return objects(message.tool_calls);
}
