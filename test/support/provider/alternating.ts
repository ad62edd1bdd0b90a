import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { chat } from './chat.ts';
import { invalid, type Protocol } from './protocol.ts';

/**
 * A server of open models behind OpenAI's protocol, with a chat template that lets user and assistant take turns and
 * nothing else, as Mistral's and Gemma's do, and with a model that reads texts alone.
 */
export const alternating: Protocol = {
  ...chat,
  fault: (body) => chat.fault(body) ?? templateFault(body, false),
};

/** The same, with a model that sees images too. */
export const alternatingVision: Protocol = {
  ...chat,
  fault: (body) => chat.fault(body) ?? templateFault(body, true),
};

/** Which roles may follow which. A message with calls is not the assistant's turn yet. */
const followers: Readonly<Record<string, readonly string[]>> = {
  start: ['user'],
  user: ['assistant', 'calls'],
  assistant: ['user'],
  calls: ['tool'],
  tool: ['tool', 'assistant', 'calls'],
};

function templateFault(body: unknown, sees: boolean) {
  const messages = isObject(body) && Array.isArray(body.messages) ? body.messages.filter(isObject) : [];
  const spoken = messages[0]?.role === 'system' ? messages.slice(1) : messages;
  let last = 'start';
  for (const message of spoken) {
    const role = Array.isArray(message.tool_calls) ? 'calls' : String(message.role);
    if (followers[last]?.includes(role) !== true)
      return invalid(
        last === 'start' || role === 'system'
          ? 'After the optional system message, conversation roles must alternate user/assistant/user/assistant/...'
          : `Unexpected role '${message.role}' after role '${last === 'calls' ? 'assistant' : last}'`,
      );
    if (!sees && !isText(message.content)) return invalid('this model is not a multimodal model');
    last = role;
  }
  return last === 'user' || last === 'tool'
    ? undefined
    : invalid(
        'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
      );
}

function isText(content: Json | undefined): boolean {
  return !Array.isArray(content) || content.every((part) => isObject(part) && part.type === 'text');
}
