import type { StoredMessage } from '@tapedeck/tape';

/**
 * What a provider would refuse about messages: an empty one, two of the user in a row, a call of ours without
 * exactly one result directly after it, a result without a call, an id used twice. Nothing when they are valid.
 */
export function invalidities(messages: readonly StoredMessage[]): string[] {
  const found: string[] = [];
  const used = new Set<string>();
  let awaited: string[] = [];
  for (const [i, { role, content }] of messages.entries()) {
    if (content.length === 0) found.push(`message ${i} is empty`);
    if (role === 'user' && messages[i - 1]?.role === 'user') found.push(`message ${i} is a second user's`);
    const answered = role === 'tool' ? content.map((part) => String(part.toolCallId)) : [];
    if (answered.join() !== awaited.join()) found.push(`message ${i} answers ${answered}, not ${awaited}`);
    if (role === 'tool' && content.some((part) => part.type !== 'tool-result'))
      found.push(`message ${i} has more than results`);
    awaited = [];
    for (const part of content) {
      if (part.type === 'text' && part.text === '' && part.providerOptions === undefined)
        found.push(`message ${i} has an empty text`);
      if (role !== 'assistant' || part.type !== 'tool-call' || part.providerExecuted === true) continue;
      const id = String(part.toolCallId);
      if (used.has(id)) found.push(`message ${i} uses the id ${id} again`);
      used.add(id);
      awaited.push(id);
    }
  }
  if (awaited.length > 0) found.push(`nothing answers ${awaited}`);
  return found;
}
