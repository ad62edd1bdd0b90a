import type { Dialect } from './dialect.ts';
import { isOwn } from './fit-part.ts';
import type { Rendered, StoredMessage } from './render.ts';

/** The tools that the target itself ran, as far as they can go back to it: each call with its result. */
export interface ProviderRuns {
  /** Calls and results that are complete, or that the provider has yet to go on with: indices of parts by message. */
  readonly paired: ReadonlyMap<StoredMessage, ReadonlySet<number>>;
  /** Messages that hold the result of a call of a message before, or stand between the two. */
  readonly continuing: ReadonlySet<StoredMessage>;
  /** The ids of those calls. */
  readonly ids: ReadonlySet<string>;
}

interface Open {
  readonly message: StoredMessage;
  readonly index: number;
  /** The assistant's messages since the one that holds the call. */
  readonly since: StoredMessage[];
}

/**
 * Pairs the calls that the target ran with their results. A result may come in a later message, when the provider
 * paused or waited for a tool of ours, but not after the user has spoken; a call without its result counts only
 * where the provider has yet to go on.
 */
export function providerRuns(rendered: readonly Rendered[], dialect: Dialect): ProviderRuns {
  const paired = new Map<StoredMessage, Set<number>>();
  const pair = (message: StoredMessage, index: number) =>
    paired.set(message, (paired.get(message) ?? new Set()).add(index));
  const continuing = new Set<StoredMessage>();
  const ids = new Set<string>();
  const open = new Map<string, Open>();
  for (const item of dialect.chat ? [] : rendered) {
    if (item.type === 'result') continue;
    const { message, provider: author } = item;
    if (message.role === 'user') {
      open.clear();
      continue;
    }
    for (const { since } of open.values()) since.push(message);
    for (const [index, part] of message.content.entries()) {
      const id = String(part.toolCallId);
      if (!isOwn(part, author, dialect)) continue;
      if (part.type === 'tool-call' && part.providerExecuted === true && !ids.has(id) && !open.has(id))
        open.set(id, { message, index, since: [] });
      const call = part.type === 'tool-result' ? open.get(id) : undefined;
      if (call === undefined) continue;
      open.delete(id);
      ids.add(id);
      pair(call.message, call.index);
      pair(message, index);
      for (const between of call.since) continuing.add(between);
    }
  }
  for (const [id, { message, index, since }] of dialect.pauses ? open : []) {
    if (since.length > 0 && !asksTool(since.at(-1))) continue;
    ids.add(id);
    pair(message, index);
    for (const between of since) continuing.add(between);
  }
  return { paired, continuing, ids };
}

/** Whether a message waits for a tool of ours. */
function asksTool(message: StoredMessage | undefined): boolean {
  return (
    message?.content.some((part) => part.type === 'tool-call' && part.providerExecuted !== true) === true
  );
}
