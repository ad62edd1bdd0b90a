import type { Json } from '@tapedeck/tape';

/** A non-empty string; undefined for anything else. */
export function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A text, or what stands for another value that a file has in its place: each value has its own. */
export function asText(value: Json | undefined): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
