import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isToolName, namesFault, objects, toolNamePattern } from './chat.ts';
import { brokenText, imageTypes, isBase64 } from './protocol.ts';
import { isSealed, signatureOf } from './signed.ts';

type Block = Record<string, Json>;

/** The state of the conversation so far, as far as it matters for the next message. */
interface Said {
  /** Ids of all calls. */
  readonly ids: Set<string>;
  /** Calls of ours in the message before: the next one answers each, once, first of all. */
  asked: string[];
  /** Calls that the server runs, without a result yet. */
  readonly running: Map<string, string>;
}

/** The faults for which the messages API refuses a request. */
export function messagesFault(body: unknown): string | undefined {
  const broken = brokenText(body);
  if (broken !== undefined)
    return `The request body is not valid JSON: no low surrogate in string: ${broken}`;
  if (!isObject(body) || typeof body.model !== 'string' || body.model === '') return 'model: Field required';
  if (!Number.isInteger(body.max_tokens) || Number(body.max_tokens) < 1) return 'max_tokens: Field required';
  const { messages, tools } = body;
  if (!Array.isArray(messages) || messages.length === 0) return 'messages: at least one message is required';
  const fault = namesFault(objects(tools).map(({ name }) => name));
  if (fault !== undefined) return `tools.0.custom.name: ${fault}`;
  const said: Said = { ids: new Set(), asked: [], running: new Map() };
  for (const [i, message] of messages.entries()) {
    const fault = isObject(message)
      ? turnFault(message, messages[i - 1], said, i === messages.length - 1)
      : 'Input should be an object';
    if (fault !== undefined) return `messages.${i}: ${fault}`;
  }
  return said.asked.length === 0 ? undefined : unanswered(said.asked);
}

function turnFault(message: Block, before: Json | undefined, said: Said, last: boolean): string | undefined {
  const { role } = message;
  if (role !== 'user' && role !== 'assistant') return `Unexpected role "${role}"`;
  if (before === undefined && role !== 'user') return 'first message must use the "user" role';
  if (role === 'assistant' && isObject(before) && before.role === 'assistant')
    return 'roles must alternate between "user" and "assistant"';
  const blocks = blocksOf(message.content);
  if (blocks === undefined) return 'content: Input should be a valid list';
  if (blocks.length === 0) return 'all messages must have non-empty content';
  const fault = role === 'user' ? userFault(blocks, said) : assistantFault(blocks, said);
  return fault ?? (last && role === 'assistant' ? endFault(blocks, said) : undefined);
}

function blocksOf(content: Json | undefined): Block[] | undefined {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return Array.isArray(content) && content.every(isObject) ? (content as Block[]) : undefined;
}

