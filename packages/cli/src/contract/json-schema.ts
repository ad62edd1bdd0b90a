import { z } from 'zod';
import { errorDocument } from './error.ts';
import type { Form } from './form.ts';
import { contract } from './verbs.ts';

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = z.core.JSONSchema.JSONSchema;

/**
 * The contract as JSON Schema: of one verb, the schema of its output; of all verbs, a document whose
 * `properties` are those schemas by verb. A verb with several forms lists them under `anyOf`, in order.
 * `$defs` has the shared shapes, and `Error`.
 */
export function jsonSchema(verb?: string): JsonSchema {
  const names = verb === undefined ? Object.keys(contract) : [verb];
  const { properties = {}, $defs = {} } = z.toJSONSchema(
    z.object({ ...Object.fromEntries(names.map((name) => [name, outputOf(name)])), [error]: errorDocument }),
    { override: withoutRange },
  );
  const verbs = Object.fromEntries(names.map((name) => [name, titled(name, properties[name] as JsonSchema)]));
  const own =
    verb === undefined ? { title: 'tape', type: 'object' as const, properties: verbs } : verbs[verb];
  return { $schema: draft, ...own, $defs };
}

const draft = 'https://json-schema.org/draft/2020-12/schema';

/** Stands beside the verbs, so that `$defs` has the shape `Error`; no verb has this name. */
const error = ' error';

/** Removes the bound of the safe integers, which zod adds to every integer. */
function withoutRange({ jsonSchema: schema }: { readonly jsonSchema: JsonSchema }): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}

function outputOf(name: string): z.ZodType {
  const [first, ...others] = (contract[name]?.json ?? []).map(({ schema }) => schema);
  if (first === undefined) return z.never();
  return others.length === 0 ? first : z.union([first, ...others]);
}

/** Adds a title, the quiet output, the exit codes, and the title of each form to a schema. */
function titled(name: string, { anyOf, ...output }: JsonSchema): JsonSchema {
  const { json = [], quiet = '', exits = {} } = contract[name] ?? {};
  const ends = Object.entries(exits).map(([code, why]) => `${code}: ${why}`);
  const promises = [
    `--quiet prints ${quiet}.`,
    ...(ends.length === 0 ? [] : [`Exit codes: ${ends.join('; ')}.`]),
  ];
  return {
    title: `tape ${name}`,
    description: promises.join(' '),
    ...output,
    ...(anyOf !== undefined && {
      anyOf: anyOf.map((schema, i) => ({ title: titleOf(json[i]), ...(schema as JsonSchema) })),
    }),
  };
}

function titleOf({ when = 'by default', prints }: Partial<Form> = {}): string {
  return prints === 'lines' ? `each line, ${when}` : when;
}
