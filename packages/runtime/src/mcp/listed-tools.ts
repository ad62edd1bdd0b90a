import type { MCPClient } from '@ai-sdk/mcp';
import { isObject } from '@tapedeck/tape/internal';
import { schemaFault } from './schema-fault.ts';

/** A tool as a server lists it. */
export interface ListedTool {
  /** Empty where the server gives no text. */
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: unknown;
}

/** A page of a list of tools, and the cursor of the next page. */
export interface ListedTools {
  readonly tools: readonly ListedTool[];
  readonly nextCursor: string | undefined;
}

/** A request of the client, which its type does not have. */
interface Requesting {
  request(ask: { readonly resultSchema: { parse(result: unknown): unknown } }): Promise<unknown>;
}

/**
 * Asks a server for a part of its list. The client refuses a whole list for one tool that it cannot read, so it reads those
 * alone whose schemas can be used.
 */
export async function listTools(
  client: MCPClient,
  ask: Parameters<MCPClient['listTools']>[0],
): Promise<ListedTools> {
  const { request } = client as unknown as Requesting;
  let listed: readonly ListedTool[] = [];
  const parse = (result: unknown) => {
    if (!isObject(result) || !Array.isArray(result.tools)) throw new Error('it has no list of tools');
    listed = result.tools.map(toolOf);
    const nextCursor = typeof result.nextCursor === 'string' ? result.nextCursor : undefined;
    return { ...result, tools: listed.filter(isUsable), nextCursor };
  };
  const reader = Object.create(client, {
    request: {
      value: async (given: Parameters<Requesting['request']>[0]) =>
        await request.call(client, { ...given, resultSchema: { parse } }),
    },
  }) as MCPClient;
  const { tools, nextCursor } = await reader.listTools(ask);
  // The client leaves out some of those that it reads itself.
  const kept: ReadonlySet<unknown> = new Set(tools);
  return { tools: listed.filter((tool) => kept.has(tool) || !isUsable(tool)), nextCursor };
}

const isUsable = ({ inputSchema }: ListedTool) => schemaFault(inputSchema) === undefined;

function toolOf(listed: unknown): ListedTool {
  const { name, description, inputSchema } = isObject(listed) ? listed : {};
  return {
    name: typeof name === 'string' ? name : '',
    ...(typeof description === 'string' && { description }),
    inputSchema,
  };
}