function userFault(blocks: readonly Block[], said: Said): string | undefined {
  const asked = [...said.asked];
  let others = false;
  for (const [k, block] of blocks.entries()) {
    if (block.type === 'tool_result') {
      const at = asked.indexOf(String(block.tool_use_id));
      if (at === -1 || others)
        return `content.${k}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${block.tool_use_id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
      asked.splice(at, 1);
    } else others = true;
    const fault = userBlockFault(block);
    if (fault !== undefined) return `content.${k}: ${fault}`;
  }
  said.asked = [];
  if (asked.length > 0) return unanswered(asked);
  return others ? runningFault(said) : undefined;
}

function unanswered(ids: readonly string[]): string {
  return `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

function runningFault({ running }: Said): string | undefined {
  for (const [id, name] of running)
    return `\`${name}\` tool use with id \`${id}\` was found without a corresponding \`${name}_tool_result\` block`;
  return undefined;
}

function userBlockFault(block: Block): string | undefined {
  switch (block.type) {
    case 'text':
      return textFault(block);
    case 'image':
    case 'document':
      return sourceFault(block);
    case 'tool_result':
      return typeof block.content === 'string' || block.content === undefined
        ? undefined
        : resultFault(blocksOf(block.content));
    default:
      return `Input tag '${block.type}' found using 'type' does not match any of the expected tags`;
  }
}

function resultFault(blocks: readonly Block[] | undefined): string | undefined {
  if (blocks === undefined) return 'content: Input should be a valid list';
  for (const block of blocks) {
    const fault = block.type === 'tool_result' ? 'a result within a result' : userBlockFault(block);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function textFault({ text }: Block): string | undefined {
  if (typeof text !== 'string' || text === '') return 'text content blocks must be non-empty';
  return text.trim() === '' ? 'text content blocks must contain non-whitespace text' : undefined;
}

function sourceFault({ type, source }: Block): string | undefined {
  if (!isObject(source)) return 'source: Field required';
  if (source.type === 'url')
    return /^https?:\/\//.test(String(source.url)) ? undefined : 'Only HTTPS URLs are supported.';
  if (source.type === 'file')
    return typeof source.file_id === 'string' ? undefined : 'file_id: Field required';
  if (type === 'document' && source.type === 'text')
    return typeof source.data === 'string' && source.data !== '' ? undefined : 'document is empty';
  if (source.type !== 'base64') return `source.type: ${source.type} is not supported`;
  const allowed = type === 'image' ? imageTypes : new Set(['application/pdf']);
  if (!allowed.has(String(source.media_type)))
    return `source.base64.media_type: Input should be ${[...allowed].join(' or ')}`;
  return isBase64(source.data) ? undefined : 'source.base64: invalid base64 data';
}

function assistantFault(blocks: readonly Block[], said: Said): string | undefined {
  for (const [k, block] of blocks.entries()) {
    const fault = assistantBlockFault(block, said);
    if (fault !== undefined) return `content.${k}: ${fault}`;
  }
  const { type } = blocks.at(-1) ?? {};
  return type === 'thinking' || type === 'redacted_thinking'
    ? 'The final block in an assistant message cannot be `thinking`.'
    : undefined;
}

function assistantBlockFault(block: Block, said: Said): string | undefined {
  switch (block.type) {
    case 'text':
      return textFault(block);
    case 'thinking':
      return block.signature === signatureOf(String(block.thinking))
        ? undefined
        : 'Invalid `signature` in `thinking` block';
    case 'redacted_thinking':
      return isSealed(block.data) ? undefined : 'Invalid `data` in `redacted_thinking` block';
    case 'tool_use':
    case 'server_tool_use':
      return useFault(block, said);
    case 'web_search_tool_result':
      return searchFault(block, said);
    default:
      return `Input tag '${block.type}' found using 'type' does not match any of the expected tags`;
  }
}

function useFault({ type, id, name, input }: Block, { ids, asked, running }: Said): string | undefined {
  const pattern = type === 'tool_use' ? /^[a-zA-Z0-9_-]+$/ : /^srvtoolu_[a-zA-Z0-9_]+$/;
  if (!pattern.test(String(id))) return `${type}.id: String should match pattern '${pattern.source}'`;
  if (!isToolName(name)) return `${type}.name: String should match pattern '${toolNamePattern.source}'`;
  if (!isObject(input)) return `${type}.input: Input should be a valid dictionary`;
  if (ids.has(String(id))) return '`tool_use` ids must be unique';
  ids.add(String(id));
  if (type === 'tool_use') asked.push(String(id));
  else running.set(String(id), String(name));
  return undefined;
}

function searchFault({ tool_use_id: id, content }: Block, { running }: Said): string | undefined {
  if (!running.delete(String(id)))
    return `unexpected \`tool_use_id\` found in \`web_search_tool_result\` blocks: ${id}. Each \`web_search_tool_result\` block must have a corresponding \`server_tool_use\` block before it.`;
  if (!Array.isArray(content)) return undefined;
  return content.every((found) => isObject(found) && isSealed(found.encrypted_content))
    ? undefined
    : 'Invalid `encrypted_content` in `search_result` block';
}

/** A conversation ends with the user, or with a tool of the server that has not ended. */
function endFault(blocks: readonly Block[], { running, asked }: Said): string | undefined {
  const last = blocks.at(-1);
  if (last?.type === 'text' && String(last.text).trimEnd() !== last.text)
    return 'final assistant content cannot end with trailing whitespace';
  if (running.size > 0 || asked.length > 0) return undefined;
  return 'This model does not support assistant message prefill. The conversation must end with a user message.';
}
