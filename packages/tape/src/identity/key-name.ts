import type { Db } from '../db/db.ts';
import { sha256 } from '../entry/hash.ts';
import { nameFault, nameMax, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { isFree } from '../session/names.ts';
import { linkName } from '../tape/link.ts';
import { tapeByName } from '../tape/tape.ts';

/** The longest key, in characters. */
const keyMax = 1000;

/** The longest name of a session for which another can stand: `link:` goes before it. */
const ownMax = nameMax - linkName('').length;

const hashed = 64;

/**
 * Checks a key: the characters of a session name, and more of them.
 * @throws TAPE_BAD_NAME
 */
export function assertKey(key: string): void {
  const fault = nameFault(key, keyMax);
  if (fault === undefined) return;
  throw new TapeError('TAPE_BAD_NAME', `cannot use ${quote(String(key))} as a key: ${fault}`, {
    data: {},
  });
}

/**
 * The names that the session of a key can have: the key itself, and one with its digest, for a key that is too long for a
 * name or that people would take for another name. A lookup tries both.
 */
export function namesOfKey(key: string): readonly string[] {
  const second = `${key.slice(0, ownMax - hashed - 2)}!-${sha256(key)}`;
  return key.length <= ownMax ? [key, second] : [second];
}

/** The first name of a key that a session or an alias can be given; the last, if none can. */
export function freeNameOf(db: Db, realm: string, key: string): string {
  const names = namesOfKey(key);
  const isUsable = (name: string) => tapeByName(db, realm, name) === undefined && isFree(db, realm, name);
  return names.find(isUsable) ?? names.at(-1) ?? key;
}
