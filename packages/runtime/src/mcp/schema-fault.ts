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
  const refs = new Set<string>();
  const fault = faultIn(schema, { depth: 0, refs });
  if (fault !== undefined) return `its input schema cannot be used: ${fault}`;
  const text = textOf(schema);
  if (text === undefined) return 'its input schema cannot be used: it is nested too deep';
  const size = Buffer.byteLength(text);
  if (size > schemaBytes) return `its input schema has ${size} bytes, more than ${schemaBytes}`;
  // What a reference leads to can have others, which are added to the set.
  for (const ref of refs) {
    const target = targetOf(schema, ref);
    const at = `$ref ${JSON.stringify(ref)}`;
    if (target === undefined) return `its input schema cannot be used: ${at} leads to nothing`;
    const there = faultIn(target, { depth: 0, refs });
    if (there !== undefined) return `its input schema cannot be used: at ${at} ${there}`;
  }
  return undefined;
}

/** What a reference of a schema to a place in itself leads to. Names of places (`$anchor`) lead nowhere: few models know them. */
function targetOf(root: object, ref: string): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  let at: unknown = root;
  for (const part of ref.slice(2).split('/')) {
    const name = nameIn(part);
    if (name === undefined || typeof at !== 'object' || at === null || !Object.hasOwn(at, name))
      return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}

/** The name in a part of a JSON pointer of a URL; undefined for a part that is not valid. */
function nameIn(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}

/** The most characters of a value that a fault shows. */
const shownMax = 80;

/** The beginning of a value, which may be as large and deep as a message of a server. */
function shown(value: unknown): string {
  const text = textOf(value) ?? 'a list';
  return text.length > shownMax ? `${text.slice(0, shownMax)}…` : text;
}

/** The JSON of a value; undefined where it is nested deeper than the stack. */
function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** The fault of a schema by itself. Adds its references to places in the whole to `refs`. */
function faultIn(
  schema: unknown,
  { depth, refs }: { readonly depth: number; readonly refs: Set<string> },
): string | undefined {
  if (depth > depthMax) return `it is nested deeper than ${depthMax}`;
  if (typeof schema === 'boolean') return undefined;
  if (!isObject(schema)) return `${shown(schema)} is no schema`;
  const { type, required, enum: values, $ref } = schema;
  const unknown = [type ?? []].flat().find((one) => !types.has(one));
  if (unknown !== undefined) return `there is no type ${shown(unknown)}`;
  if (
    required !== undefined &&
    !(Array.isArray(required) && required.every((one) => typeof one === 'string'))
  )
    return 'required is no list of names';
  if (values !== undefined && !Array.isArray(values)) return 'enum is no list';
  if ($ref !== undefined) {
    if (typeof $ref !== 'string' || !$ref.startsWith('#')) return '$ref leads out of the schema';
    refs.add($ref);
  }
  const inner = [
    ...single.flatMap((field) => (field in schema ? [schema[field]].flat() : [])),
    ...lists.flatMap((field) => (field in schema ? [schema[field]].flat() : [])),
    ...named.flatMap((field) => {
      const value = schema[field];
      return value === undefined ? [] : isObject(value) ? Object.values(value) : [value];
    }),
  ];
  for (const one of inner) {
    const fault = faultIn(one, { depth: depth + 1, refs });
    if (fault !== undefined) return fault;
  }
  return undefined;
}
