import { type Awaitable, blobHashes, restoreBlobs, type StoredMessage } from '@tapedeck/tape';
import type { ModelMessage } from './model.ts';

/**
 * A view's messages as the AI SDK takes them: bytes put back, and texts well-formed, since providers refuse a lone
 * surrogate that the tape keeps as it was.
 */
export async function toPrompt(
  messages: readonly StoredMessage[],
  loadBlob: (hash: string) => Awaitable<Uint8Array>,
): Promise<ModelMessage[]> {
  const bytes = new Map<string, Uint8Array>();
  for (const hash of new Set(messages.flatMap((message) => blobHashes(message.content))))
    bytes.set(hash, await loadBlob(hash));
  const load = (hash: string) => bytes.get(hash) ?? new Uint8Array();
  return messages.map((message) => wellFormed(restoreBlobs(message, load)) as ModelMessage);
}

function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed();
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(wellFormed);
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name.toWellFormed(), wellFormed(field)]),
  );
}
