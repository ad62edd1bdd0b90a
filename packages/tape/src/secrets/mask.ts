import { nameOf } from './field-name.ts';
import { type Form, formsOf } from './forms.ts';
import type { Secret } from './secrets.ts';
import { unsigned } from './signed.ts';

/** Replaces secrets by their names. What has none is returned as it is. */
export interface Mask {
  readonly text: (text: string) => string;
  readonly bytes: (bytes: Uint8Array) => Uint8Array;
  /** Masks the texts, bytes and names of fields of a value. */
  readonly value: <T>(value: T) => T;
  /** The forms of the secrets, and what finds the first and longest of them in a text. */
  readonly forms: readonly Form[];
  readonly pattern: RegExp;
}

/** What takes the place of a secret. */
export function placeholder({ name }: Secret): string {
  return `[secret ${name}]`;
}

/** Whether a secret was replaced in a text. */
export function isMasked(text: string): boolean {
  return /\[secret [\w.-]+\]/.test(text);
}

const masks = new WeakMap<readonly Secret[], Mask | undefined>();

/** The mask of these secrets; undefined without any. */
export function maskFor(secrets: readonly Secret[]): Mask | undefined {
  if (!masks.has(secrets)) masks.set(secrets, secrets.length === 0 ? undefined : makeMask(secrets));
  return masks.get(secrets);
}

function makeMask(secrets: readonly Secret[]): Mask {
  const forms = formsOf(secrets);
  const names = new Map(forms.map(({ text, secret }) => [text, placeholder(secret)]));
  const patternOf = (texts: readonly string[]) =>
    new RegExp(texts.map((one) => RegExp.escape(one)).join('|'), 'g');
  const pattern = patternOf(forms.map(({ text }) => text));
  const shortest = forms.at(-1)?.text.length ?? 0;
  // One character for each byte: a secret in any text of UTF-8 is found so.
  const byteNames = new Map([...names].map(([form, name]) => [Buffer.from(form).toString('latin1'), name]));
  const byteForms = [...byteNames.keys()].map((form) => Buffer.from(form, 'latin1'));
  const bytePattern = patternOf([...byteNames.keys()]);

  const bytes = (given: Uint8Array): Uint8Array => {
    const buffer = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
    if (!byteForms.some((form) => buffer.includes(form))) return given;
    const text = buffer.toString('latin1').replace(bytePattern, (found) => byteNames.get(found) ?? '');
    return new Uint8Array(Buffer.from(text, 'latin1'));
  };

  const text = (given: string): string => {
    if (given.length < shortest) return given;
    const found = forms.find((form) => given.includes(form.text));
    if (found === undefined) return given;
    const whole = found.isBase64 ? maskedBase64(given, bytes) : undefined;
    return whole ?? given.replace(pattern, (form) => names.get(form) ?? '');
  };
  return {
    text,
    bytes,
    forms,
    pattern,
    value: (value) => maskedValue(value, { text, bytes }) as typeof value,
  };
}

/** A text that is base64 as a whole, such as that of a file, stays so. Undefined for any other. */
function maskedBase64(text: string, bytes: Mask['bytes']): string | undefined {
  const [, head = '', data] = /^(data:[^,]*;base64,)?([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (data === undefined) return undefined;
  const content = Buffer.from(data, 'base64');
  const masked = bytes(content);
  return masked === content ? undefined : head + Buffer.from(masked).toString('base64');
}

/** A copy of a value with its secrets replaced; the value itself if it has none. Follows its JSON form. */
function maskedValue(root: unknown, { text, bytes }: Pick<Mask, 'text' | 'bytes'>): unknown {
  const known = new Map<object, unknown>();
  const visit = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value);
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Uint8Array) return bytes(value);
    if (value instanceof ArrayBuffer) {
      const whole = new Uint8Array(value);
      const masked = bytes(whole);
      return masked === whole ? value : masked;
    }
    if (known.has(value)) return known.get(value);
    // A value that contains itself is returned as it is, and refused where it is encoded.
    known.set(value, value);
    const masked = Array.isArray(value) ? list(value) : fields(value);
    known.set(value, masked);
    return masked;
  };
  const list = (values: readonly unknown[]): unknown => {
    const masked = values.flatMap((one) => {
      const part = unsigned(one, (content) => visit(content) !== content);
      return part === undefined && one !== undefined ? [] : [visit(part)];
    });
    const isSame = masked.length === values.length && masked.every((value, i) => value === values[i]);
    return isSame ? values : masked;
  };
  const fields = (object: object): unknown => {
    const json = asJson(object);
    if (json !== object) {
      const masked = visit(json);
      return masked === json ? object : masked;
    }
    const before = Object.entries(object);
    const names = new Set<string>();
    const after = before.map(([name, value]) => [nameOf(text(name), names), visit(value)] as const);
    const isSame = after.every(([name, value], i) => name === before[i]?.[0] && value === before[i]?.[1]);
    return isSame ? object : Object.fromEntries(after);
  };
  try {
    return visit(root);
  } catch {
    // A field that throws when it is read, or a value nested too deep: no entry can hold it.
    return root;
  }
}

/** What JSON makes of an object that says so itself, as a date or an address does. */
function asJson(object: object): unknown {
  return 'toJSON' in object && typeof object.toJSON === 'function' ? object.toJSON() : object;
}
