import { isObject } from '@tapedeck/tape/internal';

/** The most bytes of the schema of a tool, and the deepest one. */
const [schemaBytes, depthMax] = [65_536, 32];

const types: ReadonlySet<unknown> = new Set([
  'object',
  'array',
  'string',
  'number',
  'integer',
  'boolean',
  'null',
]);

/** Fields whose values are schemas: one, a list, or one for each name. */
const [single, lists, named] = [
  ['items', 'additionalProperties', 'not', 'contains', 'propertyNames', 'if', 'then', 'else'],
  ['anyOf', 'oneOf', 'allOf', 'prefixItems'],
  ['properties', 'patternProperties', '$defs', 'definitions'],
];

/**
 * Why a schema cannot be sent to a model; undefined when it can. A provider refuses the whole call for one schema that is
 * none, and with it every tool. Pure.
 */
export function schemaFault(schema: unknown): string | undefined {
  if (!isObject(schema)) return 'its input schema is no object';
  if (schema.type !== 'object') return "its input schema is not of the type 'object'";
  const fault = faultIn(schema, 0);
  if (fault !== undefined) return `its input schema cannot be used: ${fault}`;
  const text = textOf(schema);
  if (text === undefined) return 'its input schema cannot be used: it is nested too deep';
  const size = Buffer.byteLength(text);
  return size > schemaBytes ? `its input schema has ${size} bytes, more than ${schemaBytes}` : undefined;
}

/** The JSON of a value; undefined where it is nested deeper than the stack. */
function textOf(value: object): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function faultIn(schema: unknown, depth: number): string | undefined {
  if (depth > depthMax) return `it is nested deeper than ${depthMax}`;
  if (typeof schema === 'boolean') return undefined;
  if (!isObject(schema)) return `${JSON.stringify(schema)} is no schema`;
  const { type, required, enum: values, $ref } = schema;
  const unknown = [type ?? []].flat().find((one) => !types.has(one));
  if (unknown !== undefined) return `there is no type ${JSON.stringify(unknown)}`;
  if (
    required !== undefined &&
    !(Array.isArray(required) && required.every((one) => typeof one === 'string'))
  )
    return 'required is no list of names';
  if (values !== undefined && !Array.isArray(values)) return 'enum is no list';
  if ($ref !== undefined && !(typeof $ref === 'string' && $ref.startsWith('#')))
    return '$ref leads out of the schema';
  const inner = [
    ...single.flatMap((field) => (field in schema ? [schema[field]].flat() : [])),
    ...lists.flatMap((field) => (field in schema ? [schema[field]].flat() : [])),
    ...named.flatMap((field) => {
      const value = schema[field];
      return value === undefined ? [] : isObject(value) ? Object.values(value) : [value];
    }),
  ];
  for (const one of inner) {
    const fault = faultIn(one, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
