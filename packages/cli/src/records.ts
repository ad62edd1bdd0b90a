import type { Entry, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { UsageError } from './errors/kinds.ts';
import { jsonText, safe } from './escape.ts';
import type { MaskedIo } from './masked-io.ts';
import { entryText } from './output/entry.ts';

/** How the records of a list are printed. */
export interface RecordOptions {
  /** A template for each, such as `{session} {tokens}`. */
  readonly format?: string | undefined;
  /** Ends each with NUL in place of LF. */
  readonly nul: boolean;
}

/** A part of a template: a text, or the path of a field. */
type Part = string | readonly string[];

/**
 * Input and output of a verb that prints JSON lines, or with `--quiet` ids: prints each line by a template, and ends it
 * with NUL where that is requested.
 * @param verb its published schema tells which fields there are
 * @throws UsageError for a template that names another field
 */
export async function recordIo(
  io: MaskedIo,
  verb: string,
  { format, nul }: RecordOptions,
): Promise<MaskedIo> {
  const end = nul ? '\0' : '\n';
  const print = format === undefined ? (line: string) => line : await printerOf(format, { verb, nul });
  let rest = '';
  const out = async (text: string | Uint8Array) => {
    const lines = (rest + (typeof text === 'string' ? text : Buffer.from(text).toString())).split('\n');
    rest = lines.pop() ?? '';
    await io.out(lines.map((line) => print(line) + end).join(''));
  };
  return Object.assign(Object.create(io) as MaskedIo, { out });
}

async function printerOf(
  format: string,
  { verb, nul }: { readonly verb: string; readonly nul: boolean },
): Promise<(line: string) => string> {
  const parts = partsOf(format);
  const paths = parts.filter((part) => typeof part !== 'string');
  const { jsonSchema } = await import('./contract/index.ts');
  const schema: unknown = jsonSchema(verb);
  const defs = isObject(schema) ? schema.$defs : undefined;
  const shapes = shapesIn(schema, defs);
  const assertKnown = (among: readonly Shape[], whose: string) => {
    const unknown = paths.find((path) => !among.some((shape) => hasField(shape, path, defs)));
    if (unknown === undefined) return;
    const fields = [...new Set(among.flatMap(({ fields }) => [...fields.keys()]))];
    throw new UsageError(`cannot format by {${unknown.join('.')}}: no such field`, {
      data: { fields },
      hint: `${columnText(unknown[0])}the fields of ${whose}: ${fields.join(', ')}`,
    });
  };
  assertKnown(shapes, `tape ${verb}`);
  return (line) => {
    const record: unknown = JSON.parse(line);
    // A verb prints other records with other options: what this one can have is known when it comes.
    const own = shapes.filter((shape) => isOf(record, shape));
    if (own.length > 0) assertKnown(own, 'these records');
    const isNamed = own.some(({ fields }) => fields.get('name') === sessionName);
    const pathOf = (part: readonly string[]) => (isNamed && part[0] === 'name' ? ['session'] : part);
    return parts
      .map((part) => (typeof part === 'string' ? part : textOf(valueAt(record, pathOf(part)), nul)))
      .join('');
  };
}

/** The field `{name}` of a record of a session, whose name is its `{session}`. */
const sessionName = {};

/** An object that a verb prints: its fields, by their schemas, and which it always has. */
interface Shape {
  readonly fields: ReadonlyMap<string, unknown>;
  readonly required: readonly string[];
}

/** Whether a record is an object of this shape. */
function isOf(record: unknown, { fields, required }: Shape): boolean {
  if (!isObject(record)) return false;
  return required.every((name) => name in record) && Object.keys(record).every((name) => fields.has(name));
}

/** Whether an object of this shape can have a field. */
function hasField({ fields }: Shape, [first = '', ...rest]: readonly string[], defs: unknown): boolean {
  const schema = fields.get(first);
  if (schema === undefined) return false;
  const [next] = rest;
  const below = next === undefined ? [] : shapesIn(schema, defs);
  return below.length === 0 || below.some((shape) => hasField(shape, rest, defs));
}

/** The columns of tables that are no fields, and the fields that they show. */
const columns: Readonly<Record<string, string>> = {
  state: '{delivery}, {task}, {lifecycle} and {interrupted}',
  last: '{last_message_at}',
  about: '{title}',
  messages: '{message_count}',
  msgs: '{message_count}',
  result: '{text}',
  from: '{from_anchor}',
};

function columnText(name: string | undefined = ''): string {
  const shown = Object.hasOwn(columns, name) ? columns[name] : undefined;
  return shown === undefined ? '' : `the column '${name}' shows ${shown}; `;
}

/**
 * Parses a template: `{field}` and `{field.field}` are values, `{{` and `}}` braces, and `\t`, `\n` and `\\` the characters
 * that they are in other languages.
 * @throws UsageError
 */
function partsOf(format: string): readonly Part[] {
  const token = /\{\{|\}\}|\\[tn\\]|\{([\w.-]+)\}|([{}])|[^{}\\]+|\\/g;
  const characters: Readonly<Record<string, string>> = {
    '{{': '{',
    '}}': '}',
    '\\t': '\t',
    '\\n': '\n',
    '\\\\': '\\',
  };
  return [...format.matchAll(token)].map(([text, path, brace]) => {
    if (brace !== undefined)
      throw new UsageError(`cannot read the format '${format}': a ${brace} stands alone`, {
        hint: `write a field as {session}, and a brace as ${brace}${brace}`,
      });
    return path === undefined ? (characters[text] ?? text) : path.split('.');
  });
}

function valueAt(record: unknown, path: readonly string[]): unknown {
  if (path.length === 1 && path[0] === 'text' && isEntry(record)) return entryText(record);
  return path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), record);
}

/** Whether a record is an entry. A template may name its text, which the JSON has in the parts of the payload. */
function isEntry(record: unknown): record is Entry & JsonObject {
  return isObject(record) && 'payload' in record && 'hash' in record && !('text' in record);
}

/** A value on one line, unless records end with NUL; an empty text for a field that the record does not have. */
function textOf(value: unknown, nul: boolean): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? safe(value) : jsonText(value);
  return nul ? text : text.replace(/\s*\n\s*/g, ' ');
}

/** The objects that a schema of a document, or of lines, allows at its top. Those with any fields are none. */
function shapesIn(schema: unknown, defs: unknown): readonly Shape[] {
  if (!isObject(schema)) return [];
  const name = typeof schema.$ref === 'string' ? schema.$ref.replace('#/$defs/', '') : undefined;
  const within = [
    ...(name !== undefined && isObject(defs) ? [defs[name]] : []),
    ...(Array.isArray(schema.anyOf) ? schema.anyOf : []),
    ...(schema.items === undefined ? [] : [schema.items]),
  ];
  const others = within.flatMap((one) => shapesIn(one, defs));
  if (!isObject(schema.properties)) return others;
  const fields = new Map<string, unknown>(Object.entries(schema.properties));
  if (fields.has('payload') && fields.has('hash') && !fields.has('text')) fields.set('text', {});
  if (fields.has('session') && !fields.has('name')) fields.set('name', sessionName);
  return [{ fields, required: Array.isArray(schema.required) ? schema.required.map(String) : [] }, ...others];
}
