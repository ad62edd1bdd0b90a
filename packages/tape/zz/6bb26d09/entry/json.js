import { TapeError } from '../errors.js';

/** Any JSON value. */
                                                                                                         

/** A JSON object. */
                                                          

/** The largest payload or meta of one entry, in UTF-8 bytes. */
export const entryBytesMax         = 16 * 1024 * 1024;

/** The deepest nesting of arrays and objects in an entry. */
export const jsonDepthMax = 64;

/** Returns whether a text has too few brackets to exceed `jsonDepthMax`, which spares the full scan. */
function cannotBeDeep(text        )          {
  let brackets = 0;
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      brackets += 1;
      if (brackets > jsonDepthMax) return false;
    }
  }
  return true;
}

/** Returns whether a JSON text is nested deeper than `jsonDepthMax`. */
export function isTooDeep(text        )          {
  return !cannotBeDeep(text) && jsonDepth(text) > jsonDepthMax;
}

/**
 * Returns the nesting depth of a JSON text without parsing it: on a deeply nested text a parser runs out of
 * stack. Counts brackets outside strings and does not validate.
 */
export function jsonDepth(text        )         {
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
 * Parses a JSON text from outside the program.
 * @throws TAPE_BAD_ENTRY when it is too large, nested too deep, not JSON, or has a number that JavaScript
 * would round
 */
export function parseJson(text        , what = 'text')       {
  if (Buffer.byteLength(text) > entryBytesMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot read ${what}: over ${entryBytesMax} bytes`);
  if (isTooDeep(text))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot read ${what}: nested over ${jsonDepthMax} levels`);
  try {
    return JSON.parse(text, exactNumber)        ;
  } catch (cause) {
    if (cause instanceof TapeError) throw new TapeError(cause.code, `cannot read ${what}: ${cause.message}`);
    throw new TapeError('TAPE_BAD_ENTRY', `cannot read ${what}: ${(cause         ).message}`, { cause });
  }
}

/** Rejects a number that `JSON.parse` would round silently. */
function exactNumber(_key        , value         , context                               )          {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  const integer = /^-?\d+$/.test(context.source);
  if (!Number.isFinite(value) || (integer && !Number.isSafeInteger(value)))
    throw new TapeError(
      'TAPE_BAD_ENTRY',
      `the number ${context.source.slice(0, 40)} cannot be stored exactly`,
    );
  return value;
}

/**
 * Returns the compact JSON text of a value, as stored and hashed. Lone surrogates become escapes, so every
 * string is restored exactly.
 * @throws TAPE_BAD_ENTRY when the value has no JSON form, is too large, or is nested too deep
 */
export function encodeJson(value         , what = 'value')         {
  const text = jsonText(value, what);
  if (Buffer.byteLength(text) > entryBytesMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${what}: over ${entryBytesMax} bytes`);
  if (isTooDeep(text))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${what}: nested over ${jsonDepthMax} levels`);
  return text;
}

/** @throws TAPE_BAD_ENTRY when the value has no JSON form */
export function jsonText(value         , what        )         {
  let text                    ;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${what}: ${(cause         ).message}`, { cause });
  }
  if (text === undefined) throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${what}: it has no JSON form`);
  return text;
}

/** Returns whether a value is a JSON object: neither null nor an array. */
export function isObject(value         )                                {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
