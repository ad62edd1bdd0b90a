import { isObject } from '@tapedeck/tape/internal';
import { UsageError } from './errors/kinds.ts';
import { jsonText, safe } from './escape.ts';
import type { MaskedIo } from './masked-io.ts';

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
  const { jsonSchema } = await import('./contract/index.ts');
  const known = fieldsIn(jsonSchema(verb));
  const unknown = parts.find((part) => typeof part !== 'string' && !known.has(part[0] ?? ''));
  if (unknown !== undefined)
    throw new UsageError(`cannot format by {${[unknown].flat().join('.')}}: no such field`, {
      data: { fields: [...known] },
      hint: `${columnText([unknown].flat()[0])}the fields of tape ${verb}: ${[...known].join(', ')}`,
    });
  return (line) => {
    const record: unknown = JSON.parse(line);
    return parts
      .map((part) => (typeof part === 'string' ? part : textOf(valueAt(record, part), nul)))
      .join('');
  };
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
  return path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), record);
}

/** A value on one line, unless records end with NUL; an empty text for a field that the record does not have. */
function textOf(value: unknown, nul: boolean): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? safe(value) : jsonText(value);
  return nul ? text : text.replace(/\s*\n\s*/g, ' ');
}

/** The names of the fields of all objects that a schema of a document or of lines has at its top. */
function fieldsIn(schema: unknown, defs: unknown = isObject(schema) ? schema.$defs : undefined): Set<string> {
  if (!isObject(schema)) return new Set();
  const name = typeof schema.$ref === 'string' ? schema.$ref.replace('#/$defs/', '') : undefined;
  const within = [
    ...(name !== undefined && isObject(defs) ? [defs[name]] : []),
    ...(Array.isArray(schema.anyOf) ? schema.anyOf : []),
    ...(schema.items === undefined ? [] : [schema.items]),
  ];
  const own = isObject(schema.properties) ? Object.keys(schema.properties) : [];
  return new Set([...own, ...within.flatMap((one) => [...fieldsIn(one, defs)])]);
}
