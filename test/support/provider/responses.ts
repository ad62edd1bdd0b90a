import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { argumentsFault, chat, imageFault, isToolName, namesFault, objects } from './chat.ts';
import {
  type Answer,
  brokenText,
  type ChatRequest,
  invalid,
  isBase64,
  type Protocol,
  randomId,
  textsOf,
} from './protocol.ts';
import { isSealed, issued, sealed, wasIssued } from './signed.ts';

/** OpenAI's responses. */
export const responses: Protocol = {
  ...chat,
  path: '/v1/responses',
  fault: (body) => {
    const fault = requestFault(body);
    return fault === undefined ? undefined : invalid(fault);
  },
  overflow: invalid(
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    'context_length_exceeded',
  ),
  begin: (request, answer) => {
    const items = itemsBefore(answer);
    const message = messageItem(answer, items.length);
    return [
      event({ type: 'response.created', response: responseOf(request) }),
      ...items.flatMap((item, index) => itemEvents(index, item)),
      ...(message === undefined
        ? []
        : [
            event({ type: 'response.output_item.added', output_index: items.length, item: message }),
            ...textsOf(answer.text).map((delta) =>
              event({
                type: 'response.output_text.delta',
                item_id: message.id,
                output_index: items.length,
                delta,
              }),
            ),
          ]),
    ];
  },
  end: (request, answer) => {
    if (answer.breaks)
      return [
        event({
          type: 'error',
          sequence_number: 1,
          error: { type: 'server_error', code: 'server_error', message: 'overloaded', param: null },
        }),
      ];
    const before = itemsBefore(answer).length;
    const message = messageItem(answer, before);
    const texts = message === undefined ? 0 : 1;
    const calls = (answer.calls ?? []).map(({ id = `call_${randomId()}`, name, arguments: input }) => ({
      type: 'function_call',
      id: issued('fc', id),
      call_id: id,
      name,
      arguments: typeof input === 'string' ? input : JSON.stringify(input),
      status: 'completed',
    }));
    const [input_tokens, output_tokens] = answer.usage ?? [10, 5];
    const usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
    return [
      ...(message === undefined
        ? []
        : [event({ type: 'response.output_item.done', output_index: before, item: message })]),
      ...calls.flatMap((item, i) => itemEvents(before + texts + i, item)),
      event({ type: 'response.completed', response: { ...responseOf(request), usage } }),
    ];
  },
};

function event(data: JsonObject): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function responseOf({ model }: ChatRequest): JsonObject {
  return { id: `resp_${randomId()}`, created_at: 1, model };
}

function itemEvents(index: number, item: JsonObject): string[] {
  return [
    event({
      type: 'response.output_item.added',
      output_index: index,
      item: { ...item, ...(item.type === 'function_call' && { arguments: '' }) },
    }),
    ...(item.type === 'reasoning'
      ? [
          event({ type: 'response.reasoning_summary_part.added', item_id: item.id ?? '', summary_index: 0 }),
          event({
            type: 'response.reasoning_summary_text.delta',
            item_id: item.id ?? '',
            summary_index: 0,
            delta: String(item.said),
          }),
        ]
      : []),
    event({ type: 'response.output_item.done', output_index: index, item }),
  ];
}

function itemsBefore({ reasoning, search }: Answer): JsonObject[] {
  return [
    ...(reasoning === undefined
      ? []
      : [
          {
            type: 'reasoning',
            id: issued('rs', reasoning),
            encrypted_content: sealed(reasoning),
            summary: [],
            said: reasoning,
          },
        ]),
    ...(search === undefined
      ? []
      : [
          {
            type: 'web_search_call',
            id: issued('ws', search),
            status: 'completed',
            action: {
              type: 'search',
              query: search,
              sources: [{ type: 'url', url: 'https://found.example/' }],
            },
          },
        ]),
  ];
}

function messageItem({ text }: Answer, index: number): (JsonObject & { id: string }) | undefined {
  const texts = textsOf(text);
  return texts.length === 0
    ? undefined
    : { type: 'message', id: issued('msg', `${index} ${texts.join('')}`) };
}

/** The items so far, as far as they matter for the next one. */
interface Given {
  readonly items: Set<string>;
  readonly calls: Set<string>;
  readonly open: Set<string>;
  /** A reasoning item, as long as what it led to has not followed. */
  reasoning: string | undefined;
}

