import { type Part, type StoredMessage, view } from '@tapedeck/tape';
import { isClientCall, legalToolName } from '@tapedeck/tape/internal';
import { chatFile } from '../stream/chat-file.ts';
import { restored } from '../ui/restored.ts';
import { contextsOf, type ExportSource, type ModelContext, type OfferedTool } from './contexts.ts';
import { fileText, outputText } from './output-text.ts';

/**
 * Writes a line for each context that the model had, in the form of OpenAI's files for fine-tuning: the messages up to its
 * last answer, and the definitions of the tools that it was sent, where the tape has them. An answer that the line before has already, since it was kept over a compaction, has weight 0. A context
 * without an answer has no line.
 */
export async function* writeOpenaiChat(source: ExportSource): AsyncGenerator<string, number> {
  let count = 0;
  for await (const context of contextsOf(source)) {
    const messages = await messagesOf(source, context);
    const last = messages.findLastIndex(({ role, weight }) => role === 'assistant' && weight !== 0);
    if (last === -1) continue;
    const { instructions, tools = [] } = context;
    const system = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
    // One message a piece: a context may be as large as a window of a model, with its images.
    let isFirst = true;
    yield '{"messages":[';
    for (const message of [...system, ...messages.slice(0, last + 1)]) {
      yield `${isFirst ? '' : ','}${JSON.stringify(message)}`;
      isFirst = false;
    }
    const offered = tools.flatMap(functionOf);
    yield offered.length === 0 ? ']}\n' : `],"tools":${JSON.stringify(offered)}}\n`;
    count += 1;
  }
  return count;
}

/** The definition of a tool; none of one that the provider runs. */
function functionOf({ name, description, schema }: OfferedTool): readonly object[] {
  if (schema === undefined) return [];
  const about = description === undefined ? {} : { description };
  return [{ type: 'function', function: { name: legalToolName(name), ...about, parameters: schema } }];
}

/** A message of a chat completion. */
type ChatMessage = { readonly role: string; readonly weight?: 0 } & { readonly [field: string]: unknown };

/** The dialect of chat completions: legal ids of calls, and files of other kinds as their names. */
const target = { provider: 'openai.chat' };

async function messagesOf(
  { store }: ExportSource,
  { entries, repeated }: ModelContext,
): Promise<readonly ChatMessage[]> {
  const { messages } = view(entries, { target });
  const before = repeated.length === 0 ? 0 : view(repeated, { target }).messages.length;
  const made: ChatMessage[] = [];
  for (const [i, message] of messages.entries())
    made.push(...chatMessages(await restored(store, message), i < before));
  return made;
}

function chatMessages({ role, content }: StoredMessage, isRepeated: boolean): readonly ChatMessage[] {
  if (role === 'tool')
    return content.map((part) => ({
      role,
      tool_call_id: part.toolCallId,
      content: outputText(part),
    }));
  if (role === 'user') return [{ role, content: userContent(content) }];
  const texts = content.flatMap(({ type, text }) => (type === 'text' ? [String(text)] : []));
  const calls = content.filter(isClientCall).map(({ toolCallId, toolName, input }) => ({
    id: toolCallId,
    type: 'function',
    function: { name: toolName, arguments: JSON.stringify(input ?? {}) },
  }));
  if (texts.length === 0 && calls.length === 0) return [];
  return [
    {
      role,
      ...(texts.length > 0 && { content: texts.join('\n') }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(isRepeated && { weight: 0 }),
    },
  ];
}

/** A text alone is a text; with images, it is a part. */
function userContent(parts: readonly Part[]): unknown {
  const made = parts.map((part) => {
    if (part.type === 'text') return { type: 'text', text: String(part.text) };
    const file = chatFile(part);
    return file !== undefined && /^image\//i.test(file.mediaType)
      ? { type: 'image_url', image_url: { url: file.url } }
      : { type: 'text', text: fileText(part) };
  });
  const texts = made.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length === made.length ? texts.join('\n\n') : made;
}
