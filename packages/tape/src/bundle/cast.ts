import { hash } from 'node:crypto';
import { entryText, genesisHash, hex, sha256 } from '../entry/hash.ts';
import type { BundleEntry, BundleTape } from './bundle.ts';

const letters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * The id of the copy of a session that went on in two ways: from its own id, and the first entry of the way that is
 * copied. Every home gives the same way the same id, so that a bundle of it that grew adds to the copy.
 */
export function copyUlid(ulid: string, firstOther: string): string {
  const digest = hash('sha256', JSON.stringify(['tape.copy.v1', ulid, firstOther]), 'buffer');
  const random = [...digest.subarray(0, 16)].map((byte) => letters[byte % 32]).join('');
  return ulid.slice(0, 10) + random;
}

/** The hash that the first own entry of a copy follows: of a root its own, of a fork that of the parent's entry. */
export function copyBase(ulid: string, { parent, base_hash }: BundleTape): string {
  return parent === null ? hex(genesisHash(ulid)) : base_hash;
}

/**
 * Makes the entries of a copy: the same facts at the same positions, under another id, so with other hashes. The keys of
 * merges stay behind: each child is merged into the session that it was merged into.
 */
export class Cast {
  readonly #ulid: string;
  #previous: string;

  /** @param previous the hash of the copy's entry before the first */
  constructor(ulid: string, previous: string) {
    this.#ulid = ulid;
    this.#previous = previous;
  }

  of(entry: BundleEntry): BundleEntry {
    const key = entry.key?.startsWith('merge:') === true ? null : entry.key;
    const link = { ...entry, key };
    this.#previous = sha256(entryText(this.#ulid, link, entry.body, this.#previous));
    return { ...link, hash: this.#previous };
  }
}