function requestFault(body: unknown): string | undefined {
  const broken = brokenText(body);
  if (broken !== undefined) return `we could not parse the JSON body of your request: ${broken}`;
  if (!isObject(body) || typeof body.model !== 'string' || body.model === '')
    return "missing required parameter: 'model'";
  if (body.stream !== true) return 'this server only streams';
  const { input, tools } = body;
  if (!Array.isArray(input) || input.length === 0) return "missing required parameter: 'input'";
  const functions = objects(tools).filter(({ type }) => type === 'function');
  const fault = namesFault(functions.map(({ name }) => name));
  if (fault !== undefined) return fault;
  const given: Given = { items: new Set(), calls: new Set(), open: new Set(), reasoning: undefined };
  for (const [i, item] of input.entries()) {
    const fault = isObject(item) ? itemFault(item, given) : 'not an object';
    if (fault !== undefined) return `input[${i}]: ${fault}`;
  }
  if (given.reasoning !== undefined) return looseReasoning(given.reasoning);
  const [open] = given.open;
  return open === undefined ? undefined : `No tool output found for function call ${open}.`;
}

function looseReasoning(id: string): string {
  return `Item '${id}' of type 'reasoning' was provided without its required following item.`;
}

function itemFault(item: Record<string, Json>, given: Given): string | undefined {
  const type = item.type ?? 'message';
  const reference = type === 'item_reference';
  const led = given.reasoning;
  const fromModel =
    reference ||
    type === 'reasoning' ||
    type === 'function_call' ||
    item.role === 'assistant' ||
    type === 'web_search_call';
  if (led !== undefined && !fromModel) return looseReasoning(led);
  given.reasoning = undefined;
  if (typeof item.id === 'string') {
    if (!wasIssued(item.id)) return `Item with id '${item.id}' not found.`;
    if (given.items.has(item.id)) return `Duplicate item found with id ${item.id}.`;
    given.items.add(item.id);
  }
  switch (type) {
    case 'item_reference':
      if (String(item.id).startsWith('rs_')) given.reasoning = String(item.id);
      return typeof item.id === 'string' ? undefined : 'missing id';
    case 'reasoning':
      given.reasoning = String(item.id);
      return isSealed(item.encrypted_content) ? undefined : 'The encrypted content could not be verified.';
    case 'function_call':
      return callFault(item, given);
    case 'function_call_output':
      if (!given.open.delete(String(item.call_id)))
        return `No tool call found for function call output with call_id ${item.call_id}.`;
      return outputFault(item.output);
    case 'web_search_call':
      return undefined;
    case 'message':
      return messageFault(item);
    default:
      return `Invalid value: '${type}'.`;
  }
}

function callFault(
  { call_id: id, name, arguments: text }: Record<string, Json>,
  given: Given,
): string | undefined {
  if (typeof id !== 'string' || id === '' || id.length > 64) return `Invalid 'call_id': ${id}`;
  if (given.calls.has(id)) return `Duplicate call_id ${id}`;
  given.calls.add(id);
  given.open.add(id);
  if (!isToolName(name)) return `Invalid 'name': ${name}`;
  return argumentsFault(text);
}

function messageFault({ role, content }: Record<string, Json>): string | undefined {
  if (!['system', 'developer', 'user', 'assistant'].includes(String(role)))
    return `Invalid value: '${role}'.`;
  if (typeof content === 'string') return content.trim() === '' ? 'the content is empty' : undefined;
  return partsFault(content);
}

function outputFault(output: Json | undefined): string | undefined {
  return typeof output === 'string' ? undefined : partsFault(output);
}

function partsFault(parts: Json | undefined): string | undefined {
  if (!Array.isArray(parts) || parts.length === 0) return 'the content is empty';
  for (const part of parts) {
    const fault = isObject(part) ? partFault(part) : 'not an object';
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function partFault(part: Record<string, Json>): string | undefined {
  switch (part.type) {
    case 'input_text':
      return String(part.text).trim() === '' ? 'a text of the content is empty' : undefined;
    case 'input_image':
      return typeof part.file_id === 'string' ? undefined : imageFault(part.image_url);
    case 'input_file': {
      if (typeof part.file_url === 'string' || typeof part.file_id === 'string') return undefined;
      const [, data] = /^data:application\/pdf;base64,(.*)$/s.exec(String(part.file_data)) ?? [];
      return isBase64(data) ? undefined : 'Expected a base64-encoded PDF.';
    }
    default:
      return `Invalid value: '${part.type}'.`;
  }
}
