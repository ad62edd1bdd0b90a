import type { Params, SqlValue, Values } from '../db/db.ts';
import type { Statement } from './pipeline.ts';

interface Translated {
  readonly text: string;
  readonly name: string;
  /** The names of the parameters, by position; undefined where the statement has them by position. */
  readonly names: readonly string[] | undefined;
}

const translations = new Map<string, Translated>();

/**
 * Makes a statement of the acts one of PostgreSQL: its parameters by number, and without what only SQLite's planner reads.
 * `must` fails in the server when the statement changes no row.
 */
export function toStatement(
  sql: string,
  params: Params | Values = {},
  how: 'plain' | 'must' = 'plain',
): Statement {
  const { text, name, names } = translated(sql, how);
  const values =
    names === undefined ? (params as Values) : names.map((one) => valueIn(params as Params, one, sql));
  const types = values.map(typeOf);
  return {
    text,
    base: name,
    name: `${name}_${types.map((type) => typeLetters[type]).join('')}`,
    types,
    values: values.map(toText),
  };
}

/** A letter for each type: the server takes names of statements up to 63 characters. */
const typeLetters: Readonly<Record<number, string>> = { 0: 'n', 17: 'b', 20: 'i', 25: 't', 701: 'd' };

/** The number of the type of a value, as the server has it: text, bigint, double precision or bytea. A null can be of any. */
function typeOf(value: SqlValue): number {
  if (value === null) return 0;
  if (typeof value === 'string') return 25;
  if (typeof value === 'number') return Number.isInteger(value) ? 20 : 701;
  return 17;
}

function valueIn(params: Params, name: string, sql: string): SqlValue {
  const value = params[name];
  if (value === undefined) throw new TypeError(`the parameter @${name} is missing: ${sql}`);
  return value;
}

function toText(value: SqlValue): string | Uint8Array | null {
  if (value === null || typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : Buffer.from(value);
}

function translated(sql: string, how: 'plain' | 'must'): Translated {
  const key = `${how} ${sql}`;
  const known = translations.get(key);
  if (known !== undefined) return known;
  const made = { ...translate(wrapped(sql, how)), name: `t${translations.size}` };
  translations.set(key, made);
  return made;
}

function wrapped(sql: string, how: 'plain' | 'must'): string {
  return how === 'must'
    ? `WITH changed AS (${sql} RETURNING 1) SELECT must_change(count(*)) FROM changed`
    : sql;
}

/** Texts in quotes, which stay as they are; parameters; and what each dialect says in its own way. */
const parts =
  /'(?:[^']|'')*'|(?<!@)@(?<name>\w+)|(?<position>\?)|\bLIMIT (?<limit>@\w+|\?)|\blikelihood\((?<likely>[^,]+), [\d.]+\)|\bNOT INDEXED\b|\bCROSS (?=JOIN \w+ \w+\s+ON\b)|(?<=[\s(])\+(?=[a-z@])|\bAS (?<alias>[a-z]+[A-Z]\w*)|\b(?<own>char|json_array)(?=\()/g;

function translate(sql: string): Pick<Translated, 'text' | 'names'> {
  const names: string[] = [];
  let positions = 0;
  const number = (param: string): string => {
    if (param === '?') {
      positions += 1;
      return `$${positions}`;
    }
    const name = param.slice(1);
    const at = names.includes(name) ? names.indexOf(name) : names.push(name) - 1;
    return `$${at + 1}`;
  };
  const replaceIn = (text: string): string =>
    text.replace(parts, (part, ...rest) => {
      const { name, position, limit, likely, alias, own } = rest.at(-1) as Record<string, string | undefined>;
      if (name !== undefined || position !== undefined) return number(part);
      // SQLite reads a negative limit as none.
      if (limit !== undefined) return `LIMIT nullif(${number(limit)}::bigint, -1)`;
      if (likely !== undefined) return replaceIn(likely);
      // PostgreSQL makes small letters of what stands in no quotes.
      if (alias !== undefined) return `AS "${alias}"`;
      // The server has other functions, or other grammar, by these names.
      if (own !== undefined) return own === 'char' ? 'chr' : 'json_list';
      return part.startsWith("'") ? part : '';
    });
  const text = withNames(replaceIn(sql));
  return { text, names: positions > 0 ? undefined : names };
}

/** The words that follow a query in FROM which has no name. */
const afterQuery =
  /^\s*(?:$|[),;]|(?:WHERE|GROUP|HAVING|ORDER|LIMIT|OFFSET|UNION|EXCEPT|INTERSECT|ON|JOIN|LEFT|CROSS|INNER)\b)/;

/** Names each query in FROM that has no name: PostgreSQL requires one before version 16. */
function withNames(sql: string): string {
  const open: boolean[] = [];
  let named = '';
  let count = 0;
  for (const [i, letter] of codeOf(sql).split('').entries()) {
    named += sql[i];
    if (letter === '(')
      open.push(/\b(?:FROM|JOIN)\s*$/.test(sql.slice(0, i)) && /^\(\s*SELECT\b/.test(sql.slice(i)));
    if (letter !== ')' || open.pop() !== true || !afterQuery.test(sql.slice(i + 1))) continue;
    count += 1;
    named += ` query_${count}`;
  }
  return named;
}

/** The same statement with blanks in place of its texts in quotes. */
function codeOf(sql: string): string {
  return sql.replace(/'(?:[^']|'')*'/g, (text) => ' '.repeat(text.length));
}
