import { isObject } from './json.js';

/** Returns the ids of a message's client-side calls, without those that the provider executed. */
export function clientCalls(payload         )           {
  if (!isObject(payload) || payload.role !== 'assistant' || !Array.isArray(payload.content)) return [];
  return payload.content.flatMap((part) =>
    isObject(part) &&
    part.type === 'tool-call' &&
    part.providerExecuted !== true &&
    typeof part.toolCallId === 'string'
      ? [part.toolCallId]
      : [],
  );
}
