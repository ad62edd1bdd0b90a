import type { Part, StoredMessage } from '@tapedeck/tape';

/**
 * What a provider would refuse about messages: an empty one, two of one role in a row, an assistant that begins, a
 * call of ours without exactly one result directly after it, a result without a call, an id used twice, a user who
 * speaks while the provider runs a tool. Nothing when they are valid.
 */
export function invalidities(messages: readonly StoredMessage[]): string[] {
  const found: string[] = [];
  const used = new Set<string>();
  const running = new Set<string>();
  let awaited: string[] = [];
  for (const [i, { role, content }] of messages.entries()) {
    if (content.length === 0) found.push(`message ${i} is empty`);
    if (messages[i - 1]?.role === role && running.size === 0)
      found.push(`message ${i} is a second one of the ${role}`);
    if (i === 0 && role !== 'user') found.push(`the ${role} begins`);
    const answered = role === 'tool' ? content.map((part) => String(part.toolCallId)) : [];
    if (answered.join() !== awaited.join()) found.push(`message ${i} answers ${answered}, not ${awaited}`);
    if (role === 'tool' && content.some((part) => part.type !== 'tool-result'))
      found.push(`message ${i} has more than results`);
    if (role === 'user' && running.size > 0)
      found.push(`message ${i} is the user's, while ${[...running]} is run`);
    awaited = [];
    for (const part of content) {
      if (part.type === 'text' && part.text === '' && part.providerOptions === undefined)
        found.push(`message ${i} has an empty text`);
      if (role === 'assistant') follow(running, part);
      if (role !== 'assistant' || part.type !== 'tool-call') continue;
      const id = String(part.toolCallId);
      if (used.has(id)) found.push(`message ${i} uses the id ${id} again`);
      used.add(id);
      if (part.providerExecuted !== true) awaited.push(id);
    }
  }
  if (awaited.length > 0) found.push(`nothing answers ${awaited}`);
  return found;
}

/** A call that the provider runs may have its result in the next message, which then continues this one. */
function follow(running: Set<string>, part: Part): void {
  if (part.type === 'tool-call' && part.providerExecuted === true) running.add(String(part.toolCallId));
  if (part.type === 'tool-result') running.delete(String(part.toolCallId));
}
