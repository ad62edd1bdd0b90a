import { TapeError } from '../errors.ts';

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

/** The largest payload or meta of one entry, in UTF-8 bytes (R15). */
export const entryBytesMax: number = 16 * 1024 * 1024;

/** How deep arrays and objects of an entry may nest (R15). */
export const jsonDepthMax = 64;

/** Whether a text has so few brackets that it cannot be nested too deep: then it need not be looked through. */
function cannotBeDeep(text: string): boolean {
  let brackets = 0;
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      brackets += 1;
      if (brackets > jsonDepthMax) return false;
    }
  }
  return true;
}

/** Whether a JSON text is nested deeper than an entry may be (R15). */
export function isTooDeep(text: string): boolean {
  return !cannotBeDeep(text) && jsonDepth(text) > jsonDepthMax;
}

/**
 * The depth of a JSON text, found without parsing it: a parser or a serialiser of a text nested too deep
 * runs out of stack. Counts brackets outside strings; says nothing about validity.
 */
export function jsonDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 92) i += 1;
      else if (c === 34) inString = false;
    } else if (c === 34) inString = true;
    else if (c === 91 || c === 123) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (c === 93 || c === 125) depth -= 1;
  }
  return deepest;
}

/**
 * Parses a text that came from outside.
 * @throws TAPE_BAD_ENTRY when it is too large, nested too deep, or not JSON.
 */
export function parseJson(text: string, what = 'text'): Json {
  if (Buffer.byteLength(text) > entryBytesMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot read ${what}: over ${entryBytesMax} bytes`);
  if (isTooDeep(text))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot read ${what}: nested over ${jsonDepthMax} levels`);
  try {
    return JSON.parse(text, exactNumber) as Json;
  } catch (cause) {
    if (cause instanceof TapeError) throw new TapeError(cause.code, `cannot read ${what}: ${cause.message}`);
    throw new TapeError('TAPE_BAD_ENTRY', `cannot read ${what}: ${(cause as Error).message}`, { cause });
  }
}

/** Refuses a number that would be stored as another: `JSON.parse` rounds without a word. */
function exactNumber(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  const integer = /^-?\d+$/.test(context.source);
  if (!Number.isFinite(value) || (integer && !Number.isSafeInteger(value)))
    throw new TapeError('TAPE_BAD_ENTRY', `the number ${context.source.slice(0, 40)} cannot be kept exactly`);
  return value;
}

/**
 * The compact JSON text of a value, as it is stored and hashed. Lone surrogates become escapes, so every
 * string comes back as it was.
 * @throws TAPE_BAD_ENTRY when the value has no JSON form, is too large, or is nested too deep.
 */
export function encodeJson(value: unknown, what = 'value'): string {
  const text = jsonText(value, what);
  if (Buffer.byteLength(text) > entryBytesMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${what}: over ${entryBytesMax} bytes`);
  if (isTooDeep(text))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${what}: nested over ${jsonDepthMax} levels`);
  return text;
}

/** @throws TAPE_BAD_ENTRY when the value has no JSON form. */
export function jsonText(value: unknown, what: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${what}: ${(cause as Error).message}`, { cause });
  }
  if (text === undefined) throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${what}: it has no JSON form`);
  return text;
}

/** Whether a value is a JSON object: not null, not an array. */
export function isObject(value: unknown): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
