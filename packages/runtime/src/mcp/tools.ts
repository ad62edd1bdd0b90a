import type { CallToolResult } from '@ai-sdk/mcp';
import type { JsonObject } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';
import type { DeckTool } from '../tools/traits.ts';
import type { ListedTool } from './listed-tools.ts';
import { schemaFault } from './schema-fault.ts';
import { prefixOf } from './spec.ts';

/** The tools of a server, as a session is offered them. */
export interface Offered {
  readonly tools: ReadonlyMap<string, DeckTool>;
  /** SHA-256 of the description and schema of each tool, by its name on the server. */
  readonly digests: Readonly<Record<string, string>>;
  /** Which tools are left out, and why. */
  readonly omitted: readonly string[];
}

/** Calls a tool of a server. */
export type CallTool = (
  name: string,
  input: unknown,
  signal: AbortSignal | undefined,
) => Promise<CallToolResult>;

/** A name that a model can be shown, in whole. */
const toolName = /^[A-Za-z0-9_.:/-]{1,128}$/;

/** Makes tools of what a server lists. What no provider would take is left out. */
export async function offeredTools(
  server: string,
  listed: readonly ListedTool[],
  { call, timeoutMs }: { readonly call: CallTool; readonly timeoutMs: number | undefined },
): Promise<Offered> {
  const { jsonSchema } = await import('ai');
  const tools = new Map<string, DeckTool>();
  const digests: Record<string, string> = {};
  const omitted: string[] = [];
  for (const { name, description, inputSchema } of listed) {
    const fault = !toolName.test(name)
      ? 'its name has other characters than those of names, or more than 128'
      : name === '__proto__'
        ? 'its name is that of no field'
        : Object.hasOwn(digests, name)
          ? 'it is listed twice'
          : schemaFault(inputSchema);
    if (fault !== undefined) {
      omitted.push(`${JSON.stringify(name.slice(0, 128))}: ${fault}`);
      continue;
    }
    digests[name] = sha256(JSON.stringify({ description, inputSchema }));
    tools.set(`${prefixOf(server)}${name}`, {
      ...(description !== undefined && { description }),
      inputSchema: jsonSchema(inputSchema as Parameters<typeof jsonSchema>[0]),
      ...(timeoutMs !== undefined && { timeoutMs }),
      execute: async (input: unknown, { abortSignal }: { readonly abortSignal?: AbortSignal }) =>
        outputOf(await call(name, input, abortSignal)),
      toModelOutput: ({ output }: { readonly output: unknown }) => modelOutput(output as McpOutput),
    } as unknown as DeckTool);
  }
  return { tools, digests, omitted };
}

/** What a call of a tool gives: its text, or its parts where some are no text. */
type McpOutput = string | { readonly content: readonly JsonObject[] };

/**
 * The output of a result.
 * @throws when the result is that the call failed
 */
function outputOf({ content, structuredContent, isError }: CallToolResult): McpOutput {
  const parts = (content as readonly JsonObject[]).map((part) =>
    part.type === 'image' ? part : textPart(part),
  );
  const texts = parts.flatMap((part) => (part.type === 'text' ? [String(part.text)] : []));
  if (isError === true) throw new Error(texts.join('\n') || 'the tool failed, and does not say why');
  if (parts.length > texts.length) return { content: parts };
  return texts.length === 0 && structuredContent !== undefined
    ? JSON.stringify(structuredContent)
    : texts.join('\n');
}

/** A part as text: what is neither text nor an image is named. */
function textPart(part: JsonObject): JsonObject {
  const text = (value: unknown) => ({ type: 'text', text: String(value) });
  const { resource = {} } = part as { readonly resource?: JsonObject };
  switch (part.type) {
    case 'text':
      return text(part.text);
    case 'resource':
      return typeof resource.text === 'string'
        ? text(resource.text)
        : text(`[${String(resource.uri)}: ${String(resource.mimeType ?? 'bytes')}]`);
    case 'resource_link':
      return text(`[${String(part.name)}: ${String(part.uri)}]`);
    case 'audio':
      return text(`[audio: ${String(part.mimeType)}]`);
    default:
      return text(JSON.stringify(part));
  }
}

function modelOutput(output: McpOutput): JsonObject {
  if (typeof output === 'string') return { type: 'text', value: output };
  const value = output.content.map((part) =>
    part.type === 'image'
      ? {
          type: 'file',
          mediaType: part.mimeType ?? 'image/png',
          data: { type: 'data', data: part.data ?? '' },
        }
      : { type: 'text', text: String(part.text) },
  );
  return { type: 'content', value };
}
