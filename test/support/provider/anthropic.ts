import type { JsonObject } from '@tapedeck/tape';
import { messagesFault } from './anthropic-faults.ts';
import { type Answer, apiKey, type Failure, invalid, type Protocol, randomId, textsOf } from './protocol.ts';
import { sealed, signatureOf } from './signed.ts';

/** Anthropic's messages. */
export const anthropic: Protocol = {
  path: '/v1/messages',
  refuses: (headers) => {
    if (headers['x-api-key'] !== apiKey)
      return { status: 401, message: 'invalid x-api-key', type: 'authentication_error' };
    return headers['anthropic-version'] === undefined
      ? invalid('anthropic-version: header is required')
      : undefined;
  },
  fault: (body) => {
    const fault = messagesFault(body);
    return fault === undefined ? undefined : invalid(fault);
  },
  overflow: invalid('prompt is too long: 200113 tokens > 200000 maximum'),
  errorBody,
  begin: (request, answer) => {
    const usage = {
      input_tokens: answer.usage?.[0] ?? 10,
      cache_read_input_tokens: 4,
      cache_creation_input_tokens: 2,
      output_tokens: 1,
    };
    const message = {
      id: `msg_${randomId()}`,
      type: 'message',
      role: 'assistant',
      model: request.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    };
    const texts = textsOf(answer.text);
    const before = blocksBefore(answer);
    return [
      event({ type: 'message_start', message }),
      event({ type: 'ping' }),
      ...before.flatMap((block, index) => blockEvents(index, block)),
      ...(texts.length === 0
        ? []
        : [
            event({
              type: 'content_block_start',
              index: before.length,
              content_block: { type: 'text', text: '' },
            }),
          ]),
      ...texts.map((text) =>
        event({ type: 'content_block_delta', index: before.length, delta: { type: 'text_delta', text } }),
      ),
    ];
  },
  end: (_request, answer) => {
    if (answer.breaks)
      return [event(errorBody({ status: 529, message: 'Overloaded', type: 'overloaded_error' }))];
    const texts = textsOf(answer.text).length > 0 ? 1 : 0;
    const index = blocksBefore(answer).length;
    const calls = (answer.calls ?? []).map(({ id = `toolu_${randomId()}`, name, arguments: input }) => ({
      type: 'tool_use',
      id,
      name,
      input,
    }));
    const stop_reason = answer.finish ?? (calls.length > 0 ? 'tool_use' : 'end_turn');
    return [
      ...(texts === 0 ? [] : [event({ type: 'content_block_stop', index })]),
      ...calls.flatMap((block, i) => blockEvents(index + texts + i, block)),
      event({
        type: 'message_delta',
        delta: { stop_reason, stop_sequence: null },
        usage: { output_tokens: answer.usage?.[1] ?? 5 },
      }),
      event({ type: 'message_stop' }),
    ];
  },
};

function errorBody({ message, type = 'api_error' }: Failure): JsonObject {
  return { type: 'error', error: { type, message }, request_id: 'req_1' };
}

function event(data: JsonObject): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Thoughts and what the server ran itself come before the text. */
function blocksBefore({ reasoning, redacted, search }: Answer): JsonObject[] {
  const id = `srvtoolu_${randomId()}`;
  const url = `https://found.example/${search}`;
  return [
    ...(redacted === undefined ? [] : [{ type: 'redacted_thinking', data: sealed(redacted) }]),
    ...(reasoning === undefined
      ? []
      : [{ type: 'thinking', thinking: reasoning, signature: signatureOf(reasoning) }]),
    ...(search === undefined
      ? []
      : [
          { type: 'server_tool_use', id, name: 'web_search', input: { query: search } },
          {
            type: 'web_search_tool_result',
            tool_use_id: id,
            content: [
              {
                type: 'web_search_result',
                url,
                title: search,
                encrypted_content: sealed(url),
                page_age: null,
              },
            ],
          },
        ]),
  ];
}

/** A block as its events: what grows, grows by deltas. */
function blockEvents(index: number, block: JsonObject): string[] {
  const { start, deltas } = parted(block);
  return [
    event({ type: 'content_block_start', index, content_block: start }),
    ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
    event({ type: 'content_block_stop', index }),
  ];
}

function parted(block: JsonObject): { start: JsonObject; deltas: JsonObject[] } {
  const { type, thinking, signature, input } = block;
  if (type === 'thinking')
    return {
      start: { type, thinking: '' },
      deltas: [
        ...String(thinking)
          .split(/(?<=\s)/)
          .map((piece) => ({ type: 'thinking_delta', thinking: piece })),
        { type: 'signature_delta', signature: signature ?? '' },
      ],
    };
  if (type !== 'tool_use' && type !== 'server_tool_use') return { start: block, deltas: [] };
  const json = typeof input === 'string' ? input : JSON.stringify(input);
  const half = Math.floor(json.length / 2);
  return {
    start: { ...block, input: {} },
    deltas: [json.slice(0, half), json.slice(half)].map((part) => ({
      type: 'input_json_delta',
      partial_json: part,
    })),
  };
}
