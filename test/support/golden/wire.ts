import type { Entry, Json, Part } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { by } from './parts.ts';

type Fields = { readonly [name: string]: Json };

/** The parts of an entry that its own provider must get back: what it signed, keeps, cited, or ran itself. */
export function signedParts({ kind, payload, meta }: Entry): Part[] {
  if (kind !== 'message' || !isObject(payload) || payload.role !== 'assistant' || meta.partial === true)
    return [];
  const parts = (Array.isArray(payload.content) ? payload.content : []) as unknown as Part[];
  return parts.filter((part, i) => {
    const { type, providerOptions, providerExecuted, toolCallId } = part;
    if (type === 'reasoning')
      return providerOptions !== undefined && parts.slice(i + 1).some((next) => next.type !== 'reasoning');
    // A text that no reasoning of its message comes before is sent as a text again.
    if (type === 'text')
      return providerOptions !== undefined && parts.slice(0, i).some((before) => before.type === 'reasoning');
    if (type !== 'tool-call' || providerExecuted !== true) return false;
    return parts.some((other) => other.type === 'tool-result' && other.toolCallId === toolCallId);
  });
}

/** How Anthropic's messages have a part. */
export function anthropicBlock(part: Part): Fields {
  const { signature, redactedData, citations = null } = optionsOf(part, 'anthropic');
  if (part.type === 'text') return { type: 'text', text: String(part.text), citations };
  if (part.type === 'tool-call')
    return {
      type: 'server_tool_use',
      id: String(part.toolCallId),
      name: String(part.toolName),
      input: part.input as Json,
    };
  return signature === undefined
    ? { type: 'redacted_thinking', data: redactedData ?? null }
    : { type: 'thinking', thinking: String(part.text), signature };
}

/** How OpenAI's responses have a part that OpenAI keeps: by its id. */
export function keptItem(part: Part): Fields {
  return { type: 'item_reference', id: optionsOf(part, 'openai').itemId ?? String(part.toolCallId) };
}

/** How they have reasoning that OpenAI does not keep: sealed. */
export function sealedItem(part: Part): Fields {
  const { itemId = null, reasoningEncryptedContent = null } = optionsOf(part, 'openai');
  return {
    type: 'reasoning',
    id: itemId,
    encrypted_content: reasoningEncryptedContent,
    summary: [{ type: 'summary_text', text: String(part.text) }],
  };
}

function optionsOf({ providerOptions }: Part, provider: string): Record<string, Json> {
  const options = isObject(providerOptions) ? providerOptions[provider] : undefined;
  return isObject(options) ? options : {};
}

/** Everything in an entry that only the provider of that name can read, or knows: signatures, sealed texts, ids. */
export function opaqueTexts(entry: Entry, provider: string): string[] {
  return entry.meta.provider === provider ? [...opaque(entry.payload)] : [];
}

function* opaque(value: unknown): Iterable<string> {
  if (typeof value === 'string') {
    if (/^(?:sig:|sealed:|srvtoolu_|(?:rs|msg|ws)_[0-9a-f]{24}$)/.test(value)) yield value;
  } else if (typeof value === 'object' && value !== null)
    for (const field of Object.values(value)) yield* opaque(field);
}

/** The names under which providers sign messages here. */
export const signers: readonly string[] = [by.anthropic.provider, by.responses.provider, by.google.provider];
