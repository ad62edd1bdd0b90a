import { nameOf } from './field-name.ts';
import { slowFault } from './pattern-fault.ts';
import { findSecrets } from './patterns.ts';
import type { Found } from './preset.ts';
import { secretNamePattern } from './secrets.ts';
import { unsigned } from './signed.ts';
import { changedText } from './text-bytes.ts';

/** Where secrets are looked for that have the form of one, and further forms. */
export interface RedactOptions {
  /** `results` (default): outputs of tools, and errors. `all`: also what users, models and programs write. */
  readonly in?: 'results' | 'all';
  /** Further patterns by name, as sources of regular expressions. One is looked for within a line. */
  readonly patterns?: Readonly<Record<string, string>>;
}

/** `false`: nowhere. `true`: `{ in: 'results' }`. `'all'`: `{ in: 'all' }`. */
export type Redact = boolean | 'all' | RedactOptions;

/** A value without its secrets, and how many were replaced. */
interface Replaced<T> {
  readonly value: T;
  readonly count: number;
}

/** Replaces what has the form of a secret by `[secret KIND]`. What has none is returned as it is. */
export interface Redactor {
  readonly in: 'results' | 'all';
  /** The further patterns, as one text to compare. */
  readonly patterns: string;
  readonly find: (text: string) => readonly Found[];
  readonly text: (text: string) => string;
  /** Replaces in all texts, bytes of text and names of fields of a value. Throws when the value cannot be read. */
  readonly whole: <T>(value: T) => Replaced<T>;
}

/** What is wrong with a setting, and where in it; undefined for one that can be used. Pure. */
export function redactFault(
  given: unknown,
): { readonly path: readonly string[]; readonly why: string } | undefined {
  if (typeof given === 'boolean' || given === 'all') return undefined;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return { path: [], why: 'must be true, false, all, or an object of in and patterns' };
  const { in: where, patterns = {}, ...others } = given as Readonly<Record<string, unknown>>;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return { path: [unknown], why: 'does not exist' };
  if (where !== undefined && where !== 'results' && where !== 'all')
    return { path: ['in'], why: 'must be results or all' };
  if (typeof patterns !== 'object' || patterns === null || Array.isArray(patterns))
    return { path: ['patterns'], why: 'must be an object of regular expressions' };
  for (const [name, source] of Object.entries(patterns)) {
    const why = secretNamePattern.test(name)
      ? patternFault(source)
      : 'must have a name of letters, digits, _, . and -';
    if (why !== undefined) return { path: ['patterns', name], why };
  }
  return undefined;
}

function patternFault(source: unknown): string | undefined {
  if (typeof source !== 'string') return 'must be a text';
  try {
    if (new RegExp(source).test('')) return 'must not match an empty text';
  } catch {
    return 'must be a regular expression';
  }
  return slowFault(source);
}

const made = new Map<string, Redactor | undefined>();

/** The redactor of a setting; undefined for `false`. */
export function redactorFor(given: Redact = true): Redactor | undefined {
  const key = JSON.stringify(given);
  if (!made.has(key)) made.set(key, makeRedactor(given));
  return made.get(key);
}

function makeRedactor(given: Redact): Redactor | undefined {
  if (given === false) return undefined;
  const options: RedactOptions = given === true ? {} : given === 'all' ? { in: 'all' } : given;
  const patterns = Object.entries(options.patterns ?? {}).map(
    ([name, source]) => [name, new RegExp(source, 'g')] as const,
  );
  return {
    in: options.in ?? 'results',
    patterns: JSON.stringify(options.patterns ?? {}),
    find: (text) => findSecrets(text, patterns),
    text: (text) => redactedText(text, patterns).value,
    whole: (value) => redactedValue(value, patterns),
  };
}

type Patterns = readonly (readonly [name: string, pattern: RegExp])[];

function redactedText(text: string, patterns: Patterns): Replaced<string> {
  const found = findSecrets(text, patterns);
  if (found.length === 0) return { value: text, count: 0 };
  const pieces: string[] = [];
  let from = 0;
  for (const one of found) {
    pieces.push(text.slice(from, one.from), `[secret ${one.name}]`);
    from = one.to;
  }
  return { value: pieces.join('') + text.slice(from), count: found.length };
}

/** Names of fields whose value is a secret because of the name: the name is read with the value. */
const tellingName = /access_?key|authorization|account_?key/i;
/** A deeper value is refused where it is encoded. */
const depthMax = 200;

/** A copy of a value with its secrets replaced; the value itself if it has none. Follows its JSON form. */
function redactedValue<T>(root: T, patterns: Patterns): Replaced<T> {
  let count = 0;
  const known = new Map<object, unknown>();
  const textOf = (text: string): string => {
    const redacted = redactedText(text, patterns);
    count += redacted.count;
    return redacted.value;
  };
  const visit = (value: unknown, depth: number): unknown => {
    if (typeof value === 'string') return textOf(value);
    if (typeof value !== 'object' || value === null || depth > depthMax) return value;
    if (known.has(value)) return known.get(value);
    // One that contains itself is returned as it is, and refused where it is encoded.
    known.set(value, value);
    const redacted = objectOf(value, depth);
    known.set(value, redacted);
    return redacted;
  };
  const objectOf = (value: object, depth: number): unknown => {
    if (value instanceof Uint8Array) return changedText(value, textOf);
    if (value instanceof ArrayBuffer) {
      const whole = new Uint8Array(value);
      const redacted = changedText(whole, textOf);
      return redacted === whole ? value : redacted;
    }
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      const json: unknown = value.toJSON();
      const redacted = visit(json, depth + 1);
      return redacted === json ? value : redacted;
    }
    if (!Array.isArray(value)) return fieldsOf(value, depth);
    const list = value.flatMap((one) => {
      const part = unsigned(one, (content) => redactedValue(content, patterns).count > 0);
      if (part !== undefined || one === undefined) return [visit(part, depth + 1)];
      count += 1;
      return [];
    });
    return list.length === value.length && list.every((one, i) => one === value[i]) ? value : list;
  };
  const fieldsOf = (object: object, depth: number): unknown => {
    let isSame = true;
    const fields = Object.entries(object);
    for (const pair of fields) {
      const [name, field] = pair;
      pair[0] = textOf(name);
      pair[1] = fieldOf(object, name, field, depth);
      isSame &&= name === pair[0] && field === pair[1];
    }
    if (isSame) return object;
    const names = new Set<string>();
    for (const pair of fields) pair[0] = nameOf(pair[0], names);
    return Object.fromEntries(fields);
  };
  const fieldOf = (object: object, name: string, field: unknown, depth: number): unknown => {
    if (typeof field !== 'string') return visit(field, depth + 1);
    if (tellingName.test(name)) {
      const whole = `${name}=${field}`;
      const redacted = redactedText(whole, patterns);
      // The name itself is no secret here: `textOf` has seen it.
      if (redacted.count > 0 && redacted.value.startsWith(`${name}=`)) {
        count += redacted.count;
        return redacted.value.slice(name.length + 1);
      }
    }
    if (name !== 'data' && name !== 'image') return textOf(field);
    return base64Text(object, field, textOf) ?? textOf(field);
  };
  const value = visit(root, 0) as T;
  return { value, count };
}

/** A file of text in a part, which is base64, stays so. Undefined for any other value. */
function base64Text(part: object, data: string, textOf: (text: string) => string): string | undefined {
  if (!('mediaType' in part) || data.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(data))
    return undefined;
  const bytes = Buffer.from(data, 'base64');
  const redacted = changedText(bytes, textOf);
  return redacted === bytes ? data : Buffer.from(redacted).toString('base64');
}
