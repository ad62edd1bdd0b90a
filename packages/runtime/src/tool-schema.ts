import { isObject, type Json, type JsonObject } from '@tapedeck/tape';
import type { ToolSet } from 'ai';
import { messageOf } from './errors.ts';
import { asSchema, jsonSchema } from './model.ts';
import type { DeckTool, DeckTools } from './tool-traits.ts';

/** What a model adds to the arguments of a call to have the calls of its answer run side by side (X63). */
const flag = '_parallel';

const flagSchema = { type: 'boolean', description: 'True to run the calls of this answer side by side' };

/**
 * Tools as they are sent: definitions, without what would run them, so that the SDK runs and records nothing. Each schema
 * gains `_parallel`; arguments are checked by the tool's own schema later, when the call is run.
 */
export async function definitionsOf(tools: DeckTools): Promise<ToolSet> {
  const sent: Record<string, ToolSet[string]> = {};
  for (const [name, tool] of Object.entries(tools)) {
    const { execute, needsApproval, paths, safeToRepeat, timeoutMs, ...definition } = tool;
    sent[name] = { ...definition, inputSchema: await sentSchema(tool) } as ToolSet[string];
  }
  return sent;
}

async function sentSchema(tool: DeckTool) {
  const own = (await asSchema(tool.inputSchema).jsonSchema) as unknown as JsonObject;
  return jsonSchema(withFlag(own, tool) as Parameters<typeof jsonSchema>[0], {
    // Arguments that are no object, or do not fit, are the call's failure and not the answer's.
    validate: (value) => ({ success: true, value }),
  });
}

/** A schema whose properties are all required, or that is no plain object, takes no further one. */
function withFlag(schema: JsonObject, tool: DeckTool): JsonObject {
  const properties = schema.properties ?? {};
  if (tool.type === 'provider' || tool.strict === true) return schema;
  if (schema.type !== 'object' || !isObject(properties) || flag in properties) return schema;
  return { ...schema, properties: { ...properties, [flag]: flagSchema } };
}

/** Whether the arguments of a call ask for its batch to be run side by side. */
export function asksParallel(input: Json): boolean {
  return isObject(input) && input[flag] === true;
}

/** The arguments that a tool gets, checked by its own schema (X60), or why they cannot be used. */
export async function checkArguments(
  tool: DeckTool,
  input: Json,
): Promise<{ readonly value: unknown } | { readonly fault: string }> {
  const schema = asSchema(tool.inputSchema);
  const own = isObject(input) && !(await declaresFlag(tool)) ? withoutFlag(input) : input;
  const checked = await schema.validate?.(own);
  if (checked === undefined) return { value: own };
  return checked.success ? { value: checked.value } : { fault: messageOf(checked.error) };
}

async function declaresFlag(tool: DeckTool): Promise<boolean> {
  const { properties } = (await asSchema(tool.inputSchema).jsonSchema) as { properties?: object };
  return properties !== undefined && flag in properties;
}

function withoutFlag({ [flag]: _, ...rest }: JsonObject): JsonObject {
  return rest;
}
