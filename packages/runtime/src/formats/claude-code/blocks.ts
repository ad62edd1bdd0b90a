import { type Json, type JsonObject, type Part, toolCall } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { text } from '../../plan/text.ts';
import { givenBlocks } from './attachments.ts';
import { type Block, blocksIn } from './content.ts';

/** The blocks of a record's message, or what the model got of another record. */
export function blocksOf(raw: JsonObject): readonly Block[] {
  if (raw.type === 'attachment' || raw.type === 'system') return givenBlocks(raw);
  return isObject(raw.message) ? blocksIn(raw.message.content) : [];
}

/** The text of a message. */
export function wordsOf(raw: JsonObject): string {
  return blocksOf(raw)
    .flatMap((block) => (typeof block.text === 'string' ? [block.text] : []))
    .join('\n');
}

/** Whether a block is empty. Providers refuse an empty text. */
export function isBlank(block: Block): boolean {
  if (block.type === 'text') return block.text === '';
  return block.type === 'thinking' && block.thinking === '' && text(block.signature) === undefined;
}

/** A block of a user message as a part; undefined for an unknown type. */
export function userPart(block: Block): Part | undefined {
  if (block.type === 'text' && typeof block.text === 'string') return { type: 'text', text: block.text };
  if (block.type === 'image' || block.type === 'document') return filePart(block);
  return undefined;
}

/** A block of an assistant message as a part; undefined for an unknown type. */
export function assistantPart(block: Block): Part | undefined {
  const { type } = block;
  if (type === 'text' && typeof block.text === 'string') return { type: 'text', text: block.text };
  if (type === 'thinking' && typeof block.thinking === 'string')
    return reasoning(block.thinking, 'signature', block.signature);
  if (type === 'redacted_thinking') return reasoning('', 'redactedData', block.data);
  if (type === 'tool_use') return callPart(block);
  if (type === 'server_tool_use' || type === 'mcp_tool_use') {
    const call = callPart(block);
    const serverName = type === 'mcp_tool_use' ? text(block.server_name) : undefined;
    const options =
      serverName === undefined
        ? {}
        : { providerOptions: { anthropic: { type: 'mcp-tool-use', serverName } } };
    return call && { ...call, providerExecuted: true, ...options };
  }
  return undefined;
}

/**
 * The result of a provider-executed call. It stays in the assistant message, with its content in the AI SDK's
 * form, so that it can be sent back to the provider. `names` maps the calls of the message to tools.
 */
export function providerResultPart(block: Block, names: ReadonlyMap<string, string>): Part | undefined {
  const toolCallId = text(block.tool_use_id);
  const toolName = toolCallId === undefined ? undefined : names.get(toolCallId);
  if (toolName === undefined || !text(block.type)?.endsWith('_tool_result')) return undefined;
  const value = webNames.has(toolName) ? sdkNames(block.content ?? null) : (block.content ?? null);
  const failed =
    block.is_error === true || (isObject(value) && text(value.type)?.endsWith('_error') === true);
  return {
    type: 'tool-result',
    toolCallId,
    toolName,
    output: { type: failed ? 'error-json' : 'json', value },
  };
}

/** Tools whose results have other field names in the SDK. */
const webNames: ReadonlySet<string> = new Set(['web_search', 'web_fetch']);

/**
 * Converts the field names to camel case: `encrypted_content` becomes `encryptedContent`. Adds the page age,
 * which the SDK requires.
 */
function sdkNames(value: Json): Json {
  if (Array.isArray(value)) return value.map(sdkNames);
  if (!isObject(value)) return value;
  const fields = Object.entries(value).map(([name, field]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    sdkNames(field),
  ]);
  const age = value.type === 'web_search_result' ? { pageAge: null } : {};
  return { ...age, ...Object.fromEntries(fields) };
}

/** The base64 source of an image or document, with its media type; undefined where other programs left something else. */
export function base64Of(block: Block): { mediaType: string; data: string } | undefined {
  const source = isObject(block.source) ? block.source : {};
  const given = source.type === 'base64' ? text(source.data) : undefined;
  const data = given !== undefined && /\s/.test(given) ? given.replace(/\s+/g, '') : given;
  // Providers refuse each request that has another text there.
  if (data === undefined || data.length % 4 !== 0 || !base64.test(data)) return undefined;
  const fallback = block.type === 'document' ? 'application/pdf' : 'image/png';
  const type = text(source.media_type) ?? '';
  return { mediaType: mediaTypes.test(type) ? type : fallback, data };
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const mediaTypes = /^[a-z]+\/[\w.+-]+$/i;

function filePart(block: Block): Part | undefined {
  const bytes = base64Of(block);
  if (bytes) return { type: 'file', ...bytes };
  const source = isObject(block.source) ? block.source : {};
  const url = text(source.url);
  if (source.type === 'url' && url !== undefined)
    return { type: 'file', mediaType: block.type === 'document' ? 'application/pdf' : 'image', data: url };
  const plain = source.type === 'text' ? text(source.data) : undefined;
  return plain === undefined ? undefined : { type: 'text', text: plain };
}

/** A provider refuses the next call unless it receives signatures byte for byte. */
function reasoning(thought: string, field: string, value: Json | undefined): Part {
  const part = { type: 'reasoning', text: thought };
  return text(value) === undefined ? part : { ...part, providerOptions: { anthropic: { [field]: value } } };
}

function callPart(block: Block): Part | undefined {
  const id = text(block.id);
  const name = text(block.name);
  return id === undefined || name === undefined ? undefined : toolCall(id, name, block.input ?? {});
}
