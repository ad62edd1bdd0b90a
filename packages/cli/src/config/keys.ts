import { isDeepStrictEqual } from 'node:util';
import { nearNames } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { isOtherName, otherKeys, ownPath } from './other-names.ts';

/** The names on the way to a field of `config.yaml`. */
export type Path = readonly string[];

/** The keys of `config.yaml`. `*` is a name that its user chooses. */
export const keys: readonly string[] = [
  'model',
  ...['temperature', 'effort', 'provider_options.*'].map((name) => `settings.${name}`),
  'summarizer',
  'titles',
  'instructions',
  'instructions.*',
  ...['project', 'skills', 'environment', 'tools'].map((name) => `prompt.${name}`),
  ...[
    ...[
      'max_steps',
      'tool_timeout_ms',
      'concurrent_tools',
      'retries',
      'retry_delay_ms',
      'max_retry_after_ms',
    ],
    ...['abort_grace_ms', 'max_depth', 'max_children', 'max_tree', 'concurrent_children', 'concurrent_calls'],
    'concurrent_calls.*',
    ...['concurrent_mcp_servers', 'mcp_start_timeout_ms', 'mcp_result_bytes'],
  ].map((name) => `limits.${name}`),
  'builtin_tools',
  ...['command', 'args', 'env.*', 'cwd', 'url', 'headers.*', 'timeout_ms'].map(
    (name) => `mcp_servers.*.${name}`,
  ),
  'routes',
  ...[
    'instructions',
    'model',
    'settings.temperature',
    'settings.effort',
    'settings.provider_options',
    'tools',
    'uses',
    'permissions',
  ].map((name) => `personas.*.${name}`),
  'compaction',
  ...[
    ...['preset', 'enabled', 'reserve_tokens', 'threshold', 'retry_on_transient'],
    ...['turns', 'share', 'over', 'tokens', 'ratio'].map((name) => `keep.${name}`),
    'smart_recovery',
    ...['prune_tool_outputs', 'chunked_summarize', 'drop_middle'].map((name) => `smart_recovery.${name}`),
    'prune',
    ...['threshold', 'protect', 'keep_files', 'min_tokens'].map((name) => `prune.${name}`),
    ...['max_output_tokens', 'share', 'timeout_ms', 'temperature'].map((name) => `summary.${name}`),
  ].map((name) => `compaction.${name}`),
  'windows.*.window',
  'windows.*.max_output',
  'view',
  'redact',
  'redact.in',
  'redact.patterns.*',
  'record',
  'permissions',
  'import.roots',
  'import.exclude',
  'remotes.*.url',
  'alias.*',
];

const fixedKeys = keys.filter((key) => !key.includes('*'));

/** The keys that end with a name: where a field belongs that stands elsewhere. */
export function keysInside(name: string): readonly string[] {
  return [...fixedKeys, ...otherKeys].filter((key) => key.endsWith(`.${name}`));
}

/** The fields that have names which the user chooses in them. */
const openFields: readonly string[] = keys
  .filter((key) => key.includes('*') && !/^(?:mcp_servers|personas)\./.test(key))
  .map((key) => key.split('.*')[0] ?? '');

/** The fields of an MCP server that are texts. */
const textFields = /^(?:command|cwd|url|(?:env|headers)\..+)$/s;

/** A name of a key, and a key of such names. */
const name = /"(?:[^"\\]|\\.)*"|[^."]+/g;
const wholeKey = new RegExp(`^(?:${name.source})(?:\\.(?:${name.source}))*$`);

/**
 * Parses a key such as `limits.max_steps`, also in the spelling of `tape.config.mts`: `limits.maxSteps`. A name that the
 * user chose may have dots, as in `windows.gpt-4.1.window`; where that is in doubt, JSON quotes make one name of it. The
 * name that another agent gives a setting stands for that, unless a file is changed.
 * @throws UsageError for a key that cannot be, with those that are spelled nearly so
 */
