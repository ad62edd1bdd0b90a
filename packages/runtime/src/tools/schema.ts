import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { ToolSet } from 'ai';
import { messageOf, SessionError } from '../errors.ts';
import type { DeckTool, DeckTools } from './traits.ts';

/** The argument with which a model requests that the calls of its answer run in parallel. */
const flag = '_parallel';

const flagSchema = { type: 'boolean', description: 'True to run the calls of this answer in parallel' };

/**
 * The tool definitions sent to the provider, without `execute`, so that the SDK neither runs nor records
 * tools. Adds `_parallel` to each schema. The tool's own schema validates the arguments when the call runs.
 * @throws SESSION_BAD_CONFIG for a schema without a JSON form
 */
export async function definitionsOf(tools: DeckTools): Promise<ToolSet> {
  const sent: Record<string, ToolSet[string]> = {};
  for (const [name, tool] of Object.entries(tools)) {
    const { execute, needsApproval, paths, command, target, safeToRepeat, timeoutMs, rules, ...definition } =
      tool;
    sent[name] = { ...definition, inputSchema: await sentSchema(name, tool) } as ToolSet[string];
  }
  return sent;
}

async function sentSchema(name: string, tool: DeckTool) {
  const own = await schemaOf(name, tool);
  const { jsonSchema } = await import('ai');
  return jsonSchema(withFlag(own, tool) as Parameters<typeof jsonSchema>[0], {
    // Accept all arguments here: invalid ones fail the call, not the answer.
    validate: (value) => ({ success: true, value }),
  });
}

/**
 * The input schema of a tool as JSON Schema.
 * @throws SESSION_BAD_CONFIG for one without a JSON form
 */
export async function schemaOf(name: string, tool: DeckTool): Promise<JsonObject> {
  try {
    return await inputSchemaOf(tool);
  } catch (cause) {
    const why = `its input schema has no JSON form: ${messageOf(cause)}`;
    throw new SessionError('SESSION_BAD_CONFIG', `cannot offer tool '${name}': ${why}`, {
      data: { field: `tools.${name}`, why },
      cause,
    });
  }
}

/** The input schema of a tool as JSON Schema, whichever kind of schema the tool has. */
export async function inputSchemaOf({ inputSchema }: Pick<DeckTool, 'inputSchema'>): Promise<JsonObject> {
  const { asSchema } = await import('ai');
  return (await asSchema(inputSchema).jsonSchema) as unknown as JsonObject;
}

/** Adds the flag to a schema, unless it is strict, a provider's, or not a plain object. */
function withFlag(schema: JsonObject, tool: DeckTool): JsonObject {
  const properties = schema.properties ?? {};
  if (tool.type === 'provider' || tool.strict === true) return schema;
  if (schema.type !== 'object' || !isObject(properties) || flag in properties) return schema;
  return { ...schema, properties: { ...properties, [flag]: flagSchema } };
}

/** Whether the arguments of a call request a parallel batch. */
export function requestsParallel(input: Json): boolean {
  return isObject(input) && input[flag] === true;
}

/** Validates the arguments of a call by the tool's own schema, or returns why they are invalid. */
export async function parseArguments(
  tool: DeckTool,
  input: Json,
): Promise<{ readonly value: unknown } | { readonly fault: string }> {
  try {
    // Copy the arguments, so that a tool that changes them does not affect the recorded call.
    const given = structuredClone(input);
    const own = isObject(given) && !(await declaresFlag(tool)) ? withoutFlag(given) : given;
    const { asSchema } = await import('ai');
    const checked = await asSchema(tool.inputSchema).validate?.(own);
    if (checked === undefined) return { value: own };
    return checked.success ? { value: checked.value } : { fault: messageOf(checked.error) };
  } catch (error) {
    // A custom validator can throw; the arguments are invalid then.
    return { fault: messageOf(error) };
  }
}

async function declaresFlag(tool: DeckTool): Promise<boolean> {
  const { properties } = await inputSchemaOf(tool);
  return properties !== undefined && isObject(properties) && flag in properties;
}

function withoutFlag({ [flag]: _, ...rest }: JsonObject): JsonObject {
  return rest;
}

/** Why a value does not match a schema; undefined when it does. */
export async function schemaFault(value: unknown, schema: JsonObject): Promise<string | undefined> {
  const { z } = await import('zod');
  const [issue] =
    z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).safeParse(value).error?.issues ?? [];
  if (issue === undefined) return undefined;
  return `${issue.path.length === 0 ? 'it' : issue.path.map(String).join('.')}: ${issue.message}`;
}
