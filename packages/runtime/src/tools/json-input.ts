import type { JsonObject } from '@tapedeck/tape';
import type { FlexibleSchema } from 'ai';
import { schemaFault } from './schema.ts';

/**
 * A JSON Schema as the input schema of a tool, in the form of Standard Schema. A tool can be defined with it
 * without loading a library; the check of a call loads zod.
 */
export function jsonInput<T>(schema: JsonObject): FlexibleSchema<T> {
  return {
    '~standard': {
      version: 1,
      vendor: 'tapedeck',
      // The AI SDK adds to the schema that it gets.
      jsonSchema: { input: () => structuredClone(schema), output: () => structuredClone(schema) },
      validate: async (value) => {
        const fault = await schemaFault(value, schema);
        return fault === undefined ? { value: value as T } : { issues: [{ message: fault }] };
      },
    },
  };
}
