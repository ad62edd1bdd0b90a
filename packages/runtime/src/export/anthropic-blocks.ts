import type { Json, JsonObject, Part } from '@tapedeck/tape';
import { isClientCall, isObject } from '@tapedeck/tape/internal';
import { chatFile } from '../stream/chat-file.ts';
import { fileText, isFailed, outputText } from './output-text.ts';

/** A content block of an Anthropic message. */
export type Block = JsonObject;

/** The parts of a message that was made valid for Anthropic, their blobs restored, as content blocks. */
export function blocksOf(parts: readonly Part[]): readonly Block[] {
  return parts.flatMap((part): Block[] => {
    const { type, text } = part;
    if (type === 'text') return [{ type, text: String(text) }];
    if (type === 'reasoning') return thinkingOf(part);
    if (type === 'tool-call') return [callOf(part)];
    if (type === 'tool-result') return [providerResultOf(part)];
    return type === 'file' || type === 'image' ? [fileOf(part)] : [];
  });
}

/** The result of a call, as a block. */
export function resultOf(part: Part): Block {
  const { toolCallId, output } = part;
  const items =
    isObject(output) && output.type === 'content' && Array.isArray(output.value) ? output.value : [];
  const hasFiles = items.some((item) => isObject(item) && item.type !== 'text');
  const content: Json = hasFiles
    ? items.filter(isObject).map((item): Block => {
        const { type, text } = item;
        return type === 'text' ? { type, text: String(text) } : fileOf({ ...item, type: 'file' });
      })
    : outputText(part);
  return {
    type: 'tool_result',
    tool_use_id: String(toolCallId),
    content,
    ...(isFailed(part) && { is_error: true }),
  };
}

/** Anthropic takes a thought back only as it signed it. */
function thinkingOf({ text, providerOptions }: Part): Block[] {
  const options = isObject(providerOptions) ? providerOptions.anthropic : undefined;
  const { signature, redactedData } = isObject(options) ? options : {};
  if (typeof redactedData === 'string') return [{ type: 'redacted_thinking', data: redactedData }];
  return typeof signature === 'string' ? [{ type: 'thinking', thinking: String(text), signature }] : [];
}

function callOf(part: Part): Block {
  const { toolCallId, toolName, input } = part;
  const call = { id: String(toolCallId), name: String(toolName), input: (input ?? {}) as Json };
  if (isClientCall(part)) return { type: 'tool_use', ...call };
  const server = serverOf(part);
  return server === undefined
    ? { type: 'server_tool_use', ...call }
    : { type: 'mcp_tool_use', ...call, server_name: server };
}

function serverOf({ providerOptions }: Part): string | undefined {
  const options = isObject(providerOptions) ? providerOptions.anthropic : undefined;
  return isObject(options) && typeof options.serverName === 'string' ? options.serverName : undefined;
}

/** The result of a call that the provider ran, as the provider wrote it. */
function providerResultOf(part: Part): Block {
  const { toolCallId, toolName, output } = part;
  const value = isObject(output) ? (output.value as Json) : null;
  const isMcp = serverOf(part) !== undefined;
  return {
    type: isMcp ? 'mcp_tool_result' : `${String(toolName)}_tool_result`,
    tool_use_id: String(toolCallId),
    content: apiNames(value),
    ...(isMcp && isFailed(part) && { is_error: true }),
  };
}

/** Converts the field names of the AI SDK to those of the API: `encryptedContent` becomes `encrypted_content`. */
function apiNames(value: Json): Json {
  if (Array.isArray(value)) return value.map(apiNames);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      apiNames(field as Json),
    ]),
  );
}

/** An image, a PDF or a text as a block; anything else as its name. */
function fileOf(part: Part): Block {
  const file = chatFile({ ...part, data: part.data ?? part.image ?? part.url });
  if (file === undefined) return { type: 'text', text: fileText(part) };
  const { mediaType, url, filename } = file;
  const type = /^image\b/i.test(mediaType) ? 'image' : 'document';
  const title = filename === undefined || type === 'image' ? {} : { title: filename };
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? [];
  if (data === undefined) return { type, source: { type: 'url', url }, ...title };
  if (mediaType === 'text/plain')
    return {
      type,
      source: { type: 'text', media_type: mediaType, data: Buffer.from(data, 'base64').toString('utf8') },
      ...title,
    };
  const media_type = type === 'image' ? imageType(mediaType, data) : 'application/pdf';
  return { type, source: { type: 'base64', media_type, data }, ...title };
}

/** The type of an image, by its first bytes where it is not named. */
function imageType(mediaType: string, data: string): string {
  if (/^image\/[a-z]/i.test(mediaType)) return mediaType.toLowerCase().replace('image/jpg', 'image/jpeg');
  const known = { '/9j/': 'image/jpeg', R0lG: 'image/gif', UklG: 'image/webp' };
  return known[data.slice(0, 4) as keyof typeof known] ?? 'image/png';
}
