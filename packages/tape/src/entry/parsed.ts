import { isObject, type JsonObject } from './json.ts';

/** Parses a stored text; empty when it is erased, or no JSON object, which its hash or its chain shows. */
export function parsed(text: string | null): JsonObject {
  try {
    const value: unknown = text === null ? null : JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
