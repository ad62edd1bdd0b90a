import { sha256 } from '@tapedeck/tape/store';

/** A key has a few of these, and at most 512 characters. */
const longest = 120;

/** How the keys of an import say that an entry was written again, or that a call had no result: no id may say it. */
const reserved = /~again\d+$|^interrupted$/;

/**
 * An id of a source as a part of a key: itself, or a hash of one that no key can have. Ids are what a file says, and one that
 * is too long or no text costs nothing else.
 */
export function keyPart(id: string): string {
  const fits = id.length <= longest && id.isWellFormed() && !id.includes('\0') && !reserved.test(id);
  // JSON writes half a character as an escape, so that each has a hash of its own.
  return fits ? id : `sha256:${sha256(JSON.stringify(id)).slice(0, 32)}`;
}
