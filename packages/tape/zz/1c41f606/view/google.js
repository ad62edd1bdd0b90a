                                              
import { isObject } from '../entry/json.js';

/** The files that Gemini reads, besides texts: its package requires whole media types. */
export const googleFiles         =
  /^(?:image\/(?:png|jpeg|webp|heic|heif)|application\/pdf|audio\/(?!\*).+|video\/(?!\*).+)$/;

/**
 * Returns whether a call that Google ran, or its result, can return to it: its package sends others as calls of the
 * client, which then lack their result.
 */
export function returnsToGoogle(part      )          {
  const options = isObject(part.providerOptions) ? part.providerOptions.google : undefined;
  if (isObject(options) && options.serverToolCallId !== undefined && options.serverToolType !== undefined)
    return true;
  if (part.toolName !== 'code_execution') return false;
  if (part.type === 'tool-call') return isObject(part.input) && hasTexts(part.input, 'language', 'code');
  const { output } = part;
  return isObject(output) && output.type === 'json' && isObject(output.value)
    ? hasTexts(output.value, 'outcome', 'output')
    : false;
}

function hasTexts(value                                   , ...names                   )          {
  return names.every((name) => typeof value[name] === 'string');
}
