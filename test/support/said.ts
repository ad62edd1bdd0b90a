import { isObject } from '@tapedeck/tape/internal';

/** One side's words, in order, until the other side speaks. */
export interface Said {
  readonly role: 'user' | 'assistant';
  readonly items: readonly string[];
}

/**
 * What messages of Anthropic's protocol or of a view say, in a form in which both can be compared: consecutive messages of
 * one side are one, and so are the results of calls and what the user says with them. With `plain`, the texts of a side are
 * one text without the frames of reminders, which turns of the system do not have.
 */
export function saidIn(
  messages: readonly unknown[],
  { plain = false }: { readonly plain?: boolean } = {},
): Said[] {
  const said: { role: Said['role']; items: string[] }[] = [];
  for (const message of messages) {
    if (!isObject(message)) continue;
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const items = itemsIn(message.content);
    const last = said.at(-1);
    if (last?.role === role) last.items.push(...items);
    else said.push({ role, items });
  }
  if (plain) return said.map(({ role, items }) => ({ role, items: [plainText(items)] }));
  // What is attached to a result is sent at its end: the order within a side that has results is not compared.
  return said.map(({ role, items }) => ({
    role,
    items: items.some((item) => item.startsWith('result ')) ? items.toSorted() : items,
  }));
}

function plainText(items: readonly string[]): string {
  return items
    .join('\n')
    .replace(/<\/?system-reminder>/g, '')
    .replace(/\s*\n\s*/g, '\n')
    .trim();
}

function itemsIn(content: unknown): string[] {
  if (typeof content === 'string') return textsIn(content);
  return Array.isArray(content) ? content.flatMap(itemsOf) : [];
}

function itemsOf(part: unknown): string[] {
  if (!isObject(part)) return [];
  const { type, text, toolCallId, id, toolName, name, input } = part;
  switch (type) {
    case 'text':
      return textsIn(String(text));
    case 'thinking':
      return [`thought ${part.thinking} ${part.signature}`];
    case 'reasoning': {
      const { anthropic } = isObject(part.providerOptions) ? part.providerOptions : {};
      return [`thought ${text} ${isObject(anthropic) ? anthropic.signature : undefined}`];
    }
    case 'tool_use':
    case 'tool-call':
      return [`call ${toolCallId ?? id} ${toolName ?? name} ${JSON.stringify(input)}`];
    case 'tool_result':
      return [`result ${part.tool_use_id}`, ...itemsIn(part.content)];
    case 'tool-result': {
      const value = isObject(part.output) ? part.output.value : undefined;
      return [`result ${toolCallId}`, ...itemsIn(value)];
    }
    case 'image':
      return [`file ${isObject(part.source) ? part.source.data : undefined}`];
    case 'file':
      return [`file ${dataOf(part.data)}`];
    default:
      return [JSON.stringify(part)];
  }
}

function dataOf(data: unknown): unknown {
  return isObject(data) ? data.data : data;
}

/** The texts in one: reminders behind a result, and no frame of a notification or a summary. */
function textsIn(text: string): string[] {
  const notified = /<task-notification>[\s\S]*<\/task-notification>/.exec(text)?.[0];
  const summary = /<summary>\n([\s\S]*)\n<\/summary>/.exec(text)?.[1];
  return (notified ?? summary ?? text).split(/\n+(?=<system-reminder>)/).map((one) => one.trim());
}
