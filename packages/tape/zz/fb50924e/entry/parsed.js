import { isObject,                 } from './json.js';

/** Parses a stored text; empty when it is erased, or no JSON object, which its hash or its chain shows. */
export function parsed(text               )             {
  try {
    const value          = text === null ? null : JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
