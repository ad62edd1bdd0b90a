import { isObject, type JsonObject } from '../entry/json.ts';

/** Parses a stored text; empty when it is erased, or no JSON object, which its hash or its chain shows. */
export function parsed(text: string | null): JsonObject {
  try {
    const value: unknown = text === null ? null : JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** SQL: whether what is stored of payload and meta is JSON, at most 1000 levels deep, and meta an object. */
export const isReadable =
  "((payload IS NULL OR json_valid(payload)) AND (meta IS NULL OR iif(json_valid(meta), json_type(meta) = 'object', 0)))";
