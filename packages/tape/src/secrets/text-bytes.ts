import { isUtf8 } from 'node:buffer';

/**
 * Changes the text that bytes are, and returns the same bytes where that changes nothing, or they are no text. Bytes without
 * NUL are text, as git takes them: of what is not UTF-8, as output of a program in another encoding, each byte is a character.
 */
export function changedText(bytes: Uint8Array, change: (text: string) => string): Uint8Array {
  const encoding = isUtf8(bytes) ? 'utf8' : bytes.includes(0) ? undefined : 'latin1';
  if (encoding === undefined) return bytes;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding);
  const changed = change(text);
  return changed === text ? bytes : new Uint8Array(Buffer.from(changed, encoding));
}
