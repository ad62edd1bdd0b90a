import { isObject, type Json, type JsonObject } from '@tapedeck/tape';
import type { ToolSet } from 'ai';
import { z } from 'zod';
import { messageOf, SessionError } from '../errors.ts';
import { asSchema, jsonSchema } from '../model/model.ts';
import type { DeckTool, DeckTools } from './traits.ts';

/** What a model adds to the arguments of a call to have the calls of its answer run side by side (X63). */
const flag = '_parallel';

const flagSchema = { type: 'boolean', description: 'True to run the calls of this answer side by side' };

/**
 * Tools as they are sent: definitions, without what would run them, so that the SDK runs and records nothing. Each schema
 * gains `_parallel`; arguments are checked by the tool's own schema later, when the call is run.
 * @throws SESSION_BAD_CONFIG for a schema that cannot be sent
 */
export async function definitionsOf(tools: DeckTools): Promise<ToolSet> {
  const sent: Record<string, ToolSet[string]> = {};
  for (const [name, tool] of Object.entries(tools)) {
    const { execute, needsApproval, paths, safeToRepeat, timeoutMs, ...definition } = tool;
    sent[name] = { ...definition, inputSchema: await sentSchema(name, tool) } as ToolSet[string];
  }
  return sent;
}

async function sentSchema(name: string, tool: DeckTool) {
  const own = await schemaOf(name, tool);
  return jsonSchema(withFlag(own, tool) as Parameters<typeof jsonSchema>[0], {
    // Arguments that are no object, or do not fit, are the call's failure and not the answer's.
    validate: (value) => ({ success: true, value }),
  });
}

async function schemaOf(name: string, tool: DeckTool): Promise<JsonObject> {
  try {
    return (await asSchema(tool.inputSchema).jsonSchema) as unknown as JsonObject;
  } catch (cause) {
    const why = `its input schema has no JSON form: ${messageOf(cause)}`;
    throw new SessionError('SESSION_BAD_CONFIG', `cannot offer tool '${name}': ${why}`, {
      data: { field: `tools.${name}`, why },
      cause,
    });
  }
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
export async function parseArguments(
  tool: DeckTool,
  input: Json,
): Promise<{ readonly value: unknown } | { readonly fault: string }> {
  try {
    // A copy: what is recorded and shown of a call stays as it was, whatever its tool does with its arguments.
    const given = structuredClone(input);
    const own = isObject(given) && !(await declaresFlag(tool)) ? withoutFlag(given) : given;
    const checked = await asSchema(tool.inputSchema).validate?.(own);
    if (checked === undefined) return { value: own };
    return checked.success ? { value: checked.value } : { fault: messageOf(checked.error) };
  } catch (error) {
    // A check of the tool's own may throw: that says no more of the arguments than that they are of no use.
    return { fault: messageOf(error) };
  }
}

async function declaresFlag(tool: DeckTool): Promise<boolean> {
  const { properties } = (await asSchema(tool.inputSchema).jsonSchema) as { properties?: object };
  return properties !== undefined && flag in properties;
}

function withoutFlag({ [flag]: _, ...rest }: JsonObject): JsonObject {
  return rest;
}

/** Why a value does not follow a schema; nothing when it does. */
export function schemaFault(value: unknown, schema: JsonObject): string | undefined {
  const [issue] =
    z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).safeParse(value).error?.issues ?? [];
  if (issue === undefined) return undefined;
  return `${issue.path.length === 0 ? 'it' : issue.path.map(String).join('.')}: ${issue.message}`;
}
