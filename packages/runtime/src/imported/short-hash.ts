import { hash } from 'node:crypto';

/**
 * 128 bits of the SHA-256 of a text, in hex: they tell contents apart, and protect nothing. The text is one of its own: a part that
 * is cut off a longer one keeps all of that in memory.
 */
export function shortHash(text: string): string {
  return hash('sha256', text, 'buffer').toString('hex', 0, 16);
}
