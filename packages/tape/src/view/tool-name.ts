import { sha256 } from '../entry/hash.ts';

/** The names that every provider accepts, in definitions, calls and results. */
const legal = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;
/** How `legalToolName` ends what it makes: no other name keeps this form. */
const digestEnd = /_[0-9a-f]{16}$/;
const prefixMax = 47;

/**
 * Returns the name under which providers are shown a tool. A name that every provider accepts stays as it is. Any
 * other becomes a readable beginning, `_`, and 16 hex digits of the SHA-256 of its JSON; so does a name that ends like
 * that, so that different names stay different. So do `constructor`, `__proto__` and the like: packages of the AI SDK
 * look names up in plain objects, which have something under these. Pure.
 */
export function legalToolName(name: string): string {
  if (legal.test(name) && !digestEnd.test(name) && !(name in Object.prototype)) return name;
  const letters = name.slice(0, 200).replace(/[^a-zA-Z0-9_-]+/g, '_');
  const prefix = (/^[a-zA-Z_]/.test(letters) ? letters : `_${letters}`).slice(0, prefixMax);
  return `${prefix}_${sha256(JSON.stringify(name)).slice(0, 16)}`;
}
