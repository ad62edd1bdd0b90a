import { isDeepStrictEqual } from 'node:util';
import { isObject } from '@tapedeck/tape/internal';
import { parse, stringify } from 'smol-toml';
import { CannotChange } from '../install/cannot-change.ts';
import type { Entry } from './clients.ts';

/**
 * The text of a TOML file with a table of an entry, or without it where the entry is undefined. Everything else stays as
 * it is, also comments: the result is read again, and must differ in the entry alone.
 * @throws CannotChange for a file that is none, or that has the entry in another form than as a table
 */
export function withTomlEntry(
  text: string,
  [field, name]: readonly [field: string, name: string],
  entry: Entry | undefined,
): string {
  const before = parsed(text);
  const servers = isObject(before[field]) ? before[field] : {};
  if (entry === undefined && !Object.hasOwn(servers, name)) return text;
  const rest = withoutTable(text, `${field}.${name}`);
  const table = entry === undefined ? '' : stringify({ [field]: { [name]: entry } });
  const gap =
    rest === '' || table === '' ? '' : rest.endsWith('\n\n') ? '' : rest.endsWith('\n') ? '\n' : '\n\n';
  const after = `${rest}${gap}${table}${table === '' || table.endsWith('\n') ? '' : '\n'}`;
  const { [name]: _, ...others } = servers as Record<string, unknown>;
  const wanted = { ...others, ...(entry !== undefined && { [name]: entry }) };
  if (!isDeepStrictEqual(readAgain(after), plain(expected(before, field, wanted))))
    throw new CannotChange(`its entry '${field}.${name}' is no table of its own`);
  return after;
}

/** The document with these servers. One without any needs no table for them. */
function expected(
  before: Readonly<Record<string, unknown>>,
  field: string,
  servers: Readonly<Record<string, unknown>>,
): unknown {
  const { [field]: was, ...rest } = before;
  return Object.keys(servers).length === 0 ? rest : { ...rest, [field]: servers };
}

/** The text without the lines of a table and of the tables in it. */
function withoutTable(text: string, path: string): string {
  const own = new RegExp(`^\\s*\\[\\s*${RegExp.escape(path)}\\s*(?:\\.[^\\]]*)?\\]`);
  let isInside = false;
  return text
    .split(/(?<=\n)/)
    .filter((line) => {
      if (/^\s*\[/.test(line)) isInside = own.test(line);
      return !isInside;
    })
    .join('');
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text);
  } catch (error) {
    throw new CannotChange(`it is no TOML: ${(error as Error).message.split('\n')[0]}`);
  }
}

/** What was made of a text; undefined when it is no TOML any more. */
function readAgain(text: string): unknown {
  try {
    return plain(parse(text));
  } catch {
    return undefined;
  }
}

/** A document as plain data, without empty tables. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) && Object.keys(inner).length === 0 ? undefined : inner,
  );
  return text === undefined ? {} : JSON.parse(text);
}
