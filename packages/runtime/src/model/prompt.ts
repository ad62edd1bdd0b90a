import type { Part, StoredMessage } from '@tapedeck/tape';
import { continueText, isObject } from '@tapedeck/tape/internal';
import { type Awaitable, blobHashes, restoreBlobs } from '@tapedeck/tape/store';
import type { ModelMessage } from './model.ts';

/**
 * A view's messages as the AI SDK takes them: with blobs and URLs restored, and with well-formed texts, since
 * providers refuse a lone surrogate. If the last message is a finished assistant message, a user message that
 * says to continue is added; the view shows the same message later.
 *
 * @example
 * ```ts
 * import { openDeck, toPrompt } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.run('Plan the release.');
 * const { messages } = await main.view();
 * const prompt = await toPrompt(messages, (hash) => deck.store.entries.blob(hash));
 * console.log(prompt.map(({ role }) => role)); // [ 'user', 'assistant', 'user' ]
 * ```
 */
export async function toPrompt(
  messages: readonly StoredMessage[],
  loadBlob: (hash: string) => Awaitable<Uint8Array>,
): Promise<ModelMessage[]> {
  const bytes = new Map<string, Uint8Array>();
  for (const hash of new Set(messages.flatMap((message) => blobHashes(message.content))))
    bytes.set(hash, await loadBlob(hash));
  const load = (hash: string) => bytes.get(hash) ?? new Uint8Array();
  const prompt = messages.map((message) => {
    const whole = wellFormed(restoreBlobs(message, load)) as StoredMessage;
    return { ...whole, content: whole.content.map(withAddresses) } as unknown as ModelMessage;
  });
  if (awaitsUser(messages)) prompt.push({ role: 'user', content: [{ type: 'text', text: continueText }] });
  return prompt;
}

/** Whether the assistant has finished. A provider-executed call without a result is still running. */
function awaitsUser(messages: readonly StoredMessage[]): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return false;
  const ran = new Set(
    last.content.filter(({ type }) => type === 'tool-result').map((part) => part.toolCallId),
  );
  return last.content.every((part) => part.type !== 'tool-call' || ran.has(part.toolCallId));
}

/** Tapes store an address as text; the SDK takes it only as a `URL`. */
function withAddresses(part: Part): Part {
  if (part.type === 'file' || part.type === 'reasoning-file')
    return { ...part, data: withAddress(part.data) };
  if (part.type !== 'tool-result' || !isObject(part.output) || !Array.isArray(part.output.value)) return part;
  if (part.output.type !== 'content') return part;
  const value = (part.output.value as readonly Part[]).map((item) =>
    item.type === 'file' ? { ...item, data: withAddress(item.data) } : item,
  );
  return { ...part, output: { ...part.output, value } };
}

function withAddress(data: unknown): unknown {
  if (!isObject(data) || data.type !== 'url' || typeof data.url !== 'string') return data;
  return { ...data, url: new URL(data.url) };
}

function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed();
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(wellFormed);
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name.toWellFormed(), wellFormed(field)]),
  );
}
