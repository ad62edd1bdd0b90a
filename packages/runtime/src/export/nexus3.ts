import { type JsonObject, type StoredMessage, view } from '@tapedeck/tape';
import { isClientCall, isObject, isoTime } from '@tapedeck/tape/internal';
import { contextsOf, type ExportSource, type ModelContext } from './contexts.ts';
import { fileText, outputText } from './output-text.ts';

/**
 * Writes a saved session of NEXUS3: the context that the model has now, with the summary in the place of what it
 * summarises, as NEXUS3 saves it. What an imported one says about itself is kept, but for what it permits: that was granted
 * elsewhere.
 */
export async function* writeNexus3(source: ExportSource): AsyncGenerator<string, number> {
  const { session, createdAt, lastMessageAt = createdAt, parent } = source.info;
  let context: ModelContext = { entries: [], repeated: [], instructions: undefined, tools: undefined };
  for await (const one of contextsOf(source)) context = one;
  const { messages, tokens } = view(context.entries);
  const made = messages.flatMap(savedMessages);
  const { system_prompt_path = null, working_directory = '.', provenance, ...kept } = await keptIn(source);
  const about = {
    schema_version: 1,
    // It names a file there.
    agent_id: session.replace(/[^\w.-]+/g, '-'),
    created_at: typeof kept.created_at === 'string' ? kept.created_at : timeOf(createdAt),
    modified_at: timeOf(lastMessageAt),
    system_prompt: context.instructions ?? '',
    system_prompt_path,
    working_directory,
    permission_level: 'sandboxed',
    token_usage: { messages: tokens, total: tokens },
    provenance: provenance ?? parent ?? 'user',
    permission_preset: null,
    disabled_tools: kept.disabled_tools ?? [],
    session_allowances: {},
    model_alias: kept.model_alias ?? null,
  };
  yield `${JSON.stringify(about, undefined, 2).slice(0, -2)},\n  "messages": [`;
  for (const [i, message] of made.entries()) yield `${i === 0 ? '' : ','}\n    ${JSON.stringify(message)}`;
  yield made.length === 0 ? ']\n}\n' : '\n  ]\n}\n';
  return made.length;
}

/** What the last import of a saved session recorded about it. */
async function keptIn({ store, info }: ExportSource): Promise<JsonObject> {
  let kept: JsonObject = {};
  for await (const { payload } of store.entries.read(info.id, { kind: 'x-nexus3', to: info.head }))
    if (isObject(payload) && 'agent_id' in payload) kept = payload;
  return kept;
}

/** A time as every Python reads it. */
function timeOf(at: number): string {
  return isoTime(at).replace('Z', '+00:00');
}

function savedMessages({ role, content }: StoredMessage): readonly object[] {
  if (role === 'tool')
    return content.map((part) => ({ role, content: outputText(part), tool_call_id: part.toolCallId }));
  const texts = content.flatMap((part) => {
    if (part.type === 'text') return [String(part.text)];
    return part.type === 'file' || part.type === 'image' ? [fileText(part)] : [];
  });
  const calls = content.filter(isClientCall).map(({ toolCallId, toolName, input }) => ({
    id: toolCallId,
    name: toolName,
    arguments: isObject(input) ? input : { input: input ?? null },
  }));
  if (texts.length === 0 && calls.length === 0) return [];
  return [{ role, content: texts.join('\n\n'), ...(calls.length > 0 && { tool_calls: calls }) }];
}
