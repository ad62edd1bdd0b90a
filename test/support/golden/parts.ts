import { assistant, type Draft, type Json, type Meta, type Part, toolCall } from '@tapedeck/tape';
import { issued, sealed, signatureOf } from '../provider/signed.ts';

/** A picture of one pixel. */
export const png = Uint8Array.from(
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  ),
);
export const pdf = new TextEncoder().encode('%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n');
export const bmp = Uint8Array.from([0x42, 0x4d, 0x1e, ...Array.from({ length: 300 }, (_, i) => i % 7)]);
/** Long enough to be kept beside its entry as base64, too. */
export const largePng = Uint8Array.from([...png, ...Array.from({ length: 600 }, (_, i) => i % 251)]);

/** The author of a message, as runs record it. */
export const by = {
  anthropic: { provider: 'anthropic.messages', model: 'claude' },
  responses: { provider: 'openai.responses', model: 'gpt' },
  openaiChat: { provider: 'openai.chat', model: 'gpt' },
  compatible: { provider: 'openai-compatible.chat', model: 'qwen' },
  google: { provider: 'google.generative-ai', model: 'gemini' },
} satisfies Record<string, Meta>;

export const text = (words: string): Part => ({ type: 'text', text: words });

/** Thoughts as Anthropic signs them. */
export const thought = (words: string): Part => ({
  type: 'reasoning',
  text: words,
  providerOptions: { anthropic: { signature: signatureOf(words) } },
});

export const redacted = (seed: string): Part => ({
  type: 'reasoning',
  text: '',
  providerOptions: { anthropic: { redactedData: sealed(seed) } },
});

/** A search that Anthropic ran, and what it found. */
export function search(id: string, query: string): [Part, Part] {
  const url = `https://found.example/${query}`;
  const found = {
    type: 'web_search_result',
    url,
    title: query,
    pageAge: null,
    encryptedContent: sealed(url),
  };
  const call = { toolCallId: `srvtoolu_${id}`, toolName: 'web_search' };
  return [
    { type: 'tool-call', ...call, input: { query }, providerExecuted: true },
    { type: 'tool-result', ...call, output: { type: 'json', value: [found] } },
  ];
}

/** A program that Google ran, and its output. */
export function execution(id: string, input: Json = { language: 'PYTHON', code: '1' }): [Part, Part] {
  const call = { toolCallId: `run_${id}`, toolName: 'code_execution' };
  return [
    { type: 'tool-call', ...call, input, providerExecuted: true },
    { type: 'tool-result', ...call, output: { type: 'json', value: { outcome: 'OUTCOME_OK', output: '1' } } },
  ];
}

/** Thoughts as OpenAI's responses have them: an item by its id, with what only OpenAI can read. */
export const item = (seed: string): Part => ({
  type: 'reasoning',
  text: seed,
  providerOptions: { openai: { itemId: issued('rs', seed), reasoningEncryptedContent: sealed(seed) } },
});

/** A text that is an item of OpenAI's responses. */
export const itemText = (words: string): Part => ({
  type: 'text',
  text: words,
  providerOptions: { openai: { itemId: issued('msg', words) } },
});

/** A search that OpenAI ran. */
export function openaiSearch(query: string): [Part, Part] {
  const call = { toolCallId: issued('ws', query), toolName: 'web_search' };
  const value = {
    action: { type: 'search', query },
    sources: [{ type: 'url', url: 'https://found.example/' }],
  };
  return [
    { type: 'tool-call', ...call, input: {}, providerExecuted: true },
    { type: 'tool-result', ...call, output: { type: 'json', value } },
  ];
}

/** A call of ours as Google signs it. */
export const signedCall = (id: string, name: string, input: Json): Part => ({
  ...toolCall(id, name, input),
  providerOptions: { google: { thoughtSignature: sealed(`google ${id}`) } },
});

/** A message of a model. */
export const said = (author: Meta, ...parts: readonly (Part | string)[]): Draft =>
  assistant(
    parts.map((part) => (typeof part === 'string' ? text(part) : part)),
    author,
  );

/** An answer that broke off. */
export const partial = (author: Meta, ...parts: readonly (Part | string)[]): Draft =>
  said({ ...author, partial: true }, ...parts);