export function parseKey(key: string, act: string): Path {
  const names = wholeKey.test(key) ? (key.match(name) ?? []).map(unquoted) : [];
  if (names.length === 0 || names.includes(undefined))
    throw new UsageError(`cannot ${act} '${key}': it is no key`, {
      hint: 'a key is a name, or several with dots between them: limits.max_steps',
    });
  const path = withOwnNames(names.filter((one) => one !== undefined));
  // A file that has the value is changed, and then read for what the value is here.
  if (isOtherName(path.join('.'))) return act === 'set' || act === 'unset' ? path : ownPath(path);
  const pattern = patternOf(path);
  if (isKnown(pattern)) return path;
  const inside = keysInside(pattern);
  const near =
    inside.length > 0 ? inside : nearNames(pattern, fixedKeys, { within: pattern.length < 7 ? 1 : 2 });
  const hint = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
  throw new UsageError(`cannot ${act} '${key}': there is no such key${hint}`, {
    data: { key, near },
    hint:
      near.length === 0 && /key|token|secret|password/i.test(key)
        ? 'keys of providers are read from the environment: tape help models'
        : 'see: tape help config',
  });
}

/** The text of a key. */
export function keyText(path: Path): string {
  const text = path.join('.');
  const read = withOwnNames(text.split('.'));
  const isPlain = wholeKey.test(text) && !text.includes('"') && isDeepStrictEqual(read, path);
  return isPlain ? text : path.map((name) => (/^[^."]+$/.test(name) ? name : JSON.stringify(name))).join('.');
}

/** Whether the value of a field is a text, whatever it looks like. */
export function isText([field, name, ...more]: Path): boolean {
  if (field === 'instructions' || field === 'model' || field === 'summarizer' || field === 'titles')
    return true;
  if (field === 'redact' && name === 'patterns') return more.length === 1;
  if (field === 'mcp_servers') return textFields.test(more.join('.'));
  if (field === 'personas') return /^(?:instructions|model)$/.test(more.join('.'));
  if (field === 'remotes') return more.length === 1;
  return field === 'alias' && name !== undefined && more.length === 0;
}

/** A name of a key, without its quotes; undefined for what JSON does not read. */
function unquoted(part: string): string | undefined {
  if (!part.startsWith('"')) return part;
  try {
    return JSON.parse(part) as string;
  } catch {
    return undefined;
  }
}

/** Joins the dots of names that the user chose, and spells all others as in the file. */
function withOwnNames(names: Path): Path {
  const [field = '', ...rest] = names.map(snakeCase);
  const given = names.slice(1);
  const join = (list: Path): Path => (list.length === 0 ? [] : [list.join('.')]);
  if (field === 'instructions' || field === 'alias') return [field, ...join(given)];
  if (field === 'limits' && rest[0] === 'concurrent_calls') return [field, rest[0], ...join(given.slice(1))];
  if (field === 'settings' && rest[0] === 'provider_options') return [field, rest[0], ...given.slice(1)];
  if (field === 'redact' && rest[0] === 'patterns') return [field, rest[0], ...join(given.slice(1))];
  if (field === 'remotes') return [field, ...given.slice(0, 1), ...rest.slice(1)];
  if (field === 'mcp_servers' || field === 'personas') {
    const [server = '', inner, ...name] = given;
    return [field, server, ...(inner === undefined ? [] : [snakeCase(inner), ...join(name)])].filter(
      (one) => one !== '',
    );
  }
  if (field !== 'windows') return [field, ...rest];
  const last = rest.at(-1);
  const isField = rest.length > 1 && (last === 'window' || last === 'max_output');
  return isField ? [field, ...join(given.slice(0, -1)), last] : [field, ...join(given)];
}

/** The path as a pattern of the list, where it begins as one of those. */
function patternOf(path: Path): string {
  if (path[0] === 'personas') return path.map((one, i) => (i === 1 ? '*' : one)).join('.');
  if (path[0] === 'mcp_servers') {
    const [field, server, inner, name] = path;
    const known = [
      field,
      server === undefined ? undefined : '*',
      inner,
      name === undefined ? undefined : '*',
    ];
    return known.filter((one) => one !== undefined).join('.');
  }
  const open = openFields.find(
    (field) => path.length > field.split('.').length && path.join('.').startsWith(`${field}.`),
  );
  if (open === undefined) return path.join('.');
  const from = open.split('.').length;
  const rest = open === 'windows' || open === 'remotes' ? path.slice(from + 1) : [];
  return [open, '*', ...rest].join('.');
}

/** Whether a pattern is that of a key, or of the fields around some. */
function isKnown(pattern: string): boolean {
  return keys.some((key) => key === pattern || key.startsWith(`${pattern}.`));
}

export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
